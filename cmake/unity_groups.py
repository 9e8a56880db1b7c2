#!/usr/bin/env python3
"""Which sources of a target can be compiled together: unity_groups.py SIZE FILE…

Prints the number of a group for each file, one a line; the working directory is the tree's root. What a
file keeps to itself (in an unnamed namespace, by `static`, or as an alias) may have no name that another of
the group keeps, or that a header of another declares, since these meet once the files are one translation
unit. What is missed here fails to compile; it is never silent.
"""

import functools
import re
import sys
from pathlib import Path

UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.S | re.M)
TYPE = re.compile(r"(?:template <.*>\s*)?(?:struct|class|enum class|enum|union)\s+(\w+)")
# What stands before the first parenthesis, brace, initializer or semicolon of a line.
OBJECT = re.compile(r"(\w+)\s*(?:\(|\{|=|\[|;)")
ALIAS = re.compile(r"^using\s+(\w+)\s*=", re.M)
INCLUDE = re.compile(r'^#include "(.*)"', re.M)
STATIC = re.compile(r"^static\s+[^;({=]*?(\w+)\s*(?:\(|\{|=|;)", re.M)


def declared(lines):
    """The names that these lines declare at their outermost level."""
    for line in lines:
        # Continuations are indented; what a declaration ends with is no name.
        if line and line[0] not in " /}#)":
            match = TYPE.match(line) or OBJECT.search(line)
            if match:
                yield match.group(1)


def kept_names(text):
    """The names that a file keeps to itself."""
    found = set(ALIAS.findall(text)) | set(STATIC.findall(text))
    for body in UNNAMED.findall(text):
        found.update(declared(body.split("\n")))
    return found


@functools.cache
def given_names(header):
    """The names that a header of the tree declares, with those that it includes."""
    text = Path(header).read_text(encoding="utf-8")
    return frozenset(declared(text.split("\n"))).union(*map(given_names, INCLUDE.findall(text)))


def groups(paths, size):
    """The number of the first group that has room for each file and no name against it."""
    found, numbers = [], []
    for path in paths:
        text = Path(path).read_text(encoding="utf-8")
        kept = kept_names(text)
        given = frozenset().union(*map(given_names, INCLUDE.findall(text)))
        for number, group in enumerate(found):
            meets = kept & (group["kept"] | group["given"]) or given & group["kept"]
            if group["files"] < size and not meets:
                break
        else:
            number = len(found)
            found.append({"files": 0, "kept": set(), "given": set()})
        found[number]["files"] += 1
        found[number]["kept"] |= kept
        found[number]["given"] |= given
        numbers.append(number)
    return numbers


if __name__ == "__main__":
    print("\n".join(str(number) for number in groups(sys.argv[2:], int(sys.argv[1]))))
