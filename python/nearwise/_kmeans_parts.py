"""k-means in parts: the steps of `train_kmeans`, for those who look at blocks of rows in several processes."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._kmeans import KMeansMetric, Seeding
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit


class ClusterSums(NamedTuple):
    """What a block of rows adds to an iteration of k-means.

    Those of several blocks are added with `+`. The order matters in the last bits: keep to one.

    sums : float64 [clusters, dim]
        Of the rows nearest to each centroid; for cosine, of rows scaled to length 1.
    sizes : int64 [clusters]
        Their number.
    errors : float64 [clusters]
        Sums of their squared distances from the centroid.
    """

    sums: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]
    errors: npt.NDArray[np.float64]

    def __add__(self, other: Any) -> ClusterSums:
        if not isinstance(other, ClusterSums):
            return NotImplemented
        return ClusterSums(*(mine + its for mine, its in zip(self, other)))


class SplitRows(NamedTuple):
    """Rows drawn from a block to be centroids of empty clusters; those with the least times of all blocks will be."""

    clusters: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]


def seed_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetric = "sqeuclidean",
    seeding: Seeding = "plus_plus",
    initial: Any = None,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
) -> npt.NDArray[np.float32]:
    """The centroids that `train_kmeans` starts from, float32 [clusters, dim].

    Reads no more of the rows than a sample, 32 for each cluster.

    Parameters
    ----------
    rows, clusters, metric, seeding, initial, seed, device, threads, memory_limit, isa
        As in `nearwise.train_kmeans`.

    Examples
    --------
    >>> import nearwise
    >>> nearwise.seed_kmeans([[3.0, 4.0], [1.0, 0.0]], 1, metric="cosine", initial=[[3.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    given = [as_rows(rows, "rows", limit)]
    if initial is not None:
        given.append(as_rows(initial, "initial", limit))
        if given[1].array.shape[0] == 0:  # C++ takes none for "not given"
            raise ValueError("initial: expected centroids [clusters, dim], given none")
    return _core.seed_kmeans(
        given[0].array,
        given[0].type,
        _options.count(clusters, "clusters"),
        _options.word(metric, "metric"),
        _options.word(seeding, "seeding"),
        given[-1].array if initial is not None else None,
        given[-1].type,
        _options.seed(seed),
        device_for(device, *(each.array for each in given)),
        _options.thread_count(threads),
        rest_of_limit(limit, "seed_kmeans", *given),
        _options.word(isa, "isa"),
    )


def sum_clusters(
    rows: Any,
    centroids: Any,
    *,
    metric: KMeansMetric = "sqeuclidean",
    first_row: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> ClusterSums:
    """Assigns a block of rows to their nearest centroids, and sums them: what it adds to an iteration of k-means.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`.
    centroids : float32 [clusters, dim]
    first_row : int
        The number of the first of these rows among those of all blocks, for messages.
    metric, device, threads, memory_limit, isa, progress
        As in `nearwise.train_kmeans`.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [0, 2], [9, 0], [9, 2], [9, 4]], dtype=np.float32)
    >>> centroids = nearwise.seed_kmeans(rows, 2, initial=rows[[0, 4]])
    >>> sums = nearwise.sum_clusters(rows[:3], centroids) + nearwise.sum_clusters(rows[3:], centroids, first_row=3)
    >>> sums.sums, sums.sizes, sums.errors
    (array([[ 0.,  2.],
           [27.,  6.]]), array([2, 3]), array([ 4., 20.]))
    >>> nearwise.move_centroids(sums, centroids)
    array([[0., 1.],
           [9., 2.]], dtype=float32)
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    given = as_rows(rows, "rows", limit)
    with reporting(progress, "sum_clusters") as report:
        sums, sizes, errors = _core.sum_clusters(
            given.array,
            given.type,
            _points(centroids, "centroids"),
            _options.count_or_none(first_row, "first_row"),
            _options.word(metric, "metric"),
            device_for(device, given.array),
            _options.thread_count(threads),
            rest_of_limit(limit, "sum_clusters", given),
            _options.word(isa, "isa"),
            report,
        )
    return ClusterSums(sums, sizes.view(np.int64), errors)


def move_centroids(
    sums: ClusterSums, centroids: Any, *, metric: KMeansMetric = "sqeuclidean"
) -> npt.NDArray[np.float32]:
    """The centroids that sums of all blocks give; where there is nothing to take a mean of they stay where they are.

    Parameters
    ----------
    sums : ClusterSums
        Of all blocks, added.
    centroids : float32 [clusters, dim]
        Those that the rows were assigned to.
    metric
        As in `nearwise.sum_clusters`.
    """
    return _core.move_centroids(sums.sums, sums.sizes, _points(centroids, "centroids"), _options.word(metric, "metric"))


def choose_splits(sums: ClusterSums) -> list[tuple[int, int]]:
    """Clusters with a large error, and how many rows to draw from each for those that are empty."""
    return _core.choose_splits(sums.sizes, sums.errors)


def draw_split_rows(
    rows: Any,
    assigned: np.ndarray,
    moved: np.ndarray,
    splits: Sequence[tuple[int, int]],
    iteration: int,
    *,
    metric: KMeansMetric,
    first_row: int,
    seed: int,
    threads: int,
    memory_limit: int,
) -> SplitRows:
    """The rows of a block that come first in the race for each split; include/nearwise/kmeans_parts.h has the rule."""
    given = as_rows(rows, "rows", memory_limit)
    return SplitRows(
        *_core.draw_split_rows(
            given.array,
            given.type,
            assigned,
            moved,
            splits,
            iteration,
            first_row,
            metric,
            seed,
            "cpu",
            threads,
            rest_of_limit(memory_limit, "draw_split_rows", given),
            "",
        )
    )


def _points(values: Any, name: str) -> Any:
    given = as_rows(values, name)
    if given.type != "f32":
        raise ValueError(f"{name}: expected float32 [clusters, dim], given {given.type}")
    return given.array
