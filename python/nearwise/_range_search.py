"""All rows within a radius."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit


class RangeNeighbors(NamedTuple):
    """Answers of different lengths: those of query q are [offsets[q], offsets[q + 1]), best first.

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
        number = range(len(self.offsets) - 1)[query]  # negative ones count from the end, others are an IndexError
        part = slice(self.offsets[number], self.offsets[number + 1])
        return self.ids[part], self.distances[part]


def range_search(
    queries: Any,
    base: Any,
    radius: float,
    *,
    metric: Metric = "sqeuclidean",
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> RangeNeighbors:
    """All rows of `base` within `radius` of each row of `queries`, exactly.

    Those whose reported distance is at most `radius`; for inner_product, at least. As with `nearwise.knn` the answer
    is the same, bit for bit, on every instruction set and with any number of threads.

    Parameters
    ----------
    queries, base : array [rows, dim]
        As in `nearwise.knn`.
    radius : float
        In the metric's own unit (sqeuclidean: a squared distance), rounded to float32 as distances are. Infinity is
        accepted, NaN is not.
    metric, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; CUDA devices do not have it yet and say so (`Error` code unsupported). How many answers
        there will be is not known before: what exceeds `memory_limit` is refused when it is found.

    Returns
    -------
    RangeNeighbors
        A named tuple of offsets, int64 [queries + 1], ids, int64, and distances, float32.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> found = nearwise.range_search(base[:2], base, radius=1.5, metric="euclidean")
    >>> found.offsets
    array([0, 2, 3])
    >>> found.ids
    array([0, 2, 1])
    >>> ids, distances = found.of(0)
    >>> distances
    array([0., 1.], dtype=float32)
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    query_rows = as_rows(queries, "queries", limit)
    base_rows = as_rows(base, "base", limit)
    rest = rest_of_limit(limit, "range_search", query_rows, base_rows)
    with reporting(progress, "range_search") as report:
        found = _core.range_search(
            query_rows.array,
            query_rows.type,
            base_rows.array,
            base_rows.type,
            _options.radius(radius),
            _options.word(metric, "metric"),
            device_for(device, query_rows.array, base_rows.array),
            _options.thread_count(threads),
            rest,
            _options.word(isa, "isa"),
            report,
        )
    return adopt(found)


def adopt(arrays: tuple[np.ndarray, np.ndarray, np.ndarray]) -> RangeNeighbors:
    """What C++ returned, its 64-bit integers by the name that numpy prefers."""
    return RangeNeighbors(arrays[0].view(np.int64), arrays[1].view(np.int64), arrays[2])
