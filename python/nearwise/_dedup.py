"""Pairs of vectors within a threshold, and the removal of near-duplicates."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Settings, operation
from nearwise._error import ArgumentError
from nearwise._neighbors import MetricArgument, RangeNeighbors, adopt_range

GROUPINGS = ("star", "connected")
KEPT = ("first", "medoid")


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


def _threshold(operation: str, radius: Any, similarity: Any, metric: Any) -> tuple[float, str]:
    """The threshold of reported distances, and the metric."""
    if (radius is None) == (similarity is None):
        raise TypeError(f"{operation}() takes radius= or similarity=, one of the two")
    if radius is not None:
        return _options.rounded(radius, "radius"), _options.metric("sqeuclidean" if metric is None else metric)
    own = _options.metric("cosine" if metric is None else metric)
    return _core.threshold_of_similarity(metric=own, similarity=_options.number(similarity, "similarity")), own


@operation
def threshold_join(
    rows: Any,
    *,
    radius: float | None = None,
    similarity: float | None = None,
    metric: MetricArgument | None = None,
    **settings: Unpack[Settings],
) -> RangeNeighbors:
    """All pairs of vectors within a threshold, each once, by exact search.

    A pair is in the result if and only if its reported distance is within the threshold: the same decision, to the
    last bit, on every instruction set and with any number of threads.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.knn`.
    radius : float
        Largest distance of a pair (inner_product: smallest product), in the metric's own unit.
    similarity : float
        In place of radius, for cosine and inner_product: the smallest similarity of a pair. For cosine a distance of
        at most 1 - similarity, rounded to float32 as distances are.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        Default: cosine with similarity, sqeuclidean with radius.
    context, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; CUDA devices do not support it (`Error` code unsupported). The number of pairs is not
        known in advance: `memory_limit` is checked while it grows.

    Returns
    -------
    RangeNeighbors
        Of row i, the rows above i that it forms a pair with, ascending; `pairs()` lists all pairs.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [3, 4], [0, 1], [3, 3]], dtype=np.float32)
    >>> nearwise.threshold_join(rows, radius=1.5, metric="euclidean").pairs()
    array([[0, 2],
           [1, 3]])
    """
    threshold, own = _threshold("threshold_join", radius, similarity, metric)
    call = Call("threshold_join", settings)
    return adopt_range(call.run(_core.threshold_join, {"threshold": threshold, "metric": own}, rows=rows))


@operation
def dedup(
    rows: Any,
    *,
    similarity: float | None = None,
    radius: float | None = None,
    metric: MetricArgument | None = None,
    keep: Literal["first", "medoid"] | npt.ArrayLike | None = "first",
    grouping: Literal["star", "connected"] | None = "star",
    **settings: Unpack[Settings],
) -> Deduplication:
    """Removes near-duplicate vectors: those within a threshold of a vector that is kept.

    All pairs are compared (`threshold_join`), so none is missed, and decisions do not depend on instruction set or
    threads.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.knn`.
    similarity, radius, metric
        What a duplicate is, as in `threshold_join`.
    keep : {"first", "medoid"} or array of scores [rows]
        Which row of a group is kept: the first, the one with the most duplicates, or the one with the highest score;
        the lowest row in a tie.
    grouping : {"star", "connected"}
        star: rows are considered in the order in which `keep` prefers them; a row that is no duplicate of one kept
        before it is kept, any other is removed by the nearest of these. So every removed row is a duplicate of the row
        that is kept for it. connected: the connected components of all pairs, of each of which one row is kept; a
        removed row may be far from it, at the end of a chain of duplicates.
    context, device, threads, memory_limit, isa, progress
        As in `threshold_join`.

    Returns
    -------
    Deduplication
        A named tuple of kept, groups, removed_by, distances and pairs.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 2]], dtype=np.float32)
    >>> found = nearwise.dedup(rows, similarity=0.95)
    >>> found.kept
    array([0, 1])
    >>> found.removed_by
    array([-1, -1,  0,  1])
    """
    threshold, own = _threshold("dedup", radius, similarity, metric)
    by_name = isinstance(keep, str)
    if by_name:
        _options.choice(keep, "keep", KEPT)
    ready = {
        "threshold": threshold,
        "metric": own,
        "keeps_medoids": by_name and keep == "medoid",
        "scores": None if by_name else _scores(keep),
        "connected": _options.choice(grouping, "grouping", GROUPINGS) == "connected",
    }
    kept, groups_of_rows, removed_by, distances, pairs = Call("dedup", settings).run(_core.dedup, ready, rows=rows)
    return Deduplication(
        kept.view(np.int64), groups_of_rows.view(np.int64), removed_by.view(np.int64), distances, pairs
    )


def _scores(values: Any) -> npt.NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise ArgumentError(
            f"keep: expected 'first', 'medoid' or a 1-D array of scores, got {array.ndim}-D of dtype {array.dtype}"
        )
    return np.ascontiguousarray(array, dtype=np.float64)
