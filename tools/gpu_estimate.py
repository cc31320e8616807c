#!/usr/bin/env python3
"""Estimates of GPU kernels from compiled code and counts on the emulated device. No GPU has measured them.

    tools/gpu_estimate.py                the tables of docs/guide/gpu.md, from the builds of presets cuda and emulated
    tools/gpu_estimate.py selection      WarpSelect: share of the memory bandwidth
    tools/gpu_estimate.py lists          scan of product codes in inverted lists: vectors per second
    tools/gpu_estimate.py additive       search for additive codes: vectors per second

Every estimate has two sources: how often each path through a kernel is taken, counted by running the kernel on the
emulated device, and how many instructions that path has in the compiled code. Together they give the cycles of a
multiprocessor per unit; the slowest unit or the memory is the limit.
"""
import argparse
import heapq
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import kernel_report

ROOT = Path(__file__).resolve().parents[1]
OBJECTS = ROOT / "build/cuda/src/CMakeFiles/nearwise_cuda.dir/backend/cuda"
EMULATED_TESTS = ROOT / "build/emulated/tests"
LANES = 32
BANKS = 32


class Gpu(NamedTuple):
    name: str
    architecture: int  # of the code that it runs
    multiprocessors: int
    gigahertz: float
    terabytes_per_second: float

    def bytes_per_cycle(self):
        """Memory bandwidth of one multiprocessor."""
        return self.terabytes_per_second * 1e3 / self.gigahertz / self.multiprocessors


# Data sheets. Boost clocks, except for the H100: it may hold 1.98 GHz, 1.7 is the conservative value.
GPUS = (Gpu("T4", 75, 40, 1.59, 0.32), Gpu("A100 SXM", 80, 108, 1.41, 2.04), Gpu("RTX 4090", 80, 128, 2.52, 1.01),
        Gpu("H100 SXM", 90, 132, 1.7, 3.35), Gpu("B200", 100, 148, 1.9, 8.0))
H100 = next(gpu for gpu in GPUS if gpu.name == "H100 SXM")

# Warp instructions that a multiprocessor starts per cycle: four schedulers, and units with fewer than 128
# lanes (CUDA programming guide, "Throughput of Native Arithmetic Instructions"; the lowest of the
# architectures).
ISSUE_RATE = 4
UNITS = {
    "control": (4, r"BRA|BSSY|BSYNC|EXIT|NOP|WARPSYNC|CALL|RET|YIELD|BREAK|U[A-Z]|R2UR|S2|CS2R|LDC|DEPBAR|P2R|R2P"),
    "memory and shuffles": (1, r"LD|ST|SHFL|ATOM|RED|MATCH"),
    "bit counts": (0.5, r"POPC|FLO|BREV|MUFU|I2F|F2I"),
    "multiply-add": (2, r"IMAD|F(ADD|MUL|FMA)|HFMA|I2I"),
    "integer and compare": (2, r""),  # all others
}
LATENCY_NANOSECONDS = 600  # of a load that misses every cache, under load; 500 to 800 on recent GPUs
LOAD_BYTES = LANES * 4  # of a warp


def unit_of(instruction):
    return next(unit for unit, (_, pattern) in UNITS.items() if re.match(pattern, instruction.name))


def unit_cycles(paths):
    """(warp instructions, {unit: cycles of a multiprocessor}) of pairs (how often, instructions executed each time)."""
    instructions, cycles = 0, dict.fromkeys(["issue", *UNITS], 0)
    for times, found in paths:
        instructions += times * len(found)
        for instruction in found:
            unit = unit_of(instruction)
            cycles[unit] += times / UNITS[unit][0]
    cycles["issue"] = instructions / ISSUE_RATE
    return instructions, cycles


def count(instructions, pattern):
    return sum(re.match(pattern, each.name) is not None for each in instructions)


def refuse(kernel, reason):
    raise SystemExit(f"gpu_estimate: {kernel.name} sm_{kernel.architecture}: {reason}")


def run_counting(program, pattern):
    """The recorded properties of tests that count what kernels do on the emulated device: [(test name, properties)]."""
    with tempfile.TemporaryDirectory(prefix="nearwise-estimate-") as scratch:
        report = Path(scratch, "report.json")
        completed = subprocess.run([str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"],
                                   capture_output=True, text=True)
        if completed.returncode:
            raise SystemExit(f"gpu_estimate: {program} failed:\n{completed.stdout[-2000:]}")
        found = counted_tests(json.loads(report.read_text()))
    if not found:
        raise SystemExit(f"gpu_estimate: {program} counted nothing: is it the build of preset emulated?")
    return found


def counted_tests(report):
    return [(test["name"], test) for suite in report["testsuites"] for test in suite["testsuite"]
            if "AreCounted/" in test["name"] and "rows" in test]


# WarpSelect (select_rows). A round of the outer loop loads some values per lane and votes. If a value may be
# among the k best, passes of the inner loop queue candidates and vote; when the queue is full, it is sorted
# and merged with shuffles. The loops are strongly connected parts of the control flow graph: the scan is the
# part with the first vote, the inner loop is what remains a loop without that vote, an insertion what remains
# a loop without shuffles.

LONG_ROW = 128_000  # columns of the rows that the WarpSelect paper measures
PATHS = ("fast_round", "candidate_round", "insertion", "merge", "once")


def values_per_lane():
    """Values that a lane loads per round."""
    (tuning,) = ROOT.glob("src/backend/cuda/**/tuning/selection.h")
    return int(re.search(r"values_per_lane = (\d+);", tuning.read_text())[1])


def first_vote(kernel):
    return next((i for i, each in enumerate(kernel.instructions) if each.name.startswith("VOTE.ANY")), None)


def shortest_round(kernel, loads, through=frozenset()):
    """Positions on the shortest path from the first vote back to it with `loads` loads and no shuffle, or None.

    That is a round in which nothing is selected. With `through`: the path must visit one of these positions, which are
    neither counted nor returned.
    """
    instructions, following = kernel.instructions, kernel_report.successors(kernel)
    start = first_vote(kernel)
    if start is None:
        return None
    queue, seen = [(0, start, 0, not through, ())], set()
    while queue:
        length, i, loaded, passed, path = heapq.heappop(queue)
        if i == start and length and loaded >= loads and passed:
            positions = []
            while path:  # nested pairs, so that paths share their beginnings
                path, last = path
                positions.append(last)
            return positions
        if (i, loaded, passed) in seen or instructions[i].name.startswith("SHFL"):
            continue
        seen.add((i, loaded, passed))
        counted = i not in through
        for j in following[i]:
            load = (instructions[j].name.startswith("LDG") and not instructions[j].text.startswith("@")
                    and j not in through)
            heapq.heappush(queue, (length + counted, j, min(loads, loaded + load), passed or j in through,
                                   (path, i) if counted else path))
    return None


def selection_paths(kernel, loads):
    """{path: positions} of a kernel that loads `loads` values per lane and round; None if it has another structure.

    Insertion and merge have every instruction on both sides of branches: an upper bound. Code that only a diverged
    warp reaches (behind BRA.DIV) is on no path.
    """
    start = first_vote(kernel)
    if start is None:
        return None
    following, everything = kernel_report.successors(kernel), set(range(len(kernel.instructions)))
    scan = kernel_report.loop_around(following, everything, start)
    votes = [i for i in sorted(scan) if kernel.instructions[i].name.startswith("VOTE.ANY") and i != start]
    inner = kernel_report.loop_around(following, scan - {start}, votes[0]) if votes else set()
    shuffles = {i for i in inner if kernel.instructions[i].name.startswith("SHFL")}
    insertion = kernel_report.loop_around(following, inner - shuffles, votes[0]) if shuffles else set()
    fast, candidate = shortest_round(kernel, loads), shortest_round(kernel, loads, inner)
    if not insertion or fast is None or candidate is None:
        return None
    once = ({0} | kernel_report.reachable(following, everything, 0)) - scan
    return dict(zip(PATHS, (fast, candidate, insertion, inner - insertion, once)))


class SelectionCounts(NamedTuple):
    """Averages per row."""

    k: int
    columns: int
    shuffles: float  # in merges
    times: dict  # {path: how often it is taken}


def read_selection_counts(tests):
    found = []
    for name, test in tests:
        k, columns = map(int, re.search(r"AreCounted/k(\d+)_columns(\d+)$", name).groups())
        row = {key: int(test[key]) / int(test["rows"])
               for key in ("rounds", "candidate_rounds", "insertions", "merges", "shuffles")}
        times = (row["rounds"] - row["candidate_rounds"], row["candidate_rounds"], row["insertions"], row["merges"], 1)
        found.append(SelectionCounts(k, columns, row["shuffles"], dict(zip(PATHS, times))))
    return sorted(found)


class Selection(NamedTuple):
    kernel: kernel_report.Kernel
    paths: dict  # {path: instructions}

    def check_shuffles(self, counts):
        """Compiled code and emulated device must agree on the length of a merge: two words of a key for every exchange,
        and once for the k-th best. The compiler may drop exchanges whose result is not used."""
        compiled = count(self.paths["merge"], "SHFL")
        executed = 2 * (counts.shuffles / counts.times["merge"] + 1)
        if not 0.9 * executed <= compiled <= executed:
            refuse(self.kernel, f"{compiled} shuffles in a merge, the emulated device executed {executed:g}")

    def estimate(self, gpu, counts):
        instructions, cycles = unit_cycles((counts.times[path], found) for path, found in self.paths.items())
        limits = kernel_report.MULTIPROCESSORS[self.kernel.architecture]
        in_flight = kernel_report.occupancy(self.kernel, 128) * limits.warps * values_per_lane() * LOAD_BYTES
        needed = gpu.bytes_per_cycle() * gpu.gigahertz * LATENCY_NANOSECONDS
        return SelectionEstimate(instructions, cycles, counts.columns * 4 / gpu.bytes_per_cycle(), in_flight / needed)


class SelectionEstimate(NamedTuple):
    instructions: float  # of a warp, per row
    cycles: dict  # of a multiprocessor per row, by unit
    memory_cycles: float
    in_flight: float  # bytes in flight relative to those that hide the latency

    def busiest(self):
        return max(self.cycles, key=self.cycles.get)

    def share(self):
        """Upper bound of the share of the memory bandwidth."""
        return min(1, self.in_flight, self.memory_cycles / self.cycles[self.busiest()])

    def limit(self):
        if self.share() == 1:
            return "memory"
        return "latency" if self.in_flight < self.memory_cycles / self.cycles[self.busiest()] else self.busiest()


class SelectionEvidence:
    def __init__(self, kernels, tests):
        self.counts = read_selection_counts(run_counting(tests, "*SelectionPaths*"))
        self.selections = {}  # by architecture and length of the warp queue
        for kernel in kernels:
            if match := re.search(r"select_rows<.*::PositionKey, (\d+)>", kernel.name):
                paths = selection_paths(kernel, values_per_lane())
                if paths is None:
                    refuse(kernel, "unknown structure")
                self.selections[kernel.architecture, int(match[1])] = Selection(kernel, {
                    path: [kernel.instructions[i] for i in found] for path, found in paths.items()})
        for counts in self.counts:
            for architecture in {architecture for architecture, _ in self.selections}:
                self.selection(architecture, counts.k).check_shuffles(counts)

    def selection(self, architecture, k):
        return self.selections[architecture, min(length for _, length in self.selections if length >= k)]

    def estimate(self, gpu, k, columns=LONG_ROW):
        counts = next(each for each in self.counts if (each.k, each.columns) == (k, columns))
        return self.selection(gpu.architecture, k).estimate(gpu, counts)

    def tables(self):
        architectures = sorted({architecture for architecture, _ in self.selections})
        yield "instructions per 32 rejected values", ["queue", *(f"sm_{each}" for each in architectures)], [
            [length, *(f"{len(self.selections[each, length].paths['fast_round']) / values_per_lane():.1f}"
                       for each in architectures)] for length in sorted({length for _, length in self.selections})]
        rows = []
        for counts in self.counts:
            found = self.estimate(H100, counts.k, counts.columns)
            rows.append([f"{counts.k}, {counts.columns}", *(f"{counts.times[path]:.1f}" for path in PATHS[:4]),
                         f"{found.memory_cycles / 1e3:.1f}", f"{found.cycles[found.busiest()] / 1e3:.1f} {found.busiest()}",
                         f"{found.in_flight:.0%}", f"{found.share():.0%}"])
        yield "H100 SXM, estimated", ["k, columns", "fast rounds", "candidate rounds", "insertions", "merges",
                                      "1000 cycles memory", "1000 cycles busiest unit", "in flight", "bandwidth"], rows
        ks = sorted({counts.k for counts in self.counts})
        yield "estimated share of the bandwidth", [f"rows of {LONG_ROW}", *(f"k = {k}" for k in ks)], [
            [gpu.name, *(f"{found.share():.0%} {found.limit()}" for found in (self.estimate(gpu, k) for k in ks))]
            for gpu in GPUS]


# Scan of product codes (scan_codes): lookups at random positions of tables in shared memory.

# Per vector and query in addition to the code: its norm, and its score written and read again.
OTHER_BYTES = 3 * 4


class ScanLoop(NamedTuple):
    """One pass of the inner loop of scan_codes, for a warp."""

    bits: int
    instructions: list

    def lookups(self):
        """Per lane."""
        return count(self.instructions, "LDS")

    def loaded_bytes(self):
        """Of codes, by the whole warp."""
        return count(self.instructions, "LDG") * LANES * 4

    def code_bytes(self):
        return self.lookups() * LANES * self.bits / 8

    def estimate(self, gpu, codes):
        """(vectors per second, limit, share of the memory bandwidth) for vectors of so many codes."""
        _, cycles = unit_cycles([(1, self.instructions)])
        del cycles["memory and shuffles"]
        cycles["shared memory"] = self.lookups() * conflict_cycles(1 << self.bits) + count(self.instructions, "LDG")
        per_row = {unit: each * codes / (self.lookups() * LANES) for unit, each in cycles.items()}
        row_bytes = codes * self.bits / 8 * self.loaded_bytes() / self.code_bytes() + OTHER_BYTES
        per_row["memory"] = row_bytes / gpu.bytes_per_cycle()
        limit = max(per_row, key=per_row.get)
        return gpu.multiprocessors * gpu.gigahertz * 1e9 / per_row[limit], limit, per_row["memory"] / per_row[limit]


def scan_loop(kernel):
    """The only loop of scan_codes that looks up and loads codes, without stores and barriers."""
    bits = int(re.search(r"scan_codes<(\d+)u?>", kernel.name)[1])
    found = [loop for loop in kernel_report.loops(kernel)
             if count(loop, "LDS") and count(loop, "LDG") and not count(loop, "STS|BAR")]
    if len(found) != 1:
        refuse(kernel, f"{len(found)} loops of lookups, expected 1")
    return ScanLoop(bits, found[0])


def conflict_cycles(entries, draws=4000, seed=1):
    """Cycles of a warp's lookup at random positions: the most different words in one bank, on average."""
    draw = random.Random(seed)
    lookups = ({draw.randrange(entries) for _ in range(LANES)} for _ in range(draws))
    return sum(max(Counter(entry % BANKS for entry in lookup).values()) for lookup in lookups) / draws


class ListEvidence:
    def __init__(self, kernels):
        self.loops = {(loop.bits, kernel.architecture): loop for kernel in kernels if "scan_codes<" in kernel.name
                      for loop in [scan_loop(kernel)]}

    def tables(self):
        shapes = ((8, 16), (8, 32), (8, 64), (4, 32))
        rows = []
        for gpu in GPUS:
            found = [self.loops[bits, gpu.architecture].estimate(gpu, codes) for bits, codes in shapes]
            rows.append([gpu.name, *(f"{rate / 1e9:.0f} {limit}, {share:.0%}" for rate, limit, share in found)])
        yield "estimated 10^9 vectors per second", ["10^9 vectors per second",
                                                    *(f"{codes} codes of {bits} bits" for bits, codes in shapes)], rows


# Search for additive codes (search_codes): a step chooses one code and adds a row of a table for every other
# code.

ADDITIVE_GPUS = tuple(gpu for gpu in GPUS if gpu.name in ("A100 SXM", "RTX 4090", "H100 SXM"))
CACHE_TERABYTES = 5  # per second, of the L2 cache, where the tables are: an assumption
CODEWORDS = 256
TABLE_ROW_BYTES = CODEWORDS * 2
SHARED_ROWS = 16  # vectors that share loads of codewords
DIM = 128
# Microseconds per vector that Martinez, Hoos and Little (2018) measured on a Titan X, 16 iterations, by
# codebooks.
PAPER_MICROSECONDS = {7: 17.9, 15: 67.2}


class AdditivePaths(NamedTuple):
    """Loops of search_codes. Outside loops every instruction counts, on both sides of branches: an upper bound."""

    table_rows: list  # one pass of the loop over table rows
    rows_per_pass: int
    saturating: list  # the same for one row after an overflow
    step: list  # a step without these loops
    cost_codewords: list  # one pass of the loop over codewords of a cost
    codewords_per_pass: int
    cost: list  # 32 elements of a cost without that loop


def additive_paths(kernel):
    following, everything = kernel_report.successors(kernel), set(range(len(kernel.instructions)))

    def matching(pattern, positions=everything):
        return {i for i in positions if re.match(pattern, kernel.instructions[i].name)}

    def loops_through(pattern, inside):
        found = {frozenset(kernel_report.loop_around(following, inside, i)) for i in matching(pattern, inside)}
        return sorted((loop for loop in found if loop), key=lambda loop: len(matching("LDG", loop)))

    def at(positions):
        return [kernel.instructions[i] for i in sorted(positions)]

    squares, comparisons = matching("FMUL"), matching("FSETP")
    # A step votes once; an iteration also compares costs. What only a diverged warp reaches is on no loop.
    steps = loops_through("VOTE.ANY", everything - comparisons)
    votes = matching("VOTE.ANY", frozenset().union(*steps))
    if len(votes) != 1 or len(squares) != 1:
        refuse(kernel, f"{len(votes)} votes and {len(squares)} squares, expected 1 each")
    step = steps[0]
    tables = loops_through(r"LDG.*\.128", step - votes)
    cost = kernel_report.loop_around(following, everything - votes - comparisons, min(squares))
    codewords = loops_through("LDG", cost - squares)
    if len(tables) != 2 or not codewords:
        refuse(kernel, f"{len(tables)} loops over tables, expected 2")
    saturating, rows = tables
    return AdditivePaths(at(rows), len(matching("LDG", rows)), at(saturating), at(step - rows - saturating),
                         at(codewords[-1]), len(matching("LDG", codewords[-1])), at(cost - codewords[-1]))


def product_loop(kernel):
    """The innermost loop of own_entries, and the products of a lane in it."""
    found = [loop for loop in kernel_report.loops(kernel) if count(loop, "FMUL")]
    if not found:
        refuse(kernel, "no products")
    loop = min(found, key=len)
    return loop, count(loop, "FMUL")


class AdditiveCounts(NamedTuple):
    """Averages per vector."""

    codebooks: int
    iterations: int
    steps: float
    saturated: float

    def cache_bytes(self, dim=DIM):
        """Rows of tables; codewords and the vector for costs; codewords and results of the vector's own products."""
        rows = (self.steps + self.saturated) * (self.codebooks - 1) * TABLE_ROW_BYTES
        costs = (self.iterations + 1) * (self.codebooks + 1) * dim * 4
        return rows + costs + self.codebooks * (CODEWORDS * dim * 4 / SHARED_ROWS + 2 * TABLE_ROW_BYTES)


def read_additive_counts(tests):
    return sorted(AdditiveCounts(int(re.search(r"/codebooks(\d+)$", name)[1]), int(test["iterations"]),
                                 int(test["steps"]) / int(test["rows"]), int(test["saturated"]) / int(test["rows"]))
                  for name, test in tests)


def additive_estimate(gpu, paths, products, counts, dim=DIM):
    """(warp instructions per vector, {unit: cycles of a multiprocessor per vector})."""
    loop, products_per_pass = products
    others = counts.codebooks - 1
    chunks = (counts.iterations + 1) * -(-dim // LANES)
    instructions, cycles = unit_cycles([
        (counts.steps, paths.step), (counts.steps * (others // paths.rows_per_pass), paths.table_rows),
        (counts.saturated * others, paths.saturating), (chunks, paths.cost),
        (chunks * counts.codebooks / paths.codewords_per_pass, paths.cost_codewords),
        (counts.codebooks * CODEWORDS / LANES * dim / products_per_pass, loop)])
    # A table row is one load of a warp, four times as long as others.
    cycles["memory and shuffles"] += ((counts.steps + counts.saturated) * others * (TABLE_ROW_BYTES // LOAD_BYTES - 1))
    cycles["L2 cache"] = counts.cache_bytes(dim) * gpu.multiprocessors * gpu.gigahertz / (CACHE_TERABYTES * 1e3)
    return instructions, cycles


class AdditiveEvidence:
    def __init__(self, kernels, tests):
        self.counts = read_additive_counts(run_counting(tests, "*AdditivePaths*"))
        named = {(re.search(r"(\w+)$", kernel.name)[1], kernel.architecture): kernel for kernel in kernels
                 if re.search(r"\w+$", kernel.name)}
        self.code = {each: (additive_paths(named["search_codes", each]), product_loop(named["own_entries", each]))
                     for each in {gpu.architecture for gpu in ADDITIVE_GPUS}}

    def rates(self):
        """One dictionary per GPU and number of codebooks."""
        found = []
        for gpu in ADDITIVE_GPUS:
            for counts in self.counts:
                instructions, cycles = additive_estimate(gpu, *self.code[gpu.architecture], counts)
                limit = max(cycles, key=cycles.get)
                rate = gpu.multiprocessors * gpu.gigahertz * 1e9 / cycles[limit]
                found.append({"gpu": gpu.name, "codebooks": counts.codebooks, "steps": round(counts.steps),
                              "instructions": round(instructions), "bytes": round(counts.cache_bytes()), "limit": limit,
                              "vectors_per_second": round(rate), "microseconds": 1e6 / rate})
        return found

    def tables(self):
        yield "estimated encoding rates", ["GPU, codebooks", "steps", "1000 instructions", "KB from the L2 cache",
                                           "10^6 vectors per second", "limit", "microseconds per vector"], [
            [f"{each['gpu']}, {each['codebooks']}", each["steps"], f"{each['instructions'] / 1e3:.0f}",
             f"{each['bytes'] / 1e3:.0f}", f"{each['vectors_per_second'] / 1e6:.2f}", each["limit"],
             f"{each['microseconds']:.2f}"] for each in self.rates()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="selection, lists, additive; default: all")
    parser.add_argument("--objects", type=Path, default=OBJECTS, help="folder of the objects that nvcc compiled")
    parser.add_argument("--tests", type=Path, help="cuda_backend_tests of preset emulated")
    arguments = parser.parse_args()
    evidence = {"selection": SelectionEvidence, "lists": lambda kernels, _: ListEvidence(kernels),
                "additive": AdditiveEvidence}
    if unknown := set(arguments.what) - set(evidence):
        parser.error(f"no such estimate: {', '.join(sorted(unknown))}; choose from {', '.join(evidence)}")
    objects = sorted(arguments.objects.glob("**/*.cu.o"))
    if not objects:
        raise SystemExit(f"gpu_estimate: no objects in {arguments.objects}: build preset cuda first")
    tests = arguments.tests or next(EMULATED_TESTS.rglob("cuda_backend_tests"), EMULATED_TESTS)
    kernels = kernel_report.collect(objects)
    for name in arguments.what or evidence:
        for title, head, rows in evidence[name](kernels, tests).tables():
            lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
            print(f"{name}: {title}\n", *("| " + " | ".join(map(str, line)) + " |" for line in lines), "", sep="\n")


if __name__ == "__main__":
    sys.exit(main())
