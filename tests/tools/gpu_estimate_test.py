import pytest

import gpu_estimate
import kernel_paths
import kernel_report


def instructions(**numbers):
    return [kernel_report.Instruction(0, name, name) for name, number in numbers.items() for _ in range(number)]


class Selection:
    """A kernel whose ways are given."""

    def __init__(self, registers=32, **ways):
        self.kernel = kernel_report.Kernel("k", 90, registers=registers)
        self.found = dict.fromkeys(("fast_round", "candidate_round", "insertion", "merge", "once"), []) | ways

    def ways(self):
        return self.found


def counts(shuffles=0, columns=1000, **times):
    return gpu_estimate.Counts(1, columns, shuffles, dict.fromkeys(kernel_paths.ScanPaths._fields, 0) | times)


# One multiprocessor of 1 GHz, to which memory delivers 10 bytes in a cycle.
GPU = gpu_estimate.Gpu("small", 90, 1, 1.0, 0.01)


def test_instructions_are_lengths_times_counts():
    found = gpu_estimate.estimate(GPU, Selection(fast_round=instructions(BRA=3), merge=instructions(NOP=10, BRA=1)),
                                  counts(fast_round=100, merge=2))
    assert found.instructions == 322
    assert found.cycles["issue"] == 322 / 4
    assert found.memory_cycles == 400
    assert found.share() == 1 and found.limit() == "memory"


@pytest.mark.parametrize(("name", "unit", "cycles"), [
    ("SHFL", "memory and shuffles", 1000), ("LDS", "memory and shuffles", 1000), ("ISETP", "integer and compare", 500),
    ("SEL", "integer and compare", 500), ("IMAD", "multiply-add", 500), ("POPC", "bit counts", 2000)])
def test_units_with_few_lanes_limit(name, unit, cycles):
    found = gpu_estimate.estimate(GPU, Selection(merge=instructions(**{name: 10})), counts(merge=100))
    assert found.cycles["issue"] == 250
    assert (found.busiest(), found.cycles[unit], found.limit()) == (unit, cycles, unit)
    assert found.share() == 400 / cycles


def test_few_warps_do_not_hide_the_latency():
    fast_round = instructions(BRA=1)
    many = gpu_estimate.estimate(GPU, Selection(fast_round=fast_round), counts(fast_round=1))
    few = gpu_estimate.estimate(gpu_estimate.Gpu("wide", 90, 1, 1.0, 0.1), Selection(registers=255, fast_round=fast_round),
                                counts(fast_round=1))
    needed = 100 * gpu_estimate.LATENCY_NANOSECONDS
    assert many.share() == 1
    assert few.limit() == "latency"
    assert few.share() == 8 * gpu_estimate.values_per_lane() * 128 / needed


def test_counts_are_read_per_row():
    recorded = {"rows": "4", "rounds": "40", "candidate_rounds": "8", "insertions": "20", "merges": "6", "shuffles": "60"}
    tests = [{"name": "AreCounted/k10_columns1000"} | recorded, {"name": "AreCounted/k9_columns1000"},
             {"name": "Other"} | recorded]
    (found,) = gpu_estimate.read_counts({"testsuites": [{"testsuite": tests}]})
    assert (found.k, found.columns, found.shuffles) == (10, 1000, 15)
    assert found.times == {"fast_round": 8, "candidate_round": 2, "insertion": 5, "merge": 1.5, "once": 1}


def test_the_disassembly_must_agree_with_the_device():
    selection = Selection(merge=instructions(SHFL=12, SEL=5))
    gpu_estimate.check_shuffles(selection, counts(shuffles=10, merge=2))
    with pytest.raises(SystemExit, match="12 shuffles in a merge, and the emulated device did 14"):
        gpu_estimate.check_shuffles(selection, counts(shuffles=12, merge=2))


def test_what_is_missing_is_said(tool, tmp_path):
    missing = tool("gpu_estimate.py", "--objects", tmp_path)
    assert missing.returncode == 1 and "build preset cuda first" in missing.stderr
