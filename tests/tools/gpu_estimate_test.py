import importlib.util
import re
from pathlib import Path

import pytest

import gpu_estimate
import kernel_report

ROOT = Path(__file__).resolve().parents[2]

# One multiprocessor of 1 GHz with a memory bandwidth of 10 bytes per cycle.
GPU = gpu_estimate.Gpu("small", 90, 1, 1.0, 0.01)


def kernel(text, name="k"):
    """A kernel from lines "label: [@predicate] NAME [label]"."""
    lines = [line.strip().rpartition(": ")[::2] for line in text.strip().splitlines()]
    addresses = {label: 16 * i for i, (label, _) in enumerate(lines) if label}
    instructions = []
    for i, (_, line) in enumerate(lines):
        words = [f"{addresses[word]:#x}" if word in addresses else word for word in line.split()]
        instructions.append(kernel_report.Instruction(16 * i, words[1] if line.startswith("@") else words[0],
                                                      " ".join(words)))
    return kernel_report.Kernel("k", 90, name=f"nearwise::gpu::{name}", instructions=instructions)


def instructions(**numbers):
    return [kernel_report.Instruction(0, name, name) for name, number in numbers.items() for _ in range(number)]


SCAN = """
start: LDG.E
FSETP.GE
VOTE.ANY
@P1 BRA merge
IADD3
@P2 BRA start
EXIT
NOP
merge: SHFL.BFLY
BRA start
"""


def test_the_shortest_round_has_its_loads_and_no_shuffle():
    assert sorted(gpu_estimate.shortest_round(kernel(SCAN), 1)) == [0, 1, 2, 3, 4, 5]
    assert len(gpu_estimate.shortest_round(kernel(SCAN), 3)) == 18  # three passes


def test_a_predicated_load_does_not_count():
    assert gpu_estimate.shortest_round(kernel(SCAN.replace("LDG.E", "@P3 LDG.E")), 1) is None


def test_a_kernel_without_a_vote_has_no_round():
    other = kernel(SCAN.replace("VOTE.ANY", "VOTEU.ALL"))
    assert gpu_estimate.shortest_round(other, 1) is None
    assert gpu_estimate.selection_paths(other, 1) is None


# Rounds over a row; candidates are queued pass by pass and merged when the queue is full.
SELECTION = """
LDC
round: @P3 BRA partial
LDG.E
FSETP.GE
BRA vote
partial: @!P4 LDG.E
vote: BRA.DIV diverged
VOTE.ANY
back: @!P1 BRA next
SEL
pass: @P5 BRA full
STS.64
full: VOTE.ANY
@!P2 BRA again
SHFL.BFLY
SHFL.BFLY
SEL
again: @P6 BRA pass
next: @P2 BRA round
STG.E
EXIT
end: BRA end
diverged: WARPSYNC.COLLECTIVE
VOTE.ANY
BRA back
"""


def test_the_paths_of_a_selection():
    paths = {name: sorted(found) for name, found in gpu_estimate.selection_paths(kernel(SELECTION), 1).items()}
    assert paths == {"fast_round": [1, 2, 3, 4, 6, 7, 8, 18], "candidate_round": [1, 2, 3, 4, 6, 7, 8, 9, 18],
                     "insertion": [10, 11, 12, 13, 17],  # both sides of the branch: lanes take either
                     "merge": [14, 15, 16], "once": [0, 19, 20]}


def test_a_conditional_call_leaves_a_loop():
    text = SELECTION.replace("@P6 BRA pass", "@!P6 CALL.REL.NOINC last").replace("@P2 BRA round", "BRA pass")
    text = text.replace("STG.E", "last: @P2 BRA round").replace("@!P1 BRA next", "@!P1 BRA last")
    paths = gpu_estimate.selection_paths(kernel(text), 1)
    assert sorted(paths["fast_round"]) == [1, 2, 3, 4, 6, 7, 8, 19]
    assert sorted(paths["insertion"]) == [10, 11, 12, 13, 17, 18]


@pytest.mark.parametrize(("text", "instead"), [("SHFL.BFLY", "MOV"), ("@P6 BRA pass", "NOP")])
def test_a_kernel_without_merges_or_passes_is_refused(text, instead):
    assert gpu_estimate.selection_paths(kernel(SELECTION.replace(text, instead)), 1) is None


def selection(registers=32, **paths):
    return gpu_estimate.Selection(kernel_report.Kernel("k", 90, registers=registers),
                                  dict.fromkeys(gpu_estimate.PATHS, []) | paths)


def counts(shuffles=0, **times):
    return gpu_estimate.SelectionCounts(1, 1000, shuffles, dict.fromkeys(gpu_estimate.PATHS, 0) | times)


def test_instructions_are_lengths_times_counts():
    found = selection(fast_round=instructions(BRA=3), merge=instructions(NOP=10, BRA=1)).estimate(
        GPU, counts(fast_round=100, merge=2))
    assert found.instructions == 322
    assert found.cycles["issue"] == 322 / 4
    assert found.memory_cycles == 400
    assert found.share() == 1 and found.limit() == "memory"


@pytest.mark.parametrize(("name", "unit", "cycles"), [
    ("SHFL", "memory and shuffles", 1000), ("LDS", "memory and shuffles", 1000), ("ISETP", "integer and compare", 500),
    ("SEL", "integer and compare", 500), ("IMAD", "multiply-add", 500), ("POPC", "bit counts", 2000)])
def test_units_with_few_lanes_limit(name, unit, cycles):
    found = selection(merge=instructions(**{name: 10})).estimate(GPU, counts(merge=100))
    assert found.cycles["issue"] == 250
    assert (found.busiest(), found.cycles[unit], found.limit()) == (unit, cycles, unit)
    assert found.share() == 400 / cycles


def test_few_warps_do_not_hide_the_latency():
    few = selection(registers=255, fast_round=instructions(BRA=1)).estimate(
        GPU._replace(terabytes_per_second=0.1), counts(fast_round=1))
    assert few.limit() == "latency"
    assert few.share() == 8 * gpu_estimate.values_per_lane() * 128 / (100 * gpu_estimate.LATENCY_NANOSECONDS)


def report(*tests):
    return gpu_estimate.counted_tests({"testsuites": [{"testsuite": list(tests)}]})


def test_selection_counts_are_per_row():
    recorded = {"rows": "4", "rounds": "40", "candidate_rounds": "8", "insertions": "20", "merges": "6", "shuffles": "60"}
    (found,) = gpu_estimate.read_selection_counts(report(
        {"name": "AreCounted/k10_columns1000"} | recorded, {"name": "AreCounted/k9_columns1000"},
        {"name": "Other"} | recorded))
    assert (found.k, found.columns, found.shuffles) == (10, 1000, 15)
    assert found.times == {"fast_round": 8, "candidate_round": 2, "insertion": 5, "merge": 1.5, "once": 1}


def test_compiled_code_must_agree_with_the_emulated_device():
    merging = selection(merge=instructions(SHFL=12, SEL=5))
    merging.check_shuffles(counts(shuffles=10, merge=2))
    with pytest.raises(SystemExit, match="12 shuffles in a merge, the emulated device executed 14"):
        merging.check_shuffles(counts(shuffles=12, merge=2))


def scan(*names, bits=8):
    """A loop of these instructions inside a loop with a barrier."""
    inner = "\n".join(f"{'inner: ' if i == 0 else ''}{name}" for i, name in enumerate(names))
    return kernel(f"outer: BAR\n{inner}\nBRA inner\nBRA outer", f"scan_codes<{bits}u>")


def test_the_inner_loop_of_a_list_scan_is_found():
    loop = gpu_estimate.scan_loop(scan("LDG", *["LDS", "FADD"] * 4))
    assert (loop.lookups(), len(loop.instructions)) == (4, 10)
    assert loop.loaded_bytes() == loop.code_bytes() == 128
    assert gpu_estimate.scan_loop(scan("LDG", *["LDS"] * 8, bits=4)).code_bytes() == 128
    with pytest.raises(SystemExit, match="0 loops of lookups"):
        gpu_estimate.scan_loop(scan("LDG", "FADD"))


def test_random_lookups_have_bank_conflicts():
    assert gpu_estimate.conflict_cycles(1) == 1  # all lanes read the same word
    assert gpu_estimate.conflict_cycles(32) == 1  # one word per bank
    assert 3 < gpu_estimate.conflict_cycles(256) < 3.5


def test_the_slowest_unit_limits_a_list_scan():
    # 16 bytes of codes and 12 others per vector, 10 per cycle.
    rate, limit, share = gpu_estimate.scan_loop(scan("LDG", *["LDS", "FADD"] * 4)).estimate(GPU, 16)
    assert limit == "memory" and share == 1 and rate == pytest.approx(1e9 / 2.8)
    _, limit, share = gpu_estimate.scan_loop(scan("LDG", *["LDS", *["IADD3"] * 200] * 4)).estimate(GPU, 16)
    assert limit == "integer and compare" and share < 1


# An iteration of search_codes has steps, which add table rows two at a time and vote, and a cost.
SEARCH = """
iteration: MOV
step: IADD
rows: LDG.E.128
LDG.E.128
SHFL
@P0 BRA rows
VOTE.ANY
@P1 BRA least
saturating: LDG.E.128
IMNMX
@P0 BRA saturating
least: SHFL
SHFL
@P2 BRA step
cost: LDG.E
books: LDG.E
FADD
@P3 BRA books
FMUL
@P4 BRA cost
FSETP
@P5 BRA iteration
EXIT
"""
PRODUCTS = instructions(FMUL=1, FADD=1), 1
ADDITIVE_COUNTS = gpu_estimate.AdditiveCounts(codebooks=6, iterations=3, steps=10, saturated=1)


def names(found):
    return [instruction.name for instruction in found]


def test_the_loops_of_an_additive_search():
    paths = gpu_estimate.additive_paths(kernel(SEARCH))
    assert names(paths.table_rows) == ["LDG.E.128", "LDG.E.128", "SHFL", "BRA"] and paths.rows_per_pass == 2
    assert names(paths.saturating) == ["LDG.E.128", "IMNMX", "BRA"]
    assert names(paths.step) == ["IADD", "VOTE.ANY", "BRA", "SHFL", "SHFL", "BRA"]
    assert names(paths.cost_codewords) == ["LDG.E", "FADD", "BRA"] and paths.codewords_per_pass == 1
    assert names(paths.cost) == ["LDG.E", "FMUL", "BRA"]


@pytest.mark.parametrize(("text", "instead", "message"), [
    ("VOTE.ANY", "NOP", "0 votes"), ("saturating: LDG.E.128", "saturating: NOP", "1 loops over tables"),
    ("FMUL", "NOP", "0 squares")])
def test_another_kernel_is_refused(text, instead, message):
    with pytest.raises(SystemExit, match=message):
        gpu_estimate.additive_paths(kernel(SEARCH.replace(text, instead, 1)))


def test_instructions_and_bytes_of_an_additive_search():
    found, _ = gpu_estimate.additive_estimate(GPU, gpu_estimate.additive_paths(kernel(SEARCH)), PRODUCTS,
                                              ADDITIVE_COUNTS, dim=64)
    # Of five other codes a loop of two takes four; costs have 2 x 32 elements, four times; 8 warps multiply.
    steps = 10 * (6 + 2 * 4) + 1 * 5 * 3
    costs = 4 * 2 * (3 + 6 * 3)
    assert found == pytest.approx(steps + costs + 6 * 8 * 64 * 2)
    own = 6 * (256 * 64 * 4 / 16 + 2 * 512)
    assert ADDITIVE_COUNTS.cache_bytes(64) == 11 * 5 * 512 + 4 * 7 * 64 * 4 + own


def test_many_multiprocessors_wait_for_the_cache():
    paths = gpu_estimate.additive_paths(kernel(SEARCH))
    _, cycles = gpu_estimate.additive_estimate(GPU, paths, PRODUCTS, ADDITIVE_COUNTS)
    assert max(cycles, key=cycles.get) == "multiply-add"
    _, cycles = gpu_estimate.additive_estimate(GPU._replace(multiprocessors=1000), paths, PRODUCTS, ADDITIVE_COUNTS)
    assert max(cycles, key=cycles.get) == "L2 cache"
    assert 1000 * 1e9 / cycles["L2 cache"] == pytest.approx(5e12 / ADDITIVE_COUNTS.cache_bytes())


def test_additive_counts_are_per_vector():
    recorded = {"rows": "4", "iterations": "16", "steps": "800", "saturated": "2"}
    tests = report({"name": "AreCounted/codebooks7"} | recorded, {"name": "AreCounted/codebooks15"})
    assert gpu_estimate.read_additive_counts(tests) == [gpu_estimate.AdditiveCounts(7, 16, 200, 0.5)]


def test_missing_builds_and_mistakes_are_refused(tool, tmp_path):
    missing = tool("gpu_estimate.py", "--objects", tmp_path)
    assert missing.returncode == 1 and "build preset cuda first" in missing.stderr
    assert tool("gpu_estimate.py", "nothing").returncode == 2


def estimates_of_the_package():
    """python/nearwise/_gpu_check/estimates.py, without the package."""
    path = ROOT / "python" / "nearwise" / "_gpu_check" / "estimates.py"
    spec = importlib.util.spec_from_file_location("estimates", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables_of_the_note(text):
    """{first cell of the head: (other cells of the head, {first cell of a row: its other cells})}"""
    tables = {}
    for block in re.findall(r"(?:^[|].*\n)+", text, re.M):
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        tables[head[0]] = head[1:], {row[0]: row[1:] for row in rows}
    return tables


def test_the_estimates_of_gpu_check_are_those_of_the_note():
    estimates = estimates_of_the_package()
    text = (ROOT / "docs" / "notes" / "gpu-estimates.md").read_text(encoding="utf-8")
    tables = tables_of_the_note(text)
    head, rows = tables[f"rows of {estimates.SELECTION_COLUMNS}"]
    assert {gpu: {k: f"{share:.0%}" for k, share in by_k.items()} for gpu, by_k in estimates.SELECTION.items()} == {
        gpu: {k: cells[head.index(f"k = {k}")].split()[0] for k in (10, 100, 1000)} for gpu, cells in rows.items()}
    head, rows = tables["10^9 vectors per second"]
    assert estimates.LIST_SCAN == {
        gpu: {codes: int(cells[head.index(f"{codes} codes of 8 bits")].split()[0]) for codes in (16, 32, 64)}
        for gpu, cells in rows.items()}
    _, rows = tables["GPU, codebooks"]
    assert {f"{gpu}, {books}": f"{microseconds:.2f}" for gpu, by_books in estimates.ADDITIVE.items()
            for books, microseconds in by_books.items()} == {name: cells[-1] for name, cells in rows.items()}
    products = re.search(r"products: (T4 .*?)\. Not included", text.replace("\n", " "))[1]
    assert ", ".join(f"{gpu.split()[0]} {seconds} s" for gpu, seconds in estimates.GRAPH_PRODUCTS.items()) == products
    assert {gpu.name: gpu.terabytes_per_second for gpu in gpu_estimate.GPUS} == {
        name: bandwidth for name, (_, bandwidth) in estimates.GPUS.items()}
