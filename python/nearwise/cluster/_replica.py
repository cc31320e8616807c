"""What runs in the processes of a cluster: one part of a base, searched there.

A replica is opened by a call, not when it is made: what goes wrong then reaches the caller as it is, while Ray wraps what
the making of an actor raises.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import nearwise


class Description(NamedTuple):
    """What replicas of one part have in common, all of it, and parts of one index all but `rows`."""

    rows: int
    dim: int
    metric: str
    probes: int  # of searches that name none; 0: not an inverted file
    training: str  # whose lists these are


class Replica:
    def process_id(self) -> int:
        return os.getpid()


class ExactReplica(Replica):
    """Consecutive rows of a file of vectors."""

    def open(self, path: str, first: int, last: int, metric: str, threads: int) -> Description:
        self._first = first
        self._prepared = nearwise.Exact(nearwise.read_vectors(path)[first:last], metric=metric, threads=threads)
        rows, dim = self._prepared.shape
        return Description(rows, dim, self._prepared.metric, 0, "")

    def search(self, queries: npt.NDArray[Any], first: int, last: int, k: int) -> nearwise.Neighbors:
        found = _some(self._prepared.knn, queries, first, last, k, short_rows="pad")
        np.add(found.ids, self._first, out=found.ids, where=found.ids >= 0)  # numbered through all parts
        return _narrowed(found)


class IvfReplica(Replica):
    """An inverted file, mapped."""

    def open(self, path: str, threads: int) -> Description:
        self._index = nearwise.load_ivf(path, threads=threads)
        digest = hashlib.sha256(repr((type(self._index).__name__, self._index.code_bytes)).encode())
        digest.update(np.ascontiguousarray(self._index.centroids))
        return Description(
            self._index.size, self._index.dim, self._index.metric, self._index.probes, digest.hexdigest()
        )

    def search(self, queries: npt.NDArray[Any], first: int, last: int, k: int, probes: int) -> nearwise.Neighbors:
        return _narrowed(_some(self._index.search, queries, first, last, k, probes=probes))


def _narrowed(found: nearwise.Neighbors) -> nearwise.Neighbors:
    """Ids in 32 bits where they fit: a third less to send. Who joins the answers makes them 64 again."""
    if found.ids.size and found.ids.max() > np.iinfo(np.int32).max:
        return found
    return found._replace(ids=found.ids.astype(np.int32))


def _some(search: Any, queries: npt.NDArray[Any], first: int, last: int, k: int, **options: Any) -> nearwise.Neighbors:
    try:
        return search(queries[first:last], k, **options)
    except ValueError as error:
        if first == 0:
            raise
        raise ValueError(f"{error} (counted from query {first})") from None
