"""Results: as the library returns them, and as callers hand them back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class Neighbors(NamedTuple):
    """The answer of a search, best first, the lower id first in a tie.

    ids : int64 [queries, k]
        Row numbers in the base; -1 where `short_rows="pad"` filled a row.
    distances : float32 [queries, k]
    """

    ids: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]


def adopt(pair: tuple[np.ndarray, np.ndarray]) -> Neighbors:
    """What C++ returned. Its 64-bit integers arrive as C's `long long`, which numpy shows as a type of its own."""
    return Neighbors(pair[0].view(np.int64), pair[1])


def as_neighbors(value: Any) -> Neighbors:
    """A Neighbors, or any pair of ids and distances, in the library's types."""
    try:
        ids, distances = value
    except (TypeError, ValueError):
        raise TypeError(f"neighbors: expected a pair (ids, distances), given {type(value).__name__}") from None
    ids, distances = np.asarray(ids), np.asarray(distances)
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint64:
        raise ValueError(f"neighbors: ids must be integers that int64 holds, given dtype {ids.dtype}")
    if distances.dtype.kind != "f":
        raise ValueError(f"neighbors: distances must be floats, given dtype {distances.dtype}")
    if ids.ndim != 2 or ids.shape != distances.shape:
        raise ValueError(
            f"neighbors: ids and distances must have one shape [queries, k], given {ids.shape} and {distances.shape}"
        )
    return Neighbors(
        np.ascontiguousarray(ids, dtype=np.int64), np.ascontiguousarray(distances, dtype=np.float32)
    )
