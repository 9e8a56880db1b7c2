#!/usr/bin/env python3
"""Hold traces, plain or gzip, against the JSON Schema that `rematsim schema trace` prints.

usage: schema_check.py SCHEMA.json TRACE...      exit 1, and one line each, where a line does not fit
"""
import gzip
import json
import re
import sys

import jsonschema

# Lines that differ only in how large a number is, in what a string says or in how long a list is fit
# the schema alike: one of each sort is validated. A header's numbers matter.
STRING = re.compile(r'(?<=[:\[,])"[^"\\\x00-\x1f]*"(?=[,\]}])')
TELLING = re.compile(r'"(?:kind|phase|format)":"[^"]*"')
SMALL_NUMBER = re.compile(r'(?<=[:\[,])(?:0|[1-9]\d{0,8})(?=[,\]}])')  # fits in 31 bits
LARGE_NUMBER = re.compile(r'(?<=[:\[,])(?<!"v":)[1-9]\d{9,17}(?=[,\]}])')  # fits in 63 bits
LONG_LIST = re.compile(r'(\[0,0,0|\["","","")(?:,0|,"")+(?=\])')
AMBIGUOUS = re.compile(r'[:\[,]"[:,\]}]')  # a string that ends or begins like what stands around it


def sort_of(line):
    """What a line has in common with others that fit the schema alike; None for no such thing."""
    if '"header"' in line or AMBIGUOUS.search(line):
        return None
    plain = LARGE_NUMBER.sub("9", SMALL_NUMBER.sub("0", STRING.sub('""', line)))
    return LONG_LIST.sub(r"\1", plain), tuple(TELLING.findall(line))


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


class Checker:
    def __init__(self, schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        self.schema = schema
        self.validators = {}
        self.fitting = set()

    def validator_of(self, kind):
        """The schema without the branches whose condition another kind meets: the same, faster."""
        if kind not in self.validators:
            branches = [branch for branch in self.schema["allOf"]
                        if branch["if"]["properties"]["kind"]["const"] == kind]
            schema = {**self.schema, "allOf": branches or [True]}
            self.validators[kind] = jsonschema.Draft202012Validator(schema)
        return self.validators[kind]

    def fault(self, line):
        """Why a line does not fit; None where it does."""
        sort = sort_of(line)
        if sort is not None and sort in self.fitting:
            return None
        try:
            event = json.loads(line, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            return f"not JSON: {error}"
        kind = event.get("kind") if isinstance(event, dict) else None
        validator = self.validator_of(kind if isinstance(kind, str) else None)
        error = jsonschema.exceptions.best_match(validator.iter_errors(event))
        if error is not None:
            return f"{error.message[:200]} (at /{'/'.join(map(str, error.absolute_path))})"
        self.fitting.add(sort)
        return None

    def faults_of_file(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if fault := self.fault(line.rstrip("\n")):
                    yield f"{path}:{number}: {fault}"


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        checker = Checker(json.load(file))
    faults = 0
    for path in arguments[1:]:
        for fault in checker.faults_of_file(path):
            print(fault)
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
