"""Feeds a library bad input and faults, and reports what it does with them (docs/reliability.md).

    python tests/battery/run.py                             every kind of nearwise
    python -O tests/battery/run.py --quick                  the same in seconds, without assert statements
    python tests/battery/run.py --kinds 'faiss*,hnswlib' --cases 'k_*'

Every case runs in a child process with limits of time and address space. Prints a line per case on stderr and one JSON
line on stdout, which lists the faults of every kind: crashes, hangs, wrong answers, lost files, ignored Ctrl-C, errors
without a message or of an undocumented class.
"""

import argparse
import fnmatch
import json
import sys
import tempfile
import time

from adapters import ADAPTERS
from cases import CASES
from outcomes import Finding, Outcome
from runner import prepare, run_cases


def chosen(everything, patterns):
    """Those whose names match one of the patterns."""
    found = [each for each in everything if any(fnmatch.fnmatch(each.name, pattern) for pattern in patterns.split(","))]
    if not found:
        sys.exit(f"no name matches {patterns}; there are {', '.join(each.name for each in everything)}")
    return found


def report_of(kind, cases, quick):
    """Runs the cases on one kind: {case: [outcome, note, seconds]}"""
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        adapter = kind(folder)
        adapter.quick = quick
        began = time.monotonic()
        version = prepare(adapter)
        for case, found in run_cases(adapter, cases):
            report[case.name] = [str(found.outcome), found.note, found.seconds]
            print(f"{kind.name:34} {case.name:28} {found.outcome:12} {found.note[:100]}", file=sys.stderr, flush=True)
    return {
        "version": version,
        "seconds": round(time.monotonic() - began, 1),
        "faults": sorted(case.name for case in cases if is_fault(report[case.name])),
        "cases": {case.name: report[case.name] for case in cases},
    }


def is_fault(record):
    return Finding(Outcome(record[0])).is_fault


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="nearwise*", help="patterns of names, with commas")
    parser.add_argument("--cases", default="*", help="patterns of names, with commas")
    parser.add_argument("--quick", action="store_true", help="few trials; cases share a child process where they can")
    options = parser.parse_args()
    cases = chosen(CASES, options.cases)
    kinds = {kind.name: report_of(kind, cases, options.quick) for kind in chosen(ADAPTERS, options.kinds)}
    claims = {case.name: case.claim for case in cases}
    print(json.dumps({"optimized": not __debug__, "claims": claims, "kinds": kinds}))


if __name__ == "__main__":
    main()
