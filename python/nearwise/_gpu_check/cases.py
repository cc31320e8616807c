"""The table of all cases. An operation that the CUDA backend gains needs one: python/tests/test_gpu_check.py."""

from __future__ import annotations

from nearwise._gpu_check import codes, graphs, lists, searches
from nearwise._gpu_check.case import Case

CASES: tuple[Case, ...] = (*searches.CASES, *codes.CASES, *lists.CASES, *graphs.CASES)
SECTIONS: tuple[str, ...] = tuple(dict.fromkeys(case.section for case in CASES))
