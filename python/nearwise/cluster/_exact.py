"""Exact search on a cluster."""

from __future__ import annotations

import itertools
import os
from typing import Any

from nearwise import _options
from nearwise._context import Context, operation
from nearwise._index.filter import made_of
from nearwise._neighbors import MetricArgument, Neighbors, RangeNeighbors
from nearwise._progress import ProgressArgument
from nearwise._vector_file import Path, read_vectors
from nearwise.cluster._replica import ExactReplica
from nearwise.cluster._sharded import Sharded


class ShardedExact(Sharded):
    """A vector file in `shards` parts of consecutive rows, each searched by `replicas` processes.

    Results are those of `nearwise.knn` on the whole file, bit for bit.

    Parameters
    ----------
    path : str or path
        A file that `nearwise.read_vectors` reads, at this path on every machine.
    shards : int
        Parts; at most the number of vectors.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        Of all searches.
    replicas, start_timeout, timeout, context, threads
        As in `ShardedIvf`.
    """

    @operation
    def __init__(
        self,
        path: Path,
        shards: int,
        *,
        metric: MetricArgument | None = "sqeuclidean",
        replicas: int | None = 1,
        start_timeout: float | None = 300,
        timeout: float | None = 300,
        context: Context | None = None,
        threads: int | None = None,
    ) -> None:
        rows = len(read_vectors(path))
        count = _options.integer(shards, "shards", 1, max(1, rows))
        bounds = [rows * part // count for part in range(count + 1)]
        name, word = os.path.abspath(path), _options.metric(metric)
        number = (context.threads if context else None) or 1
        parts = [(name, first, last, word, number) for first, last in itertools.pairwise(bounds)]
        super().__init__(ExactReplica, parts, replicas, number, start_timeout, timeout)

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        pad: bool | None = False,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k nearest vectors of the file for every vector of `queries`, as `nearwise.knn` finds them.

        block_queries as in `ShardedIvf.search`, the rest as in `nearwise.knn`.
        """
        count = _options.count(k, "k")
        chosen = made_of(filter, exclude)
        if count > self.size and not _options.flag(pad, "pad") and chosen is None:
            raise ValueError(
                f"search: k must be at most the size of the base, {self.size}, got {count}; or set pad=True"
            )
        return self._nearest(queries, count, (), chosen, block_queries, context)

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> RangeNeighbors:
        """All vectors of the file within `radius` of each query, as `nearwise.range_search` finds them.

        block_queries as in `ShardedIvf.search`, the rest as in `nearwise.range_search`; progress counts queries.
        """
        within = _options.rounded(radius, "radius")
        return self._within(queries, within, (), made_of(filter, exclude), block_queries, context)


# Users see it as nearwise.cluster.ShardedExact.
ShardedExact.__module__ = "nearwise.cluster"
