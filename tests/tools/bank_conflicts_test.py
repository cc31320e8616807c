import sys

import pytest

import bank_conflicts

PROFILE = """
[       OK ] Kind/RowSelection.EveryCapacity/uniform (10 ms)
space   access bytes   requests  cost/request  least  source
shared  read       8        100          3.00   2.00  /clone/src/backend/cuda/kernels/sort_entries.cu:29
shared  read       8        300          2.00   2.00  /clone/src/backend/cuda/kernels/sort_entries.cu:29
shared  write      4         10          1.00   1.00  /clone/src/backend/cuda/block/digit_search.cuh:24 (discriminator 2)
shared  write      4         10          1.00   1.00  /clone/tests/cuda_emulation/other_test.cu:24
global  read       4         10          8.00   4.00  /clone/src/backend/cuda/kernels/sort_entries.cu:30
"""


def test_lines_of_shared_memory_are_read_and_added_up():
    rows = bank_conflicts.together(bank_conflicts.read_profile(PROFILE))
    assert rows == {("block/digit_search.cuh", 24, "write", 4): (10, 1, 1),
                    ("kernels/sort_entries.cu", 29, "read", 8): (400, 2.25, 2)}
    assert "| `kernels/sort_entries.cu:29` | read 8 | 400 | 2.25 | 2.00 |" in bank_conflicts.table(rows)


@pytest.mark.parametrize(("body", "message"), [("", "is it the check build"), ("sys.exit(1)", "failed")])
def test_a_program_that_counts_nothing_is_refused(tool, tmp_path, body, message):
    program = tmp_path / "tests"
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    program.chmod(0o755)
    refused = tool("bank_conflicts.py", "--tests", program)
    assert refused.returncode == 1 and message in refused.stderr
