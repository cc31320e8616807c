import pytest

import additive_estimate
import gpu_estimate
import kernel_report

# What search_codes is made of: an iteration has steps, which add rows of tables in a loop of two and vote, and a cost.
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


def kernel(text, name="search_codes"):
    lines = [line.rpartition(": ")[::2] for line in text.strip().splitlines()]
    places = {label[0]: 16 * i for i, (*label, _) in enumerate(lines) if label[0]}
    instructions = []
    for i, (_, line) in enumerate(lines):
        words = line.split()
        if words[-1] in places:
            words[-1] = f"{places[words[-1]]:#x}"
        instructions.append(kernel_report.Instruction(16 * i, words[1] if line.startswith("@") else words[0], " ".join(words)))
    return kernel_report.Kernel("k", 90, name=f"nearwise::gpu::{name}", instructions=instructions)


PRODUCTS = kernel_report.Instruction(0, "FMUL", "FMUL"), kernel_report.Instruction(16, "FADD", "FADD")
# One multiprocessor of 1 GHz.
GPU = gpu_estimate.Gpu("small", 90, 1, 1.0, 1.0)
COUNTS = additive_estimate.Counts(codebooks=6, iterations=3, steps=10, saturated=1)


def names(instructions):
    return [instruction.name for instruction in instructions]


def test_loops_are_told_apart():
    ways = additive_estimate.search_ways(kernel(SEARCH))
    assert names(ways.table_rows) == ["LDG.E.128", "LDG.E.128", "SHFL", "BRA"] and ways.rows_at_once == 2
    assert names(ways.saturating) == ["LDG.E.128", "IMNMX", "BRA"]
    assert names(ways.step) == ["IADD", "VOTE.ANY", "BRA", "SHFL", "SHFL", "BRA"]
    assert names(ways.cost_books) == ["LDG.E", "FADD", "BRA"] and ways.books_at_once == 1
    assert names(ways.cost) == ["LDG.E", "FMUL", "BRA"]


@pytest.mark.parametrize("missing, message", [("VOTE.ANY", "0 votes"), ("saturating: LDG.E.128\n", "1 loops over tables"),
                                              ("FMUL", "0 squares")])
def test_another_kernel_is_refused(missing, message):
    text = SEARCH.replace(missing, "saturating: " if missing.endswith("\n") else "NOP", 1)
    with pytest.raises(SystemExit, match=message):
        additive_estimate.search_ways(kernel(text))


def test_instructions_and_bytes_of_a_vector():
    ways = additive_estimate.search_ways(kernel(SEARCH))
    found = additive_estimate.estimate(GPU, ways, (list(PRODUCTS), 1), COUNTS, dim=64)
    # Of five other codes a loop of two has four; costs have 2 x 32 elements, four times; 8 warps multiply.
    steps = 10 * (6 + 2 * 4) + 1 * 5 * 3
    costs = 4 * 2 * (3 + 6 * 3)
    assert found.instructions == pytest.approx(steps + costs + 6 * 8 * 64 * 2)
    own = 6 * (256 * 64 * 4 / 16 + 2 * 512)
    assert found.cache_bytes == 11 * 5 * 512 + 4 * 7 * 64 * 4 + own


def test_the_slowest_of_all_is_the_limit():
    ways = additive_estimate.search_ways(kernel(SEARCH))
    products = (list(PRODUCTS), 1)
    found = additive_estimate.estimate(GPU, ways, products, COUNTS)
    assert found.limit() == "multiply-add"
    assert found.vectors_per_second(GPU) == pytest.approx(1e9 / found.cycles["multiply-add"])
    many = additive_estimate.estimate(GPU._replace(multiprocessors=1000), ways, products, COUNTS)
    assert many.limit() == "second cache"
    assert many.vectors_per_second(GPU._replace(multiprocessors=1000)) == pytest.approx(5e12 / many.cache_bytes)


def test_counts_are_per_row():
    tests = [{"name": "AreCounted/codebooks7", "rows": "4", "iterations": "16", "steps": "800", "saturated": "2"},
             {"name": "AreCounted/codebooks15"}, {"name": "Other"}]
    assert additive_estimate.read_counts({"testsuites": [{"testsuite": tests}]}) == [additive_estimate.Counts(7, 16, 200, 0.5)]
