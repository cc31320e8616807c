"""Results of searches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, Context, operation
from nearwise._progress import ProgressArgument
from nearwise._rows import contiguous

Metric = Literal["sqeuclidean", "euclidean", "inner_product", "cosine"]
MetricArgument = Metric | Literal["l2", "l2sq", "ip", "dot", "cos"]  # _options.METRIC_ALIASES


class Neighbors(NamedTuple):
    """The result of a search, best first, the lower id first in a tie. Unpacks as (ids, distances).

    ids : int64 [queries, k]; [k] if the query was one vector
        Row numbers in the base, or the ids of an index; -1 after the last neighbor.
    distances : float32, of the same shape
    """

    ids: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]


class RangeNeighbors(NamedTuple):
    """Results of different lengths: query q has [offsets[q], offsets[q + 1]), best first.

    offsets : int64 [queries + 1]
    ids : int64 [offsets[-1]]
        Row numbers in the base; the lower first in a tie.
    distances : float32 [offsets[-1]]
    """

    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]

    def of(self, query: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """ids and distances of one query, as views."""
        number = range(len(self.offsets) - 1)[query]  # accepts negative numbers; IndexError beyond the ends
        part = slice(self.offsets[number], self.offsets[number + 1])
        return self.ids[part], self.distances[part]

    def pairs(self) -> npt.NDArray[np.int64]:
        """int64 [offsets[-1], 2]: the query and the id of every result, query after query."""
        queries = np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int64), np.diff(self.offsets))
        return np.stack([queries, self.ids], axis=1)


def adopt(pair: tuple[npt.NDArray[Any], npt.NDArray[np.float32]], call: Call | None = None) -> Neighbors:
    """What C++ returned for all queries of a call, or for its one vector.

    64-bit integers of C++ arrive as C's `long long`, which numpy displays as a separate type.
    """
    ids, distances = pair[0].view(np.int64), pair[1]
    return Neighbors(ids[0], distances[0]) if call is not None and call.one_query else Neighbors(ids, distances)


def adopt_range(arrays: tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float32]]) -> RangeNeighbors:
    return RangeNeighbors(arrays[0].view(np.int64), arrays[1].view(np.int64), arrays[2])


def as_neighbors(value: Any) -> Neighbors:
    """A Neighbors, or any pair of ids and distances, in the library's types; those of one query as one row."""
    ids, distances = _pair(value)
    return Neighbors(np.atleast_2d(ids), np.atleast_2d(distances))


def _pair(value: Any) -> Neighbors:
    """A Neighbors, or any pair of ids and distances, in the library's types and their own shape."""
    try:
        ids, distances = value
    except (TypeError, ValueError):
        raise TypeError(f"neighbors: expected a pair (ids, distances), got {type(value).__name__}") from None
    ids, distances = np.asarray(ids), np.asarray(distances)
    if ids.dtype.kind not in "iu" or ids.dtype == np.uint64:
        raise ValueError(f"neighbors: ids must be integers that int64 holds, got dtype {ids.dtype}")
    if distances.dtype.kind != "f":
        raise ValueError(f"neighbors: distances must be floats, got dtype {distances.dtype}")
    if ids.ndim not in (1, 2) or ids.shape != distances.shape:
        raise ValueError(
            "neighbors: ids and distances must have one shape [queries, k] or [k], "
            f"got {ids.shape} and {distances.shape}"
        )
    return Neighbors(contiguous(ids, np.int64), contiguous(distances, np.float32))


@operation
def merge_neighbors(
    parts: Iterable[Any],
    k: int,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    context: Context | None = None,
    threads: int | None = None,
    progress: ProgressArgument = None,
) -> Neighbors:
    """The k best of the results of searches in disjoint parts of a base.

    For searches that run in other processes or on other machines; `nearwise.cluster` does this on Ray.

    Parameters
    ----------
    parts : iterable of Neighbors, or of pairs (ids, distances)
        Each [queries, any number], as a search returns it; [any number] for one query. All have the same queries;
        ids must be unique across the parts.
    k : int
        If all parts together have fewer, rows end in id -1 at distance +inf (-inf for inner_product).
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        That of the searches.
    context, threads, progress
        See `nearwise.Context`. It works on the CPU.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> first, second = nearwise.knn(base, base[:2], k=2), nearwise.knn(base, base[2:], k=1)
    >>> nearwise.merge_neighbors([first, (second.ids + 2, second.distances)], k=2).ids
    array([[0, 2],
           [1, 2],
           [2, 0]])
    """
    pairs = [_pair(part) for part in parts]
    call, given = Call("merge_neighbors", context), {"parts": [as_neighbors(pair) for pair in pairs]}
    call.one_query = bool(pairs) and all(pair.ids.ndim == 1 for pair in pairs)
    return adopt(call.run(_core.merge_neighbors, given, k=k, metric=metric), call)
