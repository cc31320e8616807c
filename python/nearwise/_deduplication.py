"""What the removal of near-duplicates gives, in memory and in files."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Deduplication(NamedTuple):
    """What `dedup` keeps and removes.

    kept : int64 [kept]
        Row numbers, ascending: ``x[kept]`` has no duplicates.
    groups : int64 [rows]
        The kept row of every row's group; of a kept row, itself.
    removed_by : int64 [rows]
        The duplicate that removed each row; -1: it is kept.
    distances : float32 [rows]
        To that duplicate; of kept rows +inf (-inf for inner_product).
    pairs : int
        Pairs of duplicates that were found.
    """

    kept: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    removed_by: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]
    pairs: int


def adopt_deduplication(arrays: tuple[Any, Any, Any, npt.NDArray[np.float32], int]) -> Deduplication:
    kept, groups, removed_by, distances, pairs = arrays
    return Deduplication(kept.view(np.int64), groups.view(np.int64), removed_by.view(np.int64), distances, pairs)
