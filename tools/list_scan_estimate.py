#!/usr/bin/env python3
"""How fast product codes in inverted lists are scanned by GPUs, estimated: nobody has measured it.

    tools/list_scan_estimate.py               the table of docs/gpu.md, from the build of preset cuda

The inner loop of scan_codes is read from the compiled code: what it loads from memory, what it looks up in shared memory, and
how many instructions that takes. Lookups are at random places, so that lanes meet in the same bank: how often is drawn by
lot. Against it stands the time in which memory delivers what a row needs.
"""
import argparse
import random
import re
import sys
from pathlib import Path
from typing import NamedTuple

import gpu_estimate
import kernel_report

LANES = 32
BANKS = 32
# Of every row and query beside its code: half its squared length, and its score written and read again by selection.
OTHER_BYTES = 3 * 4


class ScanLoop(NamedTuple):
    """The inner loop of scan_codes, once around, of a warp."""

    bits: int
    architecture: int
    instructions: list

    def count(self, pattern):
        return sum(re.match(pattern, instruction.name) is not None for instruction in self.instructions)

    def lookups(self):
        """Of a lane: codes whose table entries are added."""
        return self.count("LDS")

    def loaded_bytes(self):
        """Of codes, by the whole warp: words of 32 bits."""
        return self.count("LDG") * LANES * 4

    def code_bytes(self):
        return self.lookups() * LANES * self.bits / 8

    def cycles(self, conflicts):
        """Of a multiprocessor, by the busiest of what it has."""
        units = {"issue": len(self.instructions) / gpu_estimate.ISSUE_RATE,
                 "shared memory": self.lookups() * conflicts + self.count("LDG")}
        for instruction in self.instructions:
            unit = gpu_estimate.unit_of(instruction)
            if unit != "memory and shuffles":
                units[unit] = units.get(unit, 0) + 1 / gpu_estimate.UNITS[unit][0]
        return units


def scan_loop(kernel):
    """The innermost loop with the most lookups that also loads codes."""
    bits = int(re.search(r"scan_codes<(\d+)u?>", kernel.name)[1])
    found = []
    for inside in kernel_report.loops(kernel):
        loop = ScanLoop(bits, kernel.architecture, inside)
        if loop.lookups() and loop.count("LDG") and not loop.count("STS") and not loop.count("BAR"):
            found.append(loop)
    if len(found) != 1:
        raise SystemExit(f"list_scan_estimate: {len(found)} loops of lookups in {kernel.name}, expected 1")
    return found[0]


def conflict_cycles(entries, draws=4000, seed=1):
    """Of one lookup of a warp in a table of so many entries: the most different words that lanes want of one bank."""
    lots = random.Random(seed)
    total = 0
    for _ in range(draws):
        wanted = {lots.randrange(entries) for _ in range(LANES)}
        of_bank = [0] * BANKS
        for entry in wanted:
            of_bank[entry % BANKS] += 1
        total += max(of_bank)
    return total / draws


def scan_loops(kernels):
    return {(loop.bits, loop.architecture): loop
            for loop in (scan_loop(kernel) for kernel in kernels if "scan_codes<" in kernel.name)}


class Estimate(NamedTuple):
    rows_per_second: float
    limit: str
    share: float  # of the bandwidth of memory


def estimate(gpu, loop, parts):
    per_row = {unit: cycles * parts / (loop.lookups() * LANES)
               for unit, cycles in loop.cycles(conflict_cycles(1 << loop.bits)).items()}
    row_bytes = parts * loop.bits / 8 * loop.loaded_bytes() / loop.code_bytes() + OTHER_BYTES
    per_row["memory"] = row_bytes / gpu.bytes_per_cycle()
    limit = max(per_row, key=per_row.get)
    rows = gpu.multiprocessors * gpu.gigahertz * 1e9 / per_row[limit]
    return Estimate(rows, limit, per_row["memory"] / per_row[limit])


def scan_table(loops):
    shapes = ((8, 16), (8, 32), (8, 64), (4, 32))
    rows = []
    for gpu in gpu_estimate.GPUS:
        cells = [gpu.name]
        for bits, parts in shapes:
            found = estimate(gpu, loops[bits, gpu.architecture], parts)
            cells.append(f"{found.rows_per_second / 1e9:.0f} {found.limit}, {found.share:.0%}")
        rows.append(cells)
    return gpu_estimate.table(["10^9 rows a second"] + [f"{parts} codes of {bits} bits" for bits, parts in shapes], rows)


def loop_table(loops):
    rows = [[f"{bits} bits, sm_{architecture}", len(loop.instructions), loop.lookups(), loop.count("LDG"),
             f"{loop.loaded_bytes() / loop.code_bytes():.2f}", f"{conflict_cycles(1 << bits):.2f}"]
            for (bits, architecture), loop in sorted(loops.items())]
    return gpu_estimate.table(["inner loop", "instructions", "lookups", "loads", "bytes loaded per byte of codes",
                               "cycles of a lookup"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--object", type=Path, default=gpu_estimate.OBJECTS / "kernels/scan_lists.cu.o")
    arguments = parser.parse_args()
    if not arguments.object.exists():
        sys.exit(f"list_scan_estimate: no {arguments.object}: build preset cuda, target nearwise_cuda, first")
    loops = scan_loops(kernel_report.collect([arguments.object]))
    print(loop_table(loops), scan_table(loops), sep="\n")


if __name__ == "__main__":
    main()
