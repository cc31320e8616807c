#!/usr/bin/env python3
"""How close selection comes to the memory bandwidth of GPUs, estimated: nobody has measured it.

    tools/gpu_estimate.py                     the tables of docs/gpu.md, from the builds of presets cuda and emulated
    tools/gpu_estimate.py --table estimate

The ways that rows of random values take through WarpSelect are counted on the emulated device; how long each way is
says the compiled code. Together: instructions of a warp per row, and so the time that a multiprocessor takes to issue
them, against the time that memory takes to deliver the row.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import kernel_paths
import kernel_report

ROOT = Path(__file__).resolve().parents[1]
OBJECTS = ROOT / "build/cuda/src/CMakeFiles/nearwise_cuda.dir/backend/cuda"
TESTS = ROOT / "build/emulated/tests/backend/cuda/cuda_backend_tests"
TUNING = ROOT / "src/backend/cuda/tuning/selection.h"
LONG_ROW = 128_000  # columns; the rows of the paper's measurements


class Gpu(NamedTuple):
    name: str
    architecture: int  # of the code that runs on it
    multiprocessors: int
    gigahertz: float
    terabytes_per_second: float

    def bytes_per_cycle(self):
        """What memory delivers to one multiprocessor."""
        return self.terabytes_per_second * 1e3 / self.gigahertz / self.multiprocessors


# From the makers' data sheets. Clocks are boost clocks, but for the H100: it may hold 1.98 GHz, 1.7 is the careful end.
GPUS = (Gpu("T4", 75, 40, 1.59, 0.32), Gpu("A100 SXM", 80, 108, 1.41, 2.04), Gpu("RTX 4090", 80, 128, 2.52, 1.01),
        Gpu("H100 SXM", 90, 132, 1.7, 3.35), Gpu("B200", 100, 148, 1.9, 8.0))
H100 = next(gpu for gpu in GPUS if gpu.name == "H100 SXM")

# Instructions of a warp that a multiprocessor begins in a cycle: four schedulers, and units with fewer than 128 lanes
# (CUDA programming guide, "Throughput of Native Arithmetic Instructions"; where architectures differ, the least).
ISSUE_RATE = 4
UNITS = {
    "control": (4, r"BRA|BSSY|BSYNC|EXIT|NOP|WARPSYNC|CALL|RET|YIELD|BREAK|U[A-Z]|R2UR|S2|CS2R|LDC|DEPBAR|P2R|R2P"),
    "memory and shuffles": (1, r"LD|ST|SHFL|ATOM|RED|MATCH"),
    "bit counts": (0.5, r"POPC|FLO|BREV|MUFU|I2F|F2I"),
    "multiply-add": (2, r"IMAD|F(ADD|MUL|FMA)|HFMA|I2I"),
    "integer and compare": (2, r""),  # all else
}
# Of a load that misses every cache, under load: 500 to 800 were measured on recent GPUs.
LATENCY_NANOSECONDS = 600
LOAD_BYTES = 32 * 4  # of a warp


def values_per_lane():
    """What a lane loads in one round of WarpSelect."""
    return int(re.search(r"values_per_lane = (\d+);", TUNING.read_text())[1])


def unit_of(instruction):
    return next(unit for unit, (_, pattern) in UNITS.items() if re.match(pattern, instruction.name))


class Counts(NamedTuple):
    """How often a row goes which way, on average."""

    k: int
    columns: int
    shuffles: float  # in merges
    times: dict  # by the names of kernel_paths.ScanPaths


def read_counts(report):
    """From GoogleTest's report of SelectionPaths."""
    found = []
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            shape = re.search(r"AreCounted/k(\d+)_columns(\d+)$", test["name"])
            if not shape or "rows" not in test:
                continue
            of_row = {name: int(test[name]) / int(test["rows"])
                      for name in ("rounds", "candidate_rounds", "insertions", "merges", "shuffles")}
            times = {"fast_round": of_row["rounds"] - of_row["candidate_rounds"],
                     "candidate_round": of_row["candidate_rounds"], "insertion": of_row["insertions"],
                     "merge": of_row["merges"], "once": 1}
            found.append(Counts(int(shape[1]), int(shape[2]), of_row["shuffles"], times))
    return sorted(found)


def run_counting(program, pattern):
    """GoogleTest's report of tests that count what the real kernels do on the emulated device."""
    with tempfile.TemporaryDirectory(prefix="nearwise-estimate-") as scratch:
        report = Path(scratch, "report.json")
        completed = subprocess.run([str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"],
                                   capture_output=True, text=True)
        if completed.returncode:
            raise SystemExit(f"gpu_estimate: {program} failed:\n{completed.stdout[-2000:]}")
        return json.loads(report.read_text())


def count_paths(program):
    counts = read_counts(run_counting(program, "*SelectionPaths*"))
    if not counts:
        raise SystemExit(f"gpu_estimate: {program} counted nothing: is it the fast build of the emulated device?")
    return counts


class Selection(NamedTuple):
    kernel: kernel_report.Kernel
    paths: kernel_paths.ScanPaths

    def ways(self):
        return {way: self.paths.instructions(self.kernel, way)
                for way in ("fast_round", "candidate_round", "insertion", "merge", "once")}


def selections(kernels, key):
    """Kernels of WarpSelect and their ways, by architecture and length of the warp queue."""
    found = {}
    for kernel in kernels:
        match = re.search(rf"select_rows<.*::{key}, (\d+)>", kernel.name)
        if match is None:
            continue
        paths = kernel_paths.scan_paths(kernel, values_per_lane())
        if paths is None:
            raise SystemExit(f"gpu_estimate: no ways found through {kernel.name} sm_{kernel.architecture}")
        found[kernel.architecture, int(match[1])] = Selection(kernel, paths)
    return found


def queue_for(k, found):
    return min(length for _, length in found if length >= k)


def check_shuffles(selection, counts):
    """The disassembly and the emulated device must agree on the length of a merge: two words of a key for every
    exchange, and once for the k-th best. The compiler may drop an exchange whose result nobody reads."""
    compiled = sum(instruction.name.startswith("SHFL") for instruction in selection.ways()["merge"])
    executed = 2 * (counts.shuffles / counts.times["merge"] + 1)
    if not 0.9 * executed <= compiled <= executed:
        raise SystemExit(f"gpu_estimate: {selection.kernel.name} sm_{selection.kernel.architecture}: {compiled} shuffles "
                         f"in a merge, and the emulated device did {executed:g}")


class Estimate(NamedTuple):
    instructions: float  # of a warp, per row
    cycles: dict  # of a multiprocessor per row: by unit, and for "issue" of all together
    memory_cycles: float
    in_flight: float  # bytes under way to a multiprocessor, against what hides the latency

    def busiest(self):
        return max(self.cycles, key=self.cycles.get)

    def share(self):
        """Of the memory bandwidth, at most."""
        return min(1, self.in_flight, self.memory_cycles / self.cycles[self.busiest()])

    def limit(self):
        if self.share() == 1:
            return "memory"
        return "latency" if self.in_flight < self.memory_cycles / self.cycles[self.busiest()] else self.busiest()


def unit_cycles(ways):
    """Instructions of a warp, and cycles of a multiprocessor by unit, and for "issue" of all together. `ways` has pairs: how
    often, and the instructions that are executed then."""
    instructions, cycles = 0, dict.fromkeys(["issue", *UNITS], 0)
    for times, found in ways:
        instructions += times * len(found)
        for instruction in found:
            unit = unit_of(instruction)
            cycles[unit] += times / UNITS[unit][0]
    cycles["issue"] = instructions / ISSUE_RATE
    return instructions, cycles


def estimate(gpu, selection, counts):
    instructions, cycles = unit_cycles((counts.times[way], found) for way, found in selection.ways().items())
    warps = (kernel_report.occupancy(selection.kernel, 128)
             * kernel_report.MULTIPROCESSORS[selection.kernel.architecture].warps)
    needed = gpu.bytes_per_cycle() * gpu.gigahertz * LATENCY_NANOSECONDS
    return Estimate(instructions, cycles, counts.columns * 4 / gpu.bytes_per_cycle(),
                    warps * values_per_lane() * LOAD_BYTES / needed)


class Evidence:
    """Everything that the tables are made of."""

    def __init__(self, kernels, counts):
        self.kernels = kernels
        self.counts = counts
        self.selections = selections(kernels, "PositionKey")
        for counted in counts:
            for architecture in {architecture for architecture, _ in self.selections}:
                check_shuffles(self.selection(architecture, counted.k), counted)

    def selection(self, architecture, k):
        return self.selections[architecture, queue_for(k, self.selections)]

    def counted(self, k, columns=LONG_ROW):
        return next(counted for counted in self.counts if (counted.k, counted.columns) == (k, columns))

    def estimate(self, gpu, k, columns=LONG_ROW):
        return estimate(gpu, self.selection(gpu.architecture, k), self.counted(k, columns))


def table(head, rows):
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def resources_table(evidence):
    """Registers of every kernel by architecture, and how many warps fit."""
    architectures = sorted({kernel.architecture for kernel in evidence.kernels})
    by_name = {}
    for kernel in evidence.kernels:
        by_name.setdefault(re.sub(r"\w+::", "", kernel.name), {})[kernel.architecture] = kernel
    rows = []
    for name, found in sorted(by_name.items(), key=lambda item: [int(part) if part.isdigit() else part
                                                                 for part in re.split(r"(\d+)", item[0])]):
        local = sum(kernel.uses_local_memory() for kernel in found.values())
        rows.append([f"`{name}`", *(found[a].registers if a in found else "-" for a in architectures),
                     max(kernel.shared_bytes for kernel in found.values()), local])
    return table(["registers of a thread", *(f"sm_{a}" for a in architectures), "shared bytes", "local memory"], rows)


def fast_table(evidence):
    """Instructions for 32 values that are passed over."""
    architectures = sorted({architecture for architecture, _ in evidence.selections})
    rows = [[length, *(f"{len(evidence.selections[a, length].ways()['fast_round']) / values_per_lane():.1f}"
                       for a in architectures)]
            for length in sorted({length for _, length in evidence.selections})]
    return table(["queue", *(f"sm_{a}" for a in architectures)], rows)


def ways_table(evidence):
    """Lengths of the ways through WarpSelect."""
    rows = [[length, *map(len, selection.ways().values())]
            for (architecture, length), selection in sorted(evidence.selections.items())
            if architecture == H100.architecture]
    return table([f"queue, sm_{H100.architecture}", "fast round", "candidate round", "insertion", "merge", "once"], rows)


def counts_table(evidence):
    """How often a row goes which way, on average."""
    rows = [[f"{counted.k}, {counted.columns}", *(f"{counted.times[way]:.1f}" for way in
                                                  ("fast_round", "candidate_round", "insertion", "merge"))]
            for counted in evidence.counts]
    return table(["k, columns", "fast rounds", "candidate rounds", "insertions", "merges"], rows)


def h100_table(evidence):
    rows = []
    for counted in evidence.counts:
        found = evidence.estimate(H100, counted.k, counted.columns)
        rows.append([f"{counted.k}, {counted.columns}", f"{found.instructions / 1e3:.1f}",
                     f"{found.memory_cycles / 1e3:.1f}", f"{found.cycles['issue'] / 1e3:.1f}",
                     f"{found.cycles[found.busiest()] / 1e3:.1f} {found.busiest()}", f"{found.in_flight:.0%}",
                     f"{found.share():.0%}"])
    return table(["k, columns", "1000 instructions", "1000 cycles memory", "to issue", "busiest unit", "in flight",
                  "of bandwidth"], rows)


def gpus_table(evidence):
    ks = sorted({counted.k for counted in evidence.counts})
    rows = []
    for gpu in GPUS:
        found = [evidence.estimate(gpu, k) for k in ks]
        rows.append([gpu.name, *(f"{each.share():.0%} {each.limit()}" for each in found)])
    return table([f"rows of {LONG_ROW}", *(f"k = {k}" for k in ks)], rows)


TABLES = {"resources": resources_table, "fast": fast_table, "ways": ways_table, "counts": counts_table, "estimate": h100_table,
          "gpus": gpus_table}
ESTIMATES = ("estimate", "gpus")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=Path, default=OBJECTS, help="folder of what nvcc compiled")
    parser.add_argument("--tests", type=Path, default=TESTS,
                        help="the backend's tests on the emulated device")
    parser.add_argument("--table", choices=TABLES, action="append", help="only this one; may be repeated")
    arguments = parser.parse_args()
    objects = sorted(arguments.objects.glob("**/*.o"))
    if not objects:
        raise SystemExit(f"gpu_estimate: nothing compiled in {arguments.objects}: build preset cuda first")
    evidence = Evidence(kernel_report.collect(objects), count_paths(arguments.tests))
    for name in arguments.table or TABLES:
        print(f"{name}{' (an estimate, not a measurement)' if name in ESTIMATES else ''}:\n\n{TABLES[name](evidence)}\n")


if __name__ == "__main__":
    sys.exit(main())
