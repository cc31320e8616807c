"""Graph indexes on a cluster."""

from __future__ import annotations

from typing import Any

from nearwise import _options
from nearwise._context import Context, operation
from nearwise._index.filter import made_of
from nearwise._neighbors import Neighbors, RangeNeighbors
from nearwise._progress import ProgressArgument
from nearwise.cluster._replica import GraphReplica
from nearwise.cluster._sharded_files import ShardedFiles


class ShardedGraphIndex(ShardedFiles):
    """Graph indexes of different vectors, each searched by `replicas` processes.

    Results are the best of what all parts find. Ids of different parts must differ:
    `nearwise.GraphIndex.build(rows, ids=ids).save(path)`.

    If a process or machine dies during a search, another replica of the same part takes over its work. Without
    one the search fails with `nearwise.Error`. `restore` starts new replicas.

    Parameters
    ----------
    paths, replicas, start_timeout, timeout, context, threads
        As in `ShardedIvf`.
    """

    _replica = GraphReplica

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        beam: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k nearest vectors that are found for each query, as `nearwise.GraphIndex.search` finds them.

        Parameters
        ----------
        beam : int, optional
            Of the search of every part. Default: what each file's index is calibrated for.
        filter, exclude
            As in `nearwise.GraphIndex.search`. A mask is sent to each machine once.
        block_queries
            As in `ShardedIvf.search`.
        queries, k, context, progress
            As in `nearwise.GraphIndex.search`; of the context only progress is used.
        """
        width = _options.optional_count(beam, "beam") or None
        return self._nearest(
            queries, _options.count(k, "k"), (width,), made_of(filter, exclude), block_queries, context
        )

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        beam: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> RangeNeighbors:
        """All vectors within `radius` of each query that `nearwise.GraphIndex.range_search` finds.

        block_queries as in `ShardedIvf.search`, the rest as in `nearwise.GraphIndex.range_search`; progress counts
        queries.
        """
        within = _options.rounded(radius, "radius")
        width = _options.optional_count(beam, "beam") or None
        return self._within(queries, within, (width,), made_of(filter, exclude), block_queries, context)


# Users see it as nearwise.cluster.ShardedGraphIndex.
ShardedGraphIndex.__module__ = "nearwise.cluster"
