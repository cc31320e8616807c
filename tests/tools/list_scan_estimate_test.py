import pytest

import gpu_estimate
import kernel_report
import list_scan_estimate


def instruction(name, address=0, target=None):
    return kernel_report.Instruction(address, name, name if target is None else f"{name} {target:#x}")


def kernel(*names, bits=8):
    """A loop of these, and one around it with a barrier."""
    inside = [instruction(name, 16 + 16 * i) for i, name in enumerate(names)]
    end = 16 + 16 * len(names)
    return kernel_report.Kernel("k", 90, name=f"nearwise::gpu::scan_codes<{bits}u>", instructions=[
        instruction("BAR", 0), *inside, instruction("BRA", end, 16), instruction("BRA", end + 16, 0)])


# One multiprocessor of 1 GHz, to which memory delivers 10 bytes in a cycle.
GPU = gpu_estimate.Gpu("small", 90, 1, 1.0, 0.01)


def test_the_inner_loop_is_found():
    loop = list_scan_estimate.scan_loop(kernel("LDG", *["LDS", "FADD"] * 4))
    assert (loop.lookups(), loop.count("LDG"), len(loop.instructions)) == (4, 1, 10)
    assert loop.loaded_bytes() == loop.code_bytes() == 128
    assert list_scan_estimate.scan_loop(kernel("LDG", *["LDS"] * 8, bits=4)).code_bytes() == 128


def test_a_kernel_without_lookups_is_refused():
    with pytest.raises(SystemExit, match="0 loops of lookups"):
        list_scan_estimate.scan_loop(kernel("LDG", "FADD"))


def test_lookups_at_random_places_meet_in_banks():
    assert list_scan_estimate.conflict_cycles(1) == 1  # all lanes want the same word
    assert list_scan_estimate.conflict_cycles(32) == 1  # a bank has one word
    assert 3 < list_scan_estimate.conflict_cycles(256) < 3.5


def test_the_slowest_of_all_is_the_limit():
    few = list_scan_estimate.scan_loop(kernel("LDG", *["LDS", "FADD"] * 4))
    found = list_scan_estimate.estimate(GPU, few, 16)
    # 16 bytes of codes and 12 others of every row, 10 in a cycle.
    assert found.limit == "memory" and found.share == 1 and found.rows_per_second == pytest.approx(1e9 / 2.8)
    many = list_scan_estimate.scan_loop(kernel("LDG", *["LDS", *["IADD3"] * 200] * 4))
    found = list_scan_estimate.estimate(GPU, many, 16)
    assert found.limit == "integer and compare" and found.share < 1
