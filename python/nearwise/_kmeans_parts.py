"""The steps of k-means, for training over blocks of vectors in several processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, SeededSettings, Settings, operation
from nearwise._kmeans import KMeansMetric, KMeansMetricArgument, Seeding, initial_centroids


class ClusterSums(NamedTuple):
    """What a block of vectors contributes to an iteration of k-means.

    Those of several blocks are added with `+`. The order of additions affects the last bits: use a fixed one.

    sums : float64 [clusters, dim]
        Of the vectors nearest to each centroid; for cosine, of vectors scaled to length 1.
    sizes : int64 [clusters]
        Their number.
    errors : float64 [clusters]
        Sums of their squared distances to the centroid.
    """

    sums: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]
    errors: npt.NDArray[np.float64]

    def __add__(self, other: Any) -> ClusterSums:
        if not isinstance(other, ClusterSums):
            return NotImplemented
        return ClusterSums(self.sums + other.sums, self.sizes + other.sizes, self.errors + other.errors)


class SplitRows(NamedTuple):
    """Vectors of a block drawn as centroids of empty clusters; those with the lowest times of all blocks are used."""

    clusters: npt.NDArray[np.int64]
    times: npt.NDArray[np.float64]
    rows: npt.NDArray[np.int64]


@operation
def seed_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetricArgument | None = "sqeuclidean",
    seeding: Seeding | None = "plus_plus",
    initial: Any = None,
    **settings: Unpack[SeededSettings],
) -> npt.NDArray[np.float32]:
    """The initial centroids of `train_kmeans`, float32 [clusters, dim].

    Reads a sample of 32 vectors per cluster.

    Parameters
    ----------
    rows, clusters, metric, seeding, initial, context, seed, device, threads, memory_limit, isa, progress
        As in `nearwise.train_kmeans`.

    Examples
    --------
    >>> import nearwise
    >>> nearwise.seed_kmeans([[3.0, 4.0], [1.0, 0.0]], 1, metric="cosine", initial=[[3.0, 4.0]])
    array([[0.6, 0.8]], dtype=float32)
    """
    call = Call("seed_kmeans", settings)
    start = {"initial": initial_centroids(call, initial)}
    return call.run(_core.seed_kmeans, start, rows=rows, clusters=clusters, metric=metric, seeding=seeding)


@operation
def sum_clusters(
    rows: Any,
    centroids: Any,
    *,
    metric: KMeansMetricArgument | None = "sqeuclidean",
    first_row: int | None = 0,
    **settings: Unpack[Settings],
) -> ClusterSums:
    """Assigns a block of vectors to their nearest centroids, and sums them: one block of an iteration of k-means.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`.
    centroids : float32 [clusters, dim]
    metric : {"sqeuclidean", "inner_product", "cosine"}
        As in `nearwise.train_kmeans`.
    first_row : int
        The number of the block's first vector in the whole file, for error messages.
    context, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

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
    call, given = Call("sum_clusters", settings), {"centroids": _centroids(centroids, "centroids")}
    sums, sizes, errors = call.run(_core.sum_clusters, given, rows=rows, first_row=first_row, metric=metric)
    return ClusterSums(sums, sizes.view(np.int64), errors)


@operation
def move_centroids(
    sums: ClusterSums, centroids: Any, *, metric: KMeansMetricArgument | None = "sqeuclidean"
) -> npt.NDArray[np.float32]:
    """The new centroids from the sums of all blocks; those of empty clusters stay.

    Parameters
    ----------
    sums : ClusterSums
        Of all blocks, added.
    centroids : float32 [clusters, dim]
        Those that the vectors were assigned to.
    metric : {"sqeuclidean", "inner_product", "cosine"}
        As in `nearwise.sum_clusters`.
    """
    if not isinstance(sums, ClusterSums):
        raise TypeError(f"sums: expected ClusterSums, got {type(sums).__name__}")
    return _core.move_centroids(
        sums=sums.sums,
        sizes=sums.sizes,
        centroids=_centroids(centroids, "centroids"),
        metric=_options.metric(metric),
    )


def choose_splits(sums: ClusterSums) -> list[tuple[int, int]]:
    """Clusters with a large error, and the number of vectors to draw from each for the empty clusters."""
    return _core.choose_splits(sizes=sums.sizes, errors=sums.errors)


@operation
def draw_split_rows(
    rows: Any,
    assigned: Any,
    moved: Any,
    splits: Sequence[tuple[int, int]],
    iteration: int,
    *,
    metric: KMeansMetric,
    first_row: int,
    context: Context | None = None,
) -> SplitRows:
    """The vectors of a block with the lowest times for each split; include/nearwise/kmeans_parts.h has the rule."""
    call = Call("draw_split_rows", context)
    return SplitRows(
        *_core.draw_split_rows(
            rows=call.rows(rows, "rows"),
            assigned=_centroids(assigned, "centroids"),
            moved=_centroids(moved, "moved"),
            splits=splits,
            iteration=iteration,
            first_row=first_row,
            metric=metric,
            settings=call.settings,
        )
    )


def _centroids(values: Any, name: str) -> _core.Rows:
    call = Call("k-means", None)
    given = call.array(values, name)
    if given.type != "f32":
        raise ValueError(f"{name}: expected float32 [clusters, dim], got {given.type}")
    return given.bound(name)
