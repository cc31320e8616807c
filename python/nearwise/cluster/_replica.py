"""The processes of a cluster: each searches one part of a base.

A replica is opened by a method, not by its constructor: Ray wraps exceptions of constructors, those of methods
reach the caller unchanged.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

import nearwise
from nearwise._neighbors import Metric

Found = TypeVar("Found", nearwise.Neighbors, nearwise.RangeNeighbors)


class Description(NamedTuple):
    """Equal for all replicas of a part; parts of one index differ in `rows` only."""

    rows: int
    dim: int
    metric: Metric
    training: str  # digest of the lists; empty: not an inverted file


class Replica:
    def process_id(self) -> int:
        return os.getpid()


class ExactReplica(Replica):
    """Consecutive rows of a vector file."""

    def open(self, path: str, first: int, last: int, metric: Metric, threads: int) -> Description:
        self._first = first
        self._prepared = nearwise.Exact(nearwise.read_vectors(path)[first:last], metric=metric, threads=threads)
        rows, dim = self._prepared.shape
        return Description(rows, dim, metric, "")

    def search(
        self, queries: npt.NDArray[Any], first: int, last: int, k: int, filter: nearwise.Filter | None
    ) -> nearwise.Neighbors:
        own = None if filter is None else filter._part(self._first, first, last)
        found: nearwise.Neighbors = _some(self._prepared.search, queries, first, last, k, pad=True, filter=own)
        np.add(found.ids, self._first, out=found.ids, where=found.ids >= 0)  # row numbers in the whole file
        return _narrowed(found)

    def range_search(
        self, queries: npt.NDArray[Any], first: int, last: int, radius: float, filter: nearwise.Filter | None
    ) -> nearwise.RangeNeighbors:
        own = None if filter is None else filter._part(self._first, first, last)
        found: nearwise.RangeNeighbors = _some(self._prepared.range_search, queries, first, last, radius, filter=own)
        return _narrowed(found._replace(ids=found.ids + self._first))


class IvfReplica(Replica):
    """An inverted file, mapped."""

    def open(self, path: str, threads: int) -> Description:
        self._index = nearwise.load(path, nearwise.Ivf, threads=threads)
        digest = hashlib.sha256(repr((type(self._index).__name__, self._index.code_bytes)).encode())
        digest.update(np.ascontiguousarray(self._index.centroids).tobytes())
        return Description(self._index.size, self._index.dim, self._index.metric, digest.hexdigest())

    def search(
        self,
        queries: npt.NDArray[Any],
        first: int,
        last: int,
        k: int,
        options: dict[str, Any],
        rows: int,
        filter: nearwise.Filter | None,
    ) -> nearwise.Neighbors:
        """rows: of all parts. The lists near a query may all be in one of them."""
        own = None if filter is None else filter._part(0, first, last)
        if filter is not None and options["probes"] is None:
            scanned = self._index._index.scanned_for(
                k, options["codes_only"], options["candidates"] or 0, all_rows=rows
            )
            options = options | {"scanned": scanned}
        found: nearwise.Neighbors = _some(self._index.search, queries, first, last, k, filter=own, **options)
        return _narrowed(found)

    def range_search(
        self,
        queries: npt.NDArray[Any],
        first: int,
        last: int,
        radius: float,
        probes: int | None,
        filter: nearwise.Filter | None,
    ) -> nearwise.RangeNeighbors:
        own = None if filter is None else filter._part(0, first, last)
        search = self._index.range_search
        found: nearwise.RangeNeighbors = _some(search, queries, first, last, radius, probes=probes, filter=own)
        return _narrowed(found)


class GraphReplica(Replica):
    """A graph index, mapped."""

    def open(self, path: str, threads: int) -> Description:
        self._index = nearwise.load(path, nearwise.GraphIndex, threads=threads)
        return Description(self._index.size, self._index.dim, self._index.metric, "")

    def search(
        self,
        queries: npt.NDArray[Any],
        first: int,
        last: int,
        k: int,
        beam: int | None,
        filter: nearwise.Filter | None,
    ) -> nearwise.Neighbors:
        own = None if filter is None else filter._part(0, first, last)
        found: nearwise.Neighbors = _some(self._index.search, queries, first, last, k, beam=beam, filter=own)
        return _narrowed(found)

    def range_search(
        self,
        queries: npt.NDArray[Any],
        first: int,
        last: int,
        radius: float,
        beam: int | None,
        filter: nearwise.Filter | None,
    ) -> nearwise.RangeNeighbors:
        own = None if filter is None else filter._part(0, first, last)
        search = self._index.range_search
        found: nearwise.RangeNeighbors = _some(search, queries, first, last, radius, beam=beam, filter=own)
        return _narrowed(found)


def _narrowed(found: Found) -> Found:
    """Ids in 32 bits if they fit: a third less to send. What joins them returns 64 bits."""
    if found.ids.size and found.ids.max() > np.iinfo(np.int32).max:
        return found
    return found._replace(ids=found.ids.astype(np.int32))


def _some(search: Any, queries: npt.NDArray[Any], first: int, last: int, number: float, **options: Any) -> Any:
    """number: k or radius."""
    try:
        return search(queries[first:last], number, **options)
    except ValueError as error:
        if first == 0:
            raise
        raise ValueError(f"{error} (counted from query {first})") from None
