#!/usr/bin/env python3
"""Hold recordings, cases and what we write against the JSON Schema of a trace, and the schema
against what the reader takes.

usage: trace_schema_test.py REMATSIM REMATSIM_TESTS      exit 1 where one of them does not agree
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing appears in the source tree
from schema_check import Checker  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What no schema of one line can see.
TOLD_BY_EARLIER_LINES = ("is used before", "does not increase")

BROKEN = [
    '{"seq":1}',
    '{"kind":"note"}',
    '{"seq":-1,"kind":"note"}',
    '{"seq":1,"kind":7}',
    '{"seq":1,"kind":"note","phase":"nowhere"}',
    '{"seq":1,"kind":"note","gid":["group"]}',
    '{"seq":1,"kind":"op","outputs":[7]}',
    '{"seq":1,"kind":"pack","tensor":{"t":"1"}}',
    '{"seq":1,"kind":"inputs_save","tensors":[1,{"t":1}]}',
    '{"seq":0,"kind":"header","format":"chrome","version":1}',
    '{"seq":0,"kind":"header","format":"ckpt-trace","version":2}',
    '{"seq":1,"kind":"note","rank":NaN}',
    '{"seq":1,"kind":"note"',
    "[1]",
    "",
]


def traces_of_others():
    shared = pathlib.Path(os.environ.get("REMATSIM_SHARED", ROOT.parent / "shared")) / "data"
    folders = [shared / name for name in ("cases", "recorded", "hyperparallel")]
    if not shared.is_dir():
        print(f"no {shared}: only the traces in traces/recorded are checked")
        folders = [ROOT / "traces" / "recorded"]
    return traces_under(*folders)


def traces_under(*folders):
    files = [path for folder in folders for path in pathlib.Path(folder).rglob("*.jsonl*")]
    return sorted(str(path) for path in files if path.name.endswith((".jsonl", ".jsonl.gz")))


def main(program, tests):
    shown = subprocess.run([program, "schema", "trace"], check=True, capture_output=True, text=True)
    checker = Checker(json.loads(shown.stdout))
    wrong = []
    with tempfile.TemporaryDirectory() as samples:
        subprocess.run([tests, "[.samples]"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "REMATSIM_SAMPLES": samples})
        others, ours = traces_of_others(), traces_under(samples)
        for path in others + ours:
            wrong += checker.faults_of_file(path)
        verdicts = json.loads(pathlib.Path(samples, "verdicts.json").read_text(encoding="utf-8"))
    for verdict in verdicts:
        taken = not verdict["fault"] or any(
            words in verdict["fault"] for words in TOLD_BY_EARLIER_LINES)
        fault = checker.fault(verdict["line"])
        if taken != (fault is None):
            wrong.append(f"{verdict['line']}: the reader says {verdict['fault'] or 'fine'}, "
                         f"the schema {fault or 'fine'}")
    wrong += [f"{line}: taken by the schema" for line in BROKEN if checker.fault(line) is None]
    for line in wrong:
        print(line)
    print(f"{len(others)} traces of others, {len(ours)} of ours, {len(verdicts)} lines that the "
          f"reader judged, {len(BROKEN)} broken lines: {len(wrong)} wrong")
    if not others or not ours or not verdicts:
        print("nothing was checked")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:]))
