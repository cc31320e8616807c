"""Exact search on a cluster."""

from __future__ import annotations

import os
from typing import Any, Literal

from nearwise import _options
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors
from nearwise._progress import ProgressArgument
from nearwise._vector_file import Path, read_vectors
from nearwise.cluster._replica import ExactReplica
from nearwise.cluster._sharded import Sharded


class ShardedExact(Sharded):
    """A file of vectors, cut into `shards` parts of consecutive rows, each searched by `replicas` processes.

    The answers are those of `nearwise.knn` with the whole file, bit for bit.

    Parameters
    ----------
    path : str or path
        A file that `nearwise.read_vectors` maps, under this path on every machine.
    shards : int
        Parts; at most the number of rows.
    replicas, threads, start_timeout, timeout
        As in `ShardedIvf`.
    metric
        As in `nearwise.knn`, for all searches.
    """

    def __init__(
        self,
        path: Path,
        shards: int,
        *,
        replicas: int = 1,
        metric: Metric = "sqeuclidean",
        threads: int = 1,
        start_timeout: float = 300,
        timeout: float = 300,
    ) -> None:
        rows = len(read_vectors(path))
        count = _options.integer(shards, "shards", 1, max(1, rows))
        bounds = [rows * part // count for part in range(count + 1)]
        name, word = os.path.abspath(path), _options.word(metric, "metric")
        number = _options.integer(threads, "threads", 1, 2**31 - 1)
        parts = [(name, first, last, word, number) for first, last in zip(bounds, bounds[1:])]
        super().__init__(ExactReplica, parts, replicas, number, start_timeout, timeout)

    def knn(
        self,
        queries: Any,
        k: int,
        *,
        short_rows: Literal["refuse", "pad"] = "refuse",
        block_queries: int = 0,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k nearest rows of the file for every row of `queries`, as `nearwise.knn` finds them.

        block_queries as in `ShardedIvf.search`, the rest as in `nearwise.knn`.
        """
        wanted = _options.neighbor_count(k)
        if _options.word(short_rows, "short_rows") not in ("refuse", "pad"):
            raise ValueError(f"short_rows: expected one of refuse, pad, given '{short_rows}'")
        if wanted > self.size and short_rows == "refuse":
            raise ValueError(
                f"knn: k must be at most the number of base rows, {self.size}, given {wanted} "
                '(short_rows="pad" fills up the rows)'
            )
        return self._search("knn", queries, wanted, (), block_queries, progress)


# Users see it as nearwise.cluster.ShardedExact.
ShardedExact.__module__ = "nearwise.cluster"
