#!/usr/bin/env python3
"""How fast GPUs search for additive codes, estimated: nobody has measured it.

    tools/additive_estimate.py                the tables of docs/gpu.md, from the builds of presets cuda and emulated

Steps per row (the choice of one code) are counted on the emulated device; what a step takes says the compiled code: a row of a
table for each of the other codes, and what comes before and after those. Together: instructions and bytes per encoded vector,
and so the time that a multiprocessor takes to issue them, against the time in which the second cache, where the tables lie,
delivers the rows.
"""
import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

import gpu_estimate
import kernel_paths
import kernel_report

NAMES = ("A100 SXM", "RTX 4090", "H100 SXM")
GPUS = tuple(gpu for gpu in gpu_estimate.GPUS if gpu.name in NAMES)
# What the second cache delivers to all multiprocessors: an assumption, no data sheet says.
CACHE_TERABYTES = 5
WORDS = 256  # codewords of a codebook
ROW_BYTES = WORDS * 2  # of a table
SHARED_ROWS = 16  # that share the loads of codewords for their own entries
LANES = 32
DIM = 128  # of SIFT
# Microseconds per vector that Martinez, Hoos and Little (2018) measured on a Titan X, 16 iterations, by codebooks.
PAPER = {7: 17.9, 15: 67.2}


def matching(kernel, pattern, positions=None):
    return [i for i in (range(len(kernel.instructions)) if positions is None else sorted(positions))
            if re.match(pattern, kernel.instructions[i].name)]


def at(kernel, positions):
    return [kernel.instructions[i] for i in sorted(positions)]


class SearchWays(NamedTuple):
    """The loops of search_codes. Of what is not a loop every instruction counts, on both sides of branches: an upper bound."""

    table_rows: list  # the loop over rows of tables, once around
    rows_at_once: int  # that it adds
    saturating: list  # the same for one row where sums left the range
    step: list  # a step but for these loops, with the rows that are left over
    cost_books: list  # the loop over codewords of a cost
    books_at_once: int
    cost: list  # of 32 elements, but for that loop


def search_ways(kernel):
    following = kernel_paths.successors(kernel)
    everything = set(range(len(kernel.instructions)))
    squares, comparisons = set(matching(kernel, "FMUL")), set(matching(kernel, "FSETP"))
    # A step votes once, an iteration also compares costs. What only a diverged warp comes to is on no loop.
    steps = {vote: kernel_paths.loop_around(following, everything - comparisons, vote) for vote in matching(kernel, "VOTE.ANY")}
    votes = {vote for vote, step in steps.items() if step}
    if len(votes) != 1 or len(squares) != 1:
        raise SystemExit(f"additive_estimate: {kernel.name} sm_{kernel.architecture}: {len(votes)} votes and {len(squares)} squares, "
                         "expected 1 each")
    step = steps[min(votes)]
    loops = {frozenset(kernel_paths.loop_around(following, step - votes, i)) for i in matching(kernel, r"LDG.*\.128", step)}
    loops = sorted((loop for loop in loops if loop), key=lambda loop: len(matching(kernel, "LDG", loop)))
    cost = kernel_paths.loop_around(following, everything - votes - comparisons, min(squares))
    books = {frozenset(kernel_paths.loop_around(following, cost - squares, i)) for i in matching(kernel, "LDG", cost)}
    books = max(books, key=lambda loop: len(matching(kernel, "LDG", loop)), default=frozenset())
    if len(loops) != 2 or not books:
        raise SystemExit(f"additive_estimate: {kernel.name} sm_{kernel.architecture}: {len(loops)} loops over tables, expected 2")
    saturating, rows = loops
    return SearchWays(at(kernel, rows), len(matching(kernel, "LDG", rows)), at(kernel, saturating),
                      at(kernel, step - rows - saturating), at(kernel, books), len(matching(kernel, "LDG", books)),
                      at(kernel, cost - books))


def product_loop(kernel):
    """Of own_entries: the innermost loop, and the products of a lane in it."""
    found = [loop for loop in kernel_report.loops(kernel) if any(each.name.startswith("FMUL") for each in loop)]
    if not found:
        raise SystemExit(f"additive_estimate: no products in {kernel.name} sm_{kernel.architecture}")
    loop = min(found, key=len)
    return loop, sum(each.name.startswith("FMUL") for each in loop)


class Counts(NamedTuple):
    """Of a row, on average."""

    codebooks: int
    iterations: int
    steps: float
    saturated: float


def read_counts(report):
    """From GoogleTest's report of AdditivePaths."""
    found = []
    for suite in report["testsuites"]:
        for test in suite["testsuite"]:
            shape = re.search(r"AreCounted/codebooks(\d+)$", test["name"])
            if shape and "rows" in test:
                rows = int(test["rows"])
                found.append(Counts(int(shape[1]), int(test["iterations"]), int(test["steps"]) / rows,
                                    int(test["saturated"]) / rows))
    return sorted(found)


class Estimate(NamedTuple):
    instructions: float  # of a warp, per vector
    cache_bytes: float  # per vector
    cycles: dict  # of a multiprocessor per vector: by unit, for "issue" of all together, and for the second cache

    def limit(self):
        return max(self.cycles, key=self.cycles.get)

    def vectors_per_second(self, gpu):
        return gpu.multiprocessors * gpu.gigahertz * 1e9 / self.cycles[self.limit()]


def cache_bytes(counts, dim):
    """Rows of tables; codewords and the row for costs; codewords and results of the row's own entries."""
    rows = (counts.steps + counts.saturated) * (counts.codebooks - 1) * ROW_BYTES
    costs = (counts.iterations + 1) * (counts.codebooks + 1) * dim * 4
    own = counts.codebooks * (WORDS * dim * 4 / SHARED_ROWS + 2 * ROW_BYTES)
    return rows + costs + own


def estimate(gpu, ways, products, counts, dim=DIM):
    loop, made = products
    others = counts.codebooks - 1
    chunks = (counts.iterations + 1) * -(-dim // LANES)
    instructions, cycles = gpu_estimate.unit_cycles([
        (counts.steps, ways.step), (counts.steps * (others // ways.rows_at_once), ways.table_rows),
        (counts.saturated * others, ways.saturating), (chunks, ways.cost),
        (chunks * counts.codebooks / ways.books_at_once, ways.cost_books),
        (counts.codebooks * WORDS / LANES * dim / made, loop)])
    # A row of a table is one load of a warp, and four times as long as others.
    cycles["memory and shuffles"] += (counts.steps + counts.saturated) * others * (ROW_BYTES // gpu_estimate.LOAD_BYTES - 1)
    loaded = cache_bytes(counts, dim)
    cycles["second cache"] = loaded * gpu.multiprocessors * gpu.gigahertz / (CACHE_TERABYTES * 1e3)
    return Estimate(instructions, loaded, cycles)


class Evidence:
    """What was compiled and what was counted."""

    def __init__(self, kernels, counts):
        self.counts = counts
        of = {(re.search(r"(\w+)$", kernel.name)[1], kernel.architecture): kernel for kernel in kernels}
        architectures = {gpu.architecture for gpu in GPUS}
        self.ways = {each: search_ways(of["search_codes", each]) for each in architectures}
        self.products = {each: product_loop(of["own_entries", each]) for each in architectures}

    def estimate(self, gpu, counts):
        return estimate(gpu, self.ways[gpu.architecture], self.products[gpu.architecture], counts)


def evidence(objects=gpu_estimate.OBJECTS, tests=gpu_estimate.TESTS):
    files = [objects / "kernels" / name for name in ("search_codes.cu.o", "additive_entries.cu.o")]
    for file in files:
        if not file.exists():
            raise SystemExit(f"additive_estimate: no {file}: build preset cuda, target nearwise_cuda, first")
    counts = read_counts(gpu_estimate.run_counting(tests, "*AdditivePaths*"))
    if not counts:
        raise SystemExit(f"additive_estimate: {tests} counted nothing: is it the fast build of the emulated device?")
    return Evidence(kernel_report.collect(files), counts)


def ways_table(found):
    rows = [[f"sm_{architecture}", f"{len(ways.table_rows) / ways.rows_at_once:.1f}", len(ways.step), len(ways.saturating),
             f"{len(ways.cost_books) / ways.books_at_once:.1f}", len(ways.cost)]
            for architecture, ways in sorted(found.ways.items())]
    return gpu_estimate.table(["instructions", "row of a table", "rest of a step", "row that saturates",
                               "32 elements of a codeword", "rest of 32 elements of a cost"], rows)


def rates_table(found):
    rows = []
    for gpu in GPUS:
        for counts in found.counts:
            each = found.estimate(gpu, counts)
            rate = each.vectors_per_second(gpu)
            rows.append([f"{gpu.name}, {counts.codebooks}", f"{counts.steps:.0f}", f"{each.instructions / 1e3:.0f}",
                         f"{each.cache_bytes / 1e3:.0f}", f"{rate / 1e6:.2f}", each.limit(), f"{1e6 / rate:.2f}"])
    return gpu_estimate.table(["GPU, codebooks", "steps", "1000 instructions", "KB from the second cache",
                               "10^6 vectors a second", "limit", "microseconds per vector"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", type=Path, default=gpu_estimate.OBJECTS, help="folder of what nvcc compiled")
    parser.add_argument("--tests", type=Path, default=gpu_estimate.TESTS, help="the backend's tests on the emulated device")
    arguments = parser.parse_args()
    found = evidence(arguments.objects, arguments.tests)
    print(f"{ways_table(found)}\n\nan estimate, not a measurement:\n\n{rates_table(found)}")


if __name__ == "__main__":
    sys.exit(main())
