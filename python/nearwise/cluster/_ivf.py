"""Inverted files on a cluster."""

from __future__ import annotations

from typing import Any

from nearwise import _options
from nearwise._context import Context, operation
from nearwise._index.filter import made_of
from nearwise._neighbors import Neighbors, RangeNeighbors
from nearwise._progress import ProgressArgument
from nearwise.cluster._replica import IvfReplica
from nearwise.cluster._sharded_files import ShardedFiles


class ShardedIvf(ShardedFiles):
    """Inverted files of one training with different vectors, each searched by `replicas` processes.

    Each part re-ranks its own candidates by the vectors that it keeps, so that at least as many neighbors are found as
    by one index with all vectors; with `codes_only` the results are those of one index, bit for bit. The files are
    copies of one training: `part = index.empty_copy(); part.add(rows, ids); part.save(path)`.

    If a process or machine dies during a search, another replica of the same part takes over its work. Without
    one the search fails with `nearwise.Error`. `restore` starts new replicas.

    Parameters
    ----------
    paths : sequence of str or path
        One file per part, at the same path on every machine.
    replicas : int
        Processes per part, on different machines if possible. They share the work.
    start_timeout : float
        Seconds for all processes to open their files.
    timeout : float
        Seconds without a result after which a process is considered dead and ended.
    context, threads
        See `nearwise.Context`; only threads is used. It is per process, default 1; Ray reserves as many CPUs.
    """

    _replica = IvfReplica

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int | None = None,
        codes_only: bool | None = False,
        candidates: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best vectors in the lists nearest to each query, as `nearwise.Ivf.search` finds them.

        Parameters
        ----------
        probes : int, optional
            Lists to scan. Default: what each file's index is calibrated for; under a filter, as many as it takes to
            scan as many allowed vectors as a search without one.
        codes_only, candidates, filter, exclude
            As in `nearwise.Ivf.search`. A mask is sent to each machine once.
        block_queries : int, optional
            Queries per message; a process that dies loses a few such blocks at most. Default: one block for
            each replica, at most 8192 queries.
        queries, k, context, progress
            As in `nearwise.Ivf.search`; of the context only progress is used.
        """
        chosen = made_of(filter, exclude)
        count = _options.count(k, "k")
        options = {
            "codes_only": _options.flag(codes_only, "codes_only"),
            "probes": _options.optional_count(probes, "probes") or None,
            "candidates": candidates,
        }
        return self._nearest(queries, count, (options, self.size), chosen, block_queries, context)

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        probes: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        block_queries: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> RangeNeighbors:
        """All vectors within `radius` of each query that `nearwise.Ivf.range_search` finds.

        Under a filter each part probes lists with allowed vectors of its own, so that more may be found than by one
        index. block_queries as in `search`, the rest as in `nearwise.Ivf.range_search`; progress counts queries.
        """
        within = _options.rounded(radius, "radius")
        probed = _options.optional_count(probes, "probes") or None
        return self._within(queries, within, (probed,), made_of(filter, exclude), block_queries, context)


# Users see it as nearwise.cluster.ShardedIvf.
ShardedIvf.__module__ = "nearwise.cluster"
