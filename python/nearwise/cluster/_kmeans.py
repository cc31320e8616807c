"""k-means on a cluster: tasks sum the blocks of a file, and this process adds the sums."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from nearwise import _options
from nearwise._context import Call, Context, operation
from nearwise._kmeans import KMeans, KMeansMetric, KMeansMetricArgument, Seeding
from nearwise._kmeans_parts import (
    ClusterSums,
    SplitRows,
    choose_splits,
    draw_split_rows,
    move_centroids,
    seed_kmeans,
    sum_clusters,
)
from nearwise._progress import ProgressArgument
from nearwise._vector_file import Path, read_vectors
from nearwise.cluster._run import run

# Reading and assigning a block must take much longer than sending its sums, which are as large as the
# centroids.
_LEAST_BLOCK_ROWS = 2**18
_BLOCK_ROWS_PER_CLUSTER = 64
_MOST_BLOCK_ROWS = 2**32 - 1
_TILE_ROWS = 2**16  # searched at a time


class _Task(NamedTuple):
    name: str
    after: tuple[str, ...]
    memory_bytes: int


class _File(NamedTuple):
    """The vectors and the options of all tasks."""

    path: str
    rows: int
    dim: int
    block_rows: int
    metric: KMeansMetric
    seed: int
    memory_limit: int

    @property
    def blocks(self) -> int:
        return -(-self.rows // self.block_rows)

    def block(self, number: int) -> tuple[npt.NDArray[Any], int]:
        """Its vectors, mapped, and the number of the first."""
        first = number * self.block_rows
        return read_vectors(self.path)[first : first + self.block_rows], first


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Round:
    """One pass over all blocks as independent tasks for `run`, which returns their results."""

    file: _File
    centroids: npt.NDArray[Any]
    threads: int = 1

    @property
    def memory_limit(self) -> int:
        """Of each task; Ray reserves as much."""
        # Assignments; sums, means and prepared centroids; a tile of vectors; buffers of threads.
        clusters, dim = self.centroids.shape
        rows = min(self.file.block_rows, self.file.rows)
        tile = min(rows, _TILE_ROWS) * (dim * 8 + 256)
        return self.file.memory_limit or rows * 8 + clusters * (dim * 24 + 256) + tile + (64 << 20)

    @property
    def context(self) -> Context:
        return Context(seed=self.file.seed, threads=self.threads, memory_limit=self.memory_limit)

    @property
    def tasks(self) -> list[_Task]:
        return [_Task(str(number), (), self.memory_limit) for number in range(self.file.blocks)]

    def with_threads(self, threads: int) -> Self:
        return dataclasses.replace(self, threads=threads)

    def is_done(self, name: str) -> bool:
        return False

    def run_task(self, name: str) -> Any:
        rows, first = self.file.block(int(name))
        return sum_clusters(rows, self.centroids, metric=self.file.metric, first_row=first, context=self.context)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _SplitRound(_Round):
    """The pass that draws new centroids for empty clusters."""

    moved: npt.NDArray[Any]
    splits: list[tuple[int, int]]
    iteration: int

    def run_task(self, name: str) -> Any:
        rows, first = self.file.block(int(name))
        return draw_split_rows(
            rows,
            self.centroids,
            self.moved,
            self.splits,
            self.iteration,
            metric=self.file.metric,
            first_row=first,
            context=self.context,
        )


class Total:
    """Adds the sums of blocks in a fixed tree over their numbers: the same bits in whichever order they arrive.

    Holds only the roots of complete subtrees.
    """

    def __init__(self) -> None:
        self._subtrees: dict[tuple[int, int], Any] = {}  # by height and number

    def add(self, number: int, sums: Any) -> None:
        height = 0
        while (height, number ^ 1) in self._subtrees:
            other = self._subtrees.pop((height, number ^ 1))
            sums = sums + other if number % 2 == 0 else other + sums
            height, number = height + 1, number // 2
        self._subtrees[height, number] = sums

    def take(self) -> Any:
        """The sum of all, once all are added."""
        total = None
        for place in sorted(self._subtrees):
            total = self._subtrees[place] if total is None else self._subtrees[place] + total
        return total


Executor = Callable[[_Round, Callable[[str, Any], None]], None]


@dataclasses.dataclass(frozen=True)
class Training:
    """Lloyd's algorithm; `execute` runs the tasks of a round and passes on their results."""

    file: _File
    execute: Executor

    def run(
        self,
        centroids: npt.NDArray[Any],
        iterations: int,
        tolerance: float,
        report: Callable[[int, int], Any] | None = None,
    ) -> KMeans:
        errors: list[float] = []
        converged = False
        while len(errors) < iterations and not converged:
            sums = self._summed(centroids, len(errors), iterations, report)
            error = float(np.cumsum(sums.errors)[-1])  # in the order of C++
            converged = error == 0 or (bool(errors) and errors[-1] - error <= tolerance * error)
            errors.append(error)
            moved = move_centroids(sums, centroids, metric=self.file.metric)
            if not converged and len(errors) < iterations:
                self._split(sums, centroids, moved, len(errors) - 1)
            centroids = moved
        # Copies: Ray's arrays are read-only.
        return KMeans(centroids, np.array(sums.sizes), np.array(errors), converged)

    def _summed(
        self, centroids: npt.NDArray[Any], iteration: int, iterations: int, report: Callable[[int, int], Any] | None
    ) -> ClusterSums:
        total, blocks, done = Total(), self.file.blocks, 0

        def add(name: str, sums: ClusterSums) -> None:
            nonlocal done
            total.add(int(name), sums)
            done += 1
            if report is not None:
                report(iteration * blocks + done, iterations * blocks)

        self.execute(_Round(file=self.file, centroids=centroids), add)
        sums: ClusterSums = total.take()
        return sums

    def _split(self, sums: ClusterSums, centroids: npt.NDArray[Any], moved: npt.NDArray[Any], iteration: int) -> None:
        """Moves the centroids of empty clusters to vectors of those with the largest errors, as train_kmeans does."""
        splits = choose_splits(sums)
        if not splits:
            return
        drawn: list[SplitRows] = []
        work = _SplitRound(file=self.file, centroids=centroids, moved=moved, splits=splits, iteration=iteration)
        self.execute(work, lambda _, found: drawn.append(found))
        clusters, times, numbers = (np.concatenate(parts) for parts in zip(*drawn))
        chosen: list[int] = []
        for cluster, count in splits:
            own = np.flatnonzero(clusters == cluster)
            chosen += numbers[own[np.lexsort((numbers[own], times[own]))][:count]].tolist()
        if not chosen:
            return
        rows = read_vectors(self.file.path)[chosen]
        empty = np.flatnonzero(sums.sizes == 0)[: len(chosen)]
        moved[empty] = seed_kmeans(rows, len(rows), metric=self.file.metric, initial=rows)


@operation
def train_kmeans(
    path: Path,
    clusters: int,
    *,
    metric: KMeansMetricArgument | None = "sqeuclidean",
    iterations: int | None = 20,
    tolerance: float | None = 1e-4,
    seeding: Seeding | None = "plus_plus",
    initial: Any = None,
    block_rows: int | None = None,
    retries: int | None = 3,
    timeout: float | None = 3600,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: ProgressArgument = None,
) -> KMeans:
    """`nearwise.train_kmeans` of a vector file on all machines of a cluster.

    A task reads a block of the file, assigns its vectors to the nearest centroids and returns their sums, which
    are as large as the centroids. The result depends on `block_rows`, in the last bits, and not on machines,
    threads and restarts. With one block it is that of `nearwise.train_kmeans`, bit for bit.

    Parameters
    ----------
    path : str or path
        A file that `nearwise.read_vectors` reads, at this path on every machine.
    clusters, metric, iterations, tolerance, seeding, initial
        As in `nearwise.train_kmeans`. This process seeds the centroids, from a sample of 32 vectors per
        cluster: with very many clusters give `initial`, or seeding="random".
    block_rows : int, optional
        Vectors of a task. Default: 262,144, or 64 per cluster if that is more.
    retries, timeout
        As in `nearwise.cluster.run`.
    context, seed, threads, memory_limit, progress
        See `nearwise.Context`. threads (default 1) and memory_limit (default: an estimate) are per task, and
        Ray reserves them. progress counts blocks.
    """
    call = Call("train_kmeans", context)
    rows, dim = read_vectors(path).shape
    wanted = _options.count(clusters, "clusters")
    given = 0 if block_rows is None else _options.integer(block_rows, "block_rows", 1, _MOST_BLOCK_ROWS)
    default = min(_MOST_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, _BLOCK_ROWS_PER_CLUSTER * wanted))
    own = call.context
    name = cast("KMeansMetric", _options.metric(metric))
    file = _File(os.path.abspath(path), rows, dim, given or default, name, own.seed or 0, own.memory_bytes)
    most_iterations = _options.count(iterations, "iterations")
    share = _options.number(tolerance, "tolerance")
    if not share >= 0:
        raise ValueError(f"tolerance: expected at least 0, got {share:g}")
    seeds = Context(seed=own.seed, memory_limit=own.memory_limit)
    start = seed_kmeans(read_vectors(path), wanted, metric=metric, seeding=seeding, initial=initial, context=seeds)

    def execute(work: _Round, on_task: Callable[[str, Any], None]) -> None:
        run(work, threads=call.context.threads or 1, retries=retries, timeout=timeout, on_task=on_task)

    with call:
        return Training(file, execute).run(start, most_iterations, share, call.report)


# Users see it as nearwise.cluster.train_kmeans.
train_kmeans.__module__ = "nearwise.cluster"
