"""Inverted files on a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from nearwise import _options
from nearwise._neighbors import Neighbors
from nearwise._progress import ProgressArgument
from nearwise._vector_file import Path
from nearwise.cluster._replica import IvfReplica
from nearwise.cluster._sharded import Sharded


class ShardedIvf(Sharded):
    """Inverted files of one training with different rows, each searched by `replicas` processes.

    The answers are those of one index with all rows, bit for bit. The files are made of copies of one training:
    `part = index.empty_copy(); part.add(rows, ids); part.save(path)`.

    A process or machine that dies during a search costs time, not answers: its work is done by another replica of the
    same part. Without one left the search fails with `nearwise.Error`. `restore` puts new replicas in their place.

    Parameters
    ----------
    paths : sequence of str or path
        One file for each part, under the same path on every machine.
    replicas : int
        Processes for each part, on different machines where there are enough. They share the work while they live.
    threads : int
        Of each process. Ray is asked for as many CPUs.
    start_timeout : float
        Seconds in which all processes must have opened their files.
    timeout : float
        Seconds without an answer after which a process with work is given up and ended.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        replicas: int = 1,
        threads: int = 1,
        start_timeout: float = 300,
        timeout: float = 300,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)) or not len(paths):
            raise ValueError(f"paths: expected one file for each part, given {paths!r}")
        number = _options.integer(threads, "threads", 1, 2**31 - 1)
        parts = [(os.path.abspath(path), number) for path in paths]
        super().__init__(IvfReplica, parts, replicas, number, start_timeout, timeout)

    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int = 0,
        block_queries: int = 0,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best rows in the lists nearest to each query, as `nearwise.Ivf.search` finds them.

        Parameters
        ----------
        probes : int
            Lists to look at. 0: the number that the first file's index has.
        block_queries : int
            Queries that are sent at once; what a process that dies has lost is at most a few such blocks. 0: one for
            each replica, but at most 8192 queries.
        queries, k, progress
            As in `nearwise.Ivf.search`. There is no second look in the vectors themselves.
        """
        lists = _options.integer(probes, "probes", 0, 2**63 - 1) or self._description.probes
        return self._search("search", queries, _options.neighbor_count(k), (lists,), block_queries, progress)


# Users see it as nearwise.cluster.ShardedIvf.
ShardedIvf.__module__ = "nearwise.cluster"
