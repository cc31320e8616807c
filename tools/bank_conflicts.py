#!/usr/bin/env python3
"""Bank conflicts of shared memory, line by line: what the check build of the emulated device counts.

    tools/bank_conflicts.py                   the table of docs/gpu.md, from the build of preset emulated-check

A request of a warp costs as many cycles as the busiest bank has different words, at the least one for every 128 bytes.
Runs selections of every kernel that uses shared memory, on random values.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "build/emulated-check/tests/backend/cuda/cuda_backend_tests"
FILTER = "Kind/RowSelection.*/uniform"


def read_profile(text):
    """[(file:line, read or write, bytes, requests, cycles of a request, least)] of shared memory in src/, by line."""
    found = []
    for line in text.splitlines():
        match = re.match(r"shared +(\w+) +(\d+) +(\d+) +([\d.]+) +([\d.]+)  \S*?src/backend/cuda/(\S+?):(\d+)", line)
        if match:
            access, size, requests, cost, least, file, number = match.groups()
            found.append((file, int(number), access, int(size), int(requests), float(cost), float(least)))
    return sorted(found)


def together(sites):
    """One row for each line and kind of access: code that is compiled several times has several."""
    rows = {}
    for file, number, access, size, requests, cost, least in sites:
        row = rows.setdefault((file, number, access, size), [0, 0.0, 0.0])
        row[0] += requests
        row[1] += requests * cost
        row[2] += requests * least
    return {place: (requests, cost / requests, least / requests) for place, (requests, cost, least) in rows.items()}


def table(rows):
    lines = ["| line | access | requests | cycles | least |", "| --- | --- | ---: | ---: | ---: |"]
    lines += [f"| `{file}:{number}` | {access} {size} | {requests} | {cost:.2f} | {least:.2f} |"
              for (file, number, access, size), (requests, cost, least) in rows.items()]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tests", type=Path, default=TESTS, help="the backend's tests on the emulated device, checked")
    parser.add_argument("--filter", default=FILTER, help="which of them")
    arguments = parser.parse_args()
    completed = subprocess.run([str(arguments.tests), f"--gtest_filter={arguments.filter}"], capture_output=True, text=True,
                               env={**os.environ, "CUDA_EMULATION_PROFILE": "1"})
    if completed.returncode:
        raise SystemExit(f"bank_conflicts: {arguments.tests} failed:\n{completed.stdout[-2000:]}")
    rows = together(read_profile(completed.stdout))
    if not rows:
        raise SystemExit("bank_conflicts: no access to shared memory was seen: is it the check build?")
    print(table(rows))


if __name__ == "__main__":
    sys.exit(main())
