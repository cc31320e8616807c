"""A base prepared once for many searches."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

from nearwise import _core, _options, _range_search
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors, adopt
from nearwise._progress import ProgressArgument, reporting
from nearwise._range_search import RangeNeighbors
from nearwise._rows import Rows, as_rows, device_for, rest_of_limit


class Exact:
    """A base prepared once for many searches, whose answers are those of `knn` and `range_search`, bit for bit.

    Worth it where searches are many and each has few queries: the base is brought into the form that the machine
    multiplies fastest only once, and kept in it.

    The base is not copied, unless it had to be converted: keep its elements as they are while this is in use. It
    stays alive as long as this does. Threads may search at once.

    Parameters
    ----------
    base : array [rows, dim]
        As in `nearwise.knn`. The kept form takes about as much memory as uint8 and int8 rows, half of float32 ones.
        Queries of the same element type use it, and so do float32, float16 and bfloat16 among each other; for
        others the base is brought into another form in every search, as `knn` does it.
    metric, device, threads, isa
        As in `nearwise.knn`, for all searches; `to` moves it to another device.
    memory_limit : int or str
        Bytes for a converted copy of the base, the kept form and any one search together; 0: no limit. Searches at
        once count one by one.
    progress : None, True or callable
        As in `nearwise.knn`, for the preparation; it counts rows.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> prepared = nearwise.Exact(base, metric="euclidean")
    >>> prepared
    <nearwise.Exact: 3 rows of 2 elements, euclidean>
    >>> prepared.knn(base[:1], k=2).ids
    array([[0, 2]])
    >>> prepared.range_search(base[1:], radius=2).ids
    array([1, 2, 0])
    >>> len(prepared), prepared.shape, prepared.metric, prepared.device
    (3, (3, 2), 'euclidean', 'cpu')
    """

    def __init__(
        self,
        base: Any,
        *,
        metric: Metric = "sqeuclidean",
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> None:
        limit = _options.byte_count(memory_limit, "memory_limit")
        rows = as_rows(base, "base", limit)
        self._limit = rest_of_limit(limit, "Exact", rows)
        self._isa = _options.word(isa, "isa")
        with reporting(progress, "prepare") as report:
            self._prepared = _core.PreparedBase(
                rows.array,
                rows.type,
                _options.word(metric, "metric"),
                device_for(device, rows.array),
                _options.thread_count(threads),
                self._limit,
                self._isa,
                report,
            )

    def knn(
        self,
        queries: Any,
        k: int,
        *,
        short_rows: Literal["refuse", "pad"] = "refuse",
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k nearest rows of the base for every row of `queries`, as `nearwise.knn` finds them."""
        rows = self._query_rows(queries)
        with reporting(progress, "knn") as report:
            found = self._prepared.knn(
                rows.array,
                rows.type,
                _options.neighbor_count(k),
                _options.word(short_rows, "short_rows"),
                rows.copied_bytes,
                report,
            )
        return adopt(found)

    def range_search(self, queries: Any, radius: float, *, progress: ProgressArgument = None) -> RangeNeighbors:
        """All rows of the base within `radius` of each row of `queries`, as `nearwise.range_search` finds them."""
        rows = self._query_rows(queries)
        with reporting(progress, "range_search") as report:
            found = self._prepared.range_search(
                rows.array, rows.type, _options.radius(radius), rows.copied_bytes, report
            )
        return _range_search.adopt(found)

    def to(self, device: str, *, isa: Optional[str] = None, progress: ProgressArgument = None) -> Exact:
        """The same base prepared on another device, with the same metric, threads and memory_limit.

        This one stays as it is. A base in host memory serves every device; one on a CUDA device only that one. `isa` is
        kept between CUDA devices and on the CPU, unless given; from one kind to the other it is the default.
        """
        if isa is None:
            same_kind = _options.word(device, "device").startswith("cuda") == self.device.startswith("cuda")
            isa = self._isa if same_kind else ""
        moved = object.__new__(Exact)
        moved._limit = self._limit
        moved._isa = _options.word(isa, "isa")
        with reporting(progress, "prepare") as report:
            moved._prepared = self._prepared.to(device, moved._isa, report)
        return moved

    @property
    def device(self) -> str:
        """Where it was prepared, and searches run: "cpu" or "cuda:N"."""
        return self._prepared.device

    @property
    def metric(self) -> str:
        """The metric of all searches."""
        return self._prepared.metric

    @property
    def shape(self) -> tuple[int, int]:
        """The base's rows and elements of a row."""
        return self._prepared.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        rows, dim = self.shape
        place = "" if self.device == "cpu" else f", {self.device}"
        return f"<nearwise.Exact: {rows} rows of {dim} elements, {self.metric}{place}>"

    def _query_rows(self, queries: Any) -> Rows:
        return as_rows(queries, "queries", self._limit)


# Users see it as nearwise.Exact.
Exact.__module__ = "nearwise"
