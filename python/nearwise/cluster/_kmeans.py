"""k-means on a cluster: every block of a file is summed by a task, and the sums are added here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nearwise import _options
from nearwise._kmeans import KMeans, KMeansMetric, Seeding
from nearwise._kmeans_parts import (
    ClusterSums,
    SplitRows,
    choose_splits,
    draw_split_rows,
    move_centroids,
    seed_kmeans,
    sum_clusters,
)
from nearwise._progress import ProgressArgument, reporting
from nearwise._vector_file import Path, read_vectors
from nearwise.cluster._run import run

# A block has rows enough that reading and assigning them takes long beside sending the sums, of the size of centroids.
_LEAST_BLOCK_ROWS = 2**18
_BLOCK_ROWS_PER_CLUSTER = 64
_MOST_BLOCK_ROWS = 2**32 - 1
_TILE_ROWS = 2**16  # that are searched at a time, at the most


class _Task(NamedTuple):
    name: str
    after: tuple[str, ...]
    memory_bytes: int


class _File(NamedTuple):
    """The rows, and how they are looked at."""

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
        """Its rows, mapped, and the number of the first."""
        first = number * self.block_rows
        return read_vectors(self.path)[first : first + self.block_rows], first


class _Round:
    """One look at all blocks: tasks that need not wait for each other, for `run`, whose results are returned."""

    def __init__(self, file: _File, centroids: npt.NDArray[Any], threads: int = 1) -> None:
        self.file = file
        self.centroids = centroids
        self.threads = threads

    @property
    def memory_limit(self) -> int:
        """Of each task, which keeps to it: what Ray is asked for is what is taken."""
        # Row numbers, sums and means of the clusters and what they are searched in, a tile of rows, and buffers of threads.
        clusters, dim = self.centroids.shape
        rows = min(self.file.block_rows, self.file.rows)
        tile = min(rows, _TILE_ROWS) * (dim * 8 + 256)
        return self.file.memory_limit or rows * 8 + clusters * (dim * 24 + 256) + tile + (64 << 20)

    @property
    def tasks(self) -> list[_Task]:
        return [_Task(str(number), (), self.memory_limit) for number in range(self.file.blocks)]

    def with_threads(self, threads: int) -> _Round:
        return _Round(self.file, self.centroids, threads)

    def is_done(self, name: str) -> bool:
        return False

    def run_task(self, name: str) -> Any:
        rows, first = self.file.block(int(name))
        return sum_clusters(
            rows,
            self.centroids,
            metric=self.file.metric,
            first_row=first,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )


class _SplitRound(_Round):
    """The look after one that has found clusters without rows."""

    def __init__(
        self,
        file: _File,
        centroids: npt.NDArray[Any],
        moved: npt.NDArray[Any],
        splits: list[tuple[int, int]],
        iteration: int,
        threads: int = 1,
    ) -> None:
        super().__init__(file, centroids, threads)
        self.moved = moved
        self.splits = splits
        self.iteration = iteration

    def with_threads(self, threads: int) -> _Round:
        return _SplitRound(self.file, self.centroids, self.moved, self.splits, self.iteration, threads)

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
            seed=self.file.seed,
            threads=self.threads,
            memory_limit=self.memory_limit,
        )


class Total:
    """Sums of blocks that come in any order, added as a tree over their numbers: the same bits for every order.

    No more than a few are kept, those of the tree's subtrees that are not whole.
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
        """Of all, once they are there: the last subtrees are the lowest."""
        total = None
        for place in sorted(self._subtrees):
            total = self._subtrees[place] if total is None else self._subtrees[place] + total
        return total


Executor = Callable[[_Round, Callable[[str, Any], None]], None]


class Training:
    """Lloyd's iterations; `execute` runs the tasks of a round and hands over what each returns."""

    def __init__(self, file: _File, execute: Executor) -> None:
        self._file = file
        self._execute = execute

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
            error = float(np.cumsum(sums.errors)[-1])  # in order, as C++ adds
            converged = error == 0 or (bool(errors) and errors[-1] - error <= tolerance * error)
            errors.append(error)
            moved = move_centroids(sums, centroids, metric=self._file.metric)
            if not converged and len(errors) < iterations:
                self._split(sums, centroids, moved, len(errors) - 1)
            centroids = moved
        return KMeans(centroids, np.array(sums.sizes), np.array(errors), converged)  # Ray's arrays are read-only

    def _summed(
        self, centroids: npt.NDArray[Any], iteration: int, iterations: int, report: Callable[[int, int], Any] | None
    ) -> ClusterSums:
        total, blocks, done = Total(), self._file.blocks, 0

        def add(name: str, sums: ClusterSums) -> None:
            nonlocal done
            total.add(int(name), sums)
            done += 1
            if report is not None:
                report(iteration * blocks + done, iterations * blocks)

        self._execute(_Round(self._file, centroids), add)
        return total.take()

    def _split(self, sums: ClusterSums, centroids: npt.NDArray[Any], moved: npt.NDArray[Any], iteration: int) -> None:
        """Moves the centroids of empty clusters to rows of those with the largest errors, as train_kmeans does."""
        splits = choose_splits(sums)
        if not splits:
            return
        drawn: list[SplitRows] = []
        self._execute(
            _SplitRound(self._file, centroids, moved, splits, iteration), lambda _, found: drawn.append(found)
        )
        clusters, times, numbers = (np.concatenate(parts) for parts in zip(*drawn))
        chosen: list[int] = []
        for cluster, count in splits:
            own = np.flatnonzero(clusters == cluster)
            chosen += numbers[own[np.lexsort((numbers[own], times[own]))][:count]].tolist()
        if not chosen:
            return
        rows = read_vectors(self._file.path)[chosen]
        empty = np.flatnonzero(sums.sizes == 0)[: len(chosen)]
        moved[empty] = seed_kmeans(rows, len(rows), metric=self._file.metric, initial=rows)


def train_kmeans(
    path: Path,
    clusters: int,
    *,
    metric: KMeansMetric = "sqeuclidean",
    iterations: int = 20,
    tolerance: float = 1e-4,
    seeding: Seeding = "plus_plus",
    initial: Any = None,
    seed: int = 0,
    block_rows: int = 0,
    memory_limit: int | str | None = None,
    threads: int = 1,
    retries: int = 3,
    timeout: float = 3600,
    progress: ProgressArgument = None,
) -> KMeans:
    """`nearwise.train_kmeans` of a file of vectors, every iteration by all machines of a cluster.

    The file is cut into blocks. A task reads one, assigns its rows to the nearest centroids and returns their sums, the
    only arrays that are sent: of the size of the centroids. The result depends on `block_rows`, in the last bits,
    and not on machines, threads and who dies. With one block it is that of `nearwise.train_kmeans`, bit for bit.

    Parameters
    ----------
    path : str or path
        A file that `nearwise.read_vectors` maps, under this path on every machine.
    clusters, metric, iterations, tolerance, seeding, initial, seed
        As in `nearwise.train_kmeans`. Centroids are seeded here, from a sample of 32 rows for each cluster: where there are
        very many clusters give `initial`, or seeding="random".
    block_rows : int
        Rows of a task. 0: 262,144, or 64 for each cluster if that is more.
    memory_limit : int or str
        Of each task; Ray is asked for as much. 0: Ray is asked for an estimate.
    threads, retries, timeout
        As in `nearwise.cluster.run`.
    progress
        As in `nearwise.knn`; blocks are counted.
    """
    rows, dim = read_vectors(path).shape
    wanted = _options.count(clusters, "clusters")
    given = _options.integer(block_rows, "block_rows", 0, _MOST_BLOCK_ROWS)
    usual = min(_MOST_BLOCK_ROWS, max(_LEAST_BLOCK_ROWS, _BLOCK_ROWS_PER_CLUSTER * wanted))
    file = _File(
        os.path.abspath(path),
        rows,
        dim,
        given or usual,
        metric,
        _options.seed(seed),
        _options.byte_count(memory_limit, "memory_limit"),
    )
    most_iterations = _options.count(iterations, "iterations")
    share = _options.number(tolerance, "tolerance")
    if not share >= 0:
        raise ValueError(f"tolerance: expected at least 0, given {share:g}")
    number = _options.integer(threads, "threads", 1, 2**31 - 1)
    start = seed_kmeans(
        read_vectors(path),
        wanted,
        metric=metric,
        seeding=seeding,
        initial=initial,
        seed=seed,
        memory_limit=memory_limit,
    )

    def execute(work: _Round, on_task: Callable[[str, Any], None]) -> None:
        run(work, threads=number, retries=retries, timeout=timeout, on_task=on_task)

    with reporting(progress, "train_kmeans") as report:
        return Training(file, execute).run(start, most_iterations, share, report)


# Users see it as nearwise.cluster.train_kmeans.
train_kmeans.__module__ = "nearwise.cluster"
