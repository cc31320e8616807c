"""k-means."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, SeededSettings, Settings, operation
from nearwise._neighbors import MetricArgument, Neighbors, adopt

KMeansMetric = Literal["sqeuclidean", "inner_product", "cosine"]
KMeansMetricArgument = KMeansMetric | Literal["l2", "l2sq", "ip", "dot", "cos"]
Seeding = Literal["plus_plus", "random"]


class KMeans(NamedTuple):
    """Trained centroids.

    centroids : float32 [clusters, dim]
    sizes : int64 [clusters]
        Vectors that the centroid is the mean of; 0 where it was moved to an empty cluster.
    errors : float64 [iterations]
        Sum of squared distances of all vectors to their centroids at the start of every iteration.
    converged : bool
        Whether training ended because the error no longer decreased (see `tolerance`).
    """

    centroids: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    errors: npt.NDArray[np.float64]
    converged: bool


@operation
def train_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetricArgument | None = "sqeuclidean",
    iterations: int | None = 20,
    tolerance: float | None = 1e-4,
    seeding: Seeding | None = "plus_plus",
    initial: Any = None,
    min_cluster_size: int | None = 1,
    balance: float | None = None,
    batch_size: int | None = None,
    **settings: Unpack[SeededSettings],
) -> KMeans:
    """k-means centroids by Lloyd's algorithm on exact search.

    Every vector is assigned to the centroid that `knn` with k = 1 finds. The same vectors, options and seed
    give the same bytes with any number of threads and any memory limit, on every device and instruction set.
    Ctrl-C stops it and raises KeyboardInterrupt.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`; a memory-mapped file may be larger than `memory_limit`.
    clusters : int
        At least 1, and at most the number of vectors.
    metric : {"sqeuclidean", "inner_product", "cosine"}
        sqeuclidean: a centroid is the mean of its vectors. inner_product and cosine: their sum, scaled to length 1
        (spherical k-means); for cosine the vectors are scaled to length 1 first.
    iterations : int
        Upper bound.
    tolerance : float
        Converged when an iteration lowers the error by no more than this fraction of it. 0: when it no longer
        decreases.
    seeding : {"plus_plus", "random"}
        Initial centroids: vectors drawn with a probability proportional to their squared distance to those drawn before
        (k-means++), or uniformly.
    initial : array [clusters, dim], optional
        Initial centroids, in host memory; scaled to length 1 where centroids are. Replaces `seeding`.
    min_cluster_size : int
        After an iteration, the centroid of a smaller cluster is moved to a vector of the cluster with the
        largest error. 1: only those of empty clusters, which never raises the error.
    balance : float, optional
        At least 1: no cluster gets more than this times rows / clusters vectors, rounded up to what all vectors need. A
        vector whose nearest cluster is full goes to the nearest that is not; the error may then rise between
        iterations. `assign` with the same balance gives the assignment. Default: unbounded.
    batch_size : int, optional
        Mini-batches, for files far larger than memory: every iteration uses about this many vectors, in short
        blocks from all over the file, and moves each centroid towards their mean by a weight that falls with
        the number of vectors it has had. Memory then depends on the batch alone; 64 vectors per cluster are a
        good size. `sizes` count the vectors of all batches, and an error is that of the batch scaled to all
        vectors. Default: all vectors.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

    Returns
    -------
    KMeans
        A named tuple of centroids, float32 [clusters, dim], sizes, int64 [clusters], errors, float64 [iterations], and
        converged.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [0, 2], [9, 0], [9, 2], [9, 4]], dtype=np.float32)
    >>> trained = nearwise.train_kmeans(rows, 2, initial=rows[[0, 4]])
    >>> trained.centroids
    array([[0., 1.],
           [9., 2.]], dtype=float32)
    >>> trained.sizes, trained.converged
    (array([2, 3]), True)
    >>> trained.errors
    array([24., 10., 10.])
    >>> nearwise.assign(rows, trained.centroids).ids[:, 0]
    array([0, 0, 1, 1, 1])
    >>> nearwise.train_kmeans(rows, 2, initial=[[0, 1], [0, 9]], iterations=1).sizes
    array([5, 0])
    >>> nearwise.train_kmeans(rows, 2, initial=[[0, 1], [0, 9]], iterations=1, balance=1).sizes
    array([3, 2])
    """
    return _train(
        Call("train_kmeans", settings),
        initial,
        hierarchical=False,
        rows=rows,
        clusters=clusters,
        metric=metric,
        iterations=iterations,
        tolerance=tolerance,
        seeding=seeding,
        min_cluster_size=min_cluster_size,
        balance=balance,
        batch_size=batch_size,
    )


@operation
def train_hierarchical_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetricArgument | None = "sqeuclidean",
    iterations: int | None = 20,
    tolerance: float | None = 1e-4,
    seeding: Seeding | None = "plus_plus",
    min_cluster_size: int | None = 1,
    **settings: Unpack[SeededSettings],
) -> KMeans:
    """k-means in two levels, for very many clusters.

    Trains about sqrt(clusters) clusters and splits each in proportion to its size, with the same options. Takes about
    2 / sqrt(clusters) of the time of `train_kmeans`, at a somewhat larger error.

    Parameters
    ----------
    rows, clusters, metric, iterations, tolerance, seeding, min_cluster_size
        As in `nearwise.train_kmeans`.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`; progress counts vectors.

    Returns
    -------
    KMeans
        `errors` has one entry, the sum over all clusters.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    >>> trained = nearwise.train_hierarchical_kmeans(rows, 100)
    >>> trained.centroids.shape, int(trained.sizes.sum()), trained.errors.shape
    ((100, 4), 1000, (1,))
    """
    return _train(
        Call("train_hierarchical_kmeans", settings),
        None,
        hierarchical=True,
        rows=rows,
        clusters=clusters,
        metric=metric,
        iterations=iterations,
        tolerance=tolerance,
        seeding=seeding,
        min_cluster_size=min_cluster_size,
        balance=None,
        batch_size=None,
    )


@operation
def assign(
    rows: Any,
    centroids: Any,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    balance: float | None = None,
    **settings: Unpack[Settings],
) -> Neighbors:
    """The nearest centroid of every vector and its distance: the result of `knn` with k = 1, often faster.

    Parameters
    ----------
    rows, centroids : array [rows, dim]
        As queries and base in `nearwise.knn`; at least one centroid.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        As in `nearwise.knn`.
    balance : float, optional
        At least 1: no centroid gets more than this times rows / centroids vectors, rounded up to what all
        vectors need. In rounds: every vector applies to the nearest centroid that is not full, which accepts
        the nearest applicants until it is; the others apply again. Default: every vector gets its nearest
        centroid.
    context, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [rows, 1], and distances, float32 [rows, 1].

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> ids, distances = nearwise.assign(rows, rows[:2])
    >>> ids[:, 0], distances[:, 0]
    (array([0, 1, 0]), array([0., 0., 1.], dtype=float32))
    >>> nearwise.assign(np.array([[0, 0], [1, 0], [2, 0], [9, 0]]), [[0, 0], [3, 4]], balance=1).ids[:, 0]
    array([0, 0, 1, 1])
    """
    call = Call("assign", settings)
    return adopt(call.run(_core.assign, rows=rows, centroids=centroids, metric=metric, balance=balance))


def _train(call: Call, initial: Any, **options: Any) -> KMeans:
    found = call.run(_core.train_kmeans, {"initial": initial_centroids(call, initial)}, **options)
    return KMeans(found[0], found[1].view(np.int64), *found[2:])


def initial_centroids(call: Call, initial: Any) -> _core.Rows | None:
    if initial is None:
        return None
    given = call.rows(initial, "initial")
    if given.shape[0] == 0:  # to C++, no vectors mean that none were given
        raise ValueError("initial: expected centroids [clusters, dim], got none")
    return given
