"""Answers of searches in parts of a base, joined."""

from __future__ import annotations

from typing import Any, Iterable

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors, adopt, as_neighbors


def merge_neighbors(parts: Iterable[Any], k: int, *, metric: Metric = "sqeuclidean", threads: int = 0) -> Neighbors:
    """The answer of a search in all rows, from those of searches in parts of them.

    For those who search parts by themselves, in other processes or on other machines; `nearwise.cluster` does it on Ray.

    Parameters
    ----------
    parts : iterable of Neighbors, or of pairs (ids, distances)
        Each [queries, any number], as a search returns it: best first, -1 behind the last neighbour. All have the same
        queries, and no row in common; ids are numbered through already.
    k : int
        Where all parts together have fewer, the answer ends in id -1 at distance +inf (-inf for inner_product).
    metric, threads
        As in `nearwise.knn`; the metric is the one that the parts were searched by.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> first, second = nearwise.knn(base, base[:2], k=2), nearwise.knn(base, base[2:], k=1)
    >>> nearwise.merge_neighbors([first, (second.ids + 2, second.distances)], k=2).ids
    array([[0, 2],
           [1, 2],
           [2, 0]])
    """
    given = [tuple(as_neighbors(part)) for part in parts]
    return adopt(
        _core.merge_neighbors(
            given, _options.neighbor_count(k), _options.word(metric, "metric"), _options.thread_count(threads)
        )
    )
