"""Less memory than a call needs (RLIMIT_AS)."""

import resource
from pathlib import Path

import isolation
import numpy as np
from limits import limits_of
from outcomes import NotApplicable, Outcome, right, right_if, wrong
from vectors import normal

from cases.registry import Cases

CASES = Cases()
MIB = 1 << 20
ROWS = 400_000
DIM = 256


def leave(bytes):
    """Limits the address space to what is used now and so much more."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + bytes, used + bytes))


@CASES.add("bulk", seconds=120, is_alone=True, is_quick=False)
def little_memory_to_add(adapter):
    """adding 400 MB in 160 MB of address space"""
    has_capacity = "capacity" not in adapter.lacks
    index = None if has_capacity else adapter.empty(dim=DIM)
    vectors = np.zeros((ROWS, DIM), np.float32)
    vectors[:, 0] = np.arange(ROWS) / ROWS
    leave(160_000_000)
    if has_capacity:
        index = adapter.empty(dim=DIM, capacity=ROWS)
    adapter.add(index, vectors)
    found = int(adapter.search(index, vectors[:1], 1)[0][0, 0])
    return right_if(adapter.size(index) == ROWS and 0 <= found < ROWS, f"added, id {found}")


@CASES.add("save", "grow", supervises=True)
def little_memory_to_load(adapter):
    """loading a file in a third of its size of address space"""
    path = adapter.folder / "large"
    rows = 20_000 if adapter.quick else 60_000

    def save():
        index = adapter.empty(capacity=rows)
        adapter.add(index, normal(rows, 32))
        adapter.save(index, path)
        return right()

    def load():
        leave(path.stat().st_size // 3)
        adapter.load(path)
        return wrong("loaded")

    saved = isolation.run(save, limits_of(adapter, 600))
    if saved.outcome != Outcome.RIGHT:
        return saved
    if path.stat().st_size < 2 * MIB:
        raise NotApplicable("the file is small")
    return isolation.run(load, limits_of(adapter))
