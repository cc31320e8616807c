#!/usr/bin/env python3
"""What operations ask of CUDA: compares or writes the table of docs/guide/gpu.md.

    tools/cuda_calls.py build/emulated/tests/backend/cuda/call_counts/cuda_call_counts            compares
    tools/cuda_calls.py build/emulated/tests/backend/cuda/call_counts/cuda_call_counts --write    writes

The program counts on the emulated device; counts depend on nothing else. Exit status 1 if the table differs.
"""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import repository

PAGE = repository.ROOT / "docs" / "guide" / "gpu.md"
BEGIN = "<!-- begin: written by tools/cuda_calls.py --write -->\n"
END = "<!-- end -->"
HEAD = ["operation", "launches", "waits", "bytes to the device: pinned", "pageable", "to the host: pinned", "pageable",
        "allocations: device", "pinned", "pool growths", "new streams", "new cuBLAS handles"]
COLUMNS = ["launches", "synchronisations", "pinned_to_device", "pageable_to_device", "device_to_pinned",
           "device_to_pageable", "allocations", "pinned_allocations", "pool_growths", "streams", "handles"]


def counted(program):
    """The operations that the program counts, in its order."""
    run = subprocess.run([program], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def table(operations):
    lines = ["| " + " | ".join(HEAD) + " |", "| --- |" + " ---: |" * len(COLUMNS)]
    for operation in operations:
        cells = [f"`{operation['operation']}`, {operation['shape']}", *(f"{operation[name]:,}" for name in COLUMNS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def replaced(text, lines):
    """The page with this table between its marks."""
    found = re.search(re.escape(BEGIN) + "(.*?)" + re.escape(END), text, re.DOTALL)
    if found is None:
        raise SystemExit(f"cuda_calls: {PAGE.name} has no table: the mark '{BEGIN.strip()}' is missing")
    return text[:found.start(1)] + lines + text[found.end(1):]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    before = arguments.page.read_text()
    after = replaced(before, table(counted(arguments.program)))
    if arguments.write:
        arguments.page.write_text(after)
        return 0
    old = set(before.splitlines())
    differing = [line for line in after.splitlines() if line not in old]
    findings = [f"{arguments.page}: counted now: {line}" for line in differing]
    if before != after and not findings:
        findings = [f"{arguments.page}: the table has other lines or another order"]
    return repository.conclude("cuda_calls", findings)


if __name__ == "__main__":
    sys.exit(main())
