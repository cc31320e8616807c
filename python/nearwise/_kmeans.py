"""k-means."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors, adopt
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit

KMeansMetric = Literal["sqeuclidean", "inner_product", "cosine"]
Seeding = Literal["plus_plus", "random"]


class KMeans(NamedTuple):
    """Trained centroids.

    centroids : float32 [clusters, dim]
    sizes : int64 [clusters]
        Rows that the centroid was made of; 0 where it was moved instead.
    errors : float64 [iterations]
        Of every iteration: the sum of squared distances of rows from their centroids, before these are moved.
    converged : bool
        Whether training ended because the error fell no further (see `tolerance`).
    """

    centroids: npt.NDArray[np.float32]
    sizes: npt.NDArray[np.int64]
    errors: npt.NDArray[np.float64]
    converged: bool


def train_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetric = "sqeuclidean",
    iterations: int = 20,
    tolerance: float = 1e-4,
    seeding: Seeding = "plus_plus",
    initial: Any = None,
    least_rows: int = 1,
    balance: float = 0,
    batch_rows: int = 0,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> KMeans:
    """Centroids that make the squared distances of rows to their nearest centroid small.

    Lloyd's iterations on exact search: no row is left out, and each is assigned to the centroid that `knn` with k = 1
    finds. The same rows, options and seed give the same bytes with any number of threads and any memory limit, on every
    device and instruction set. Ctrl-C stops it and raises KeyboardInterrupt.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`; a memory-mapped file may be larger than `memory_limit`.
    clusters : int
        At least 1, and at most the number of rows.
    metric : {"sqeuclidean", "inner_product", "cosine"}
        sqeuclidean: a centroid is the mean of its rows. inner_product and cosine: it is their sum, scaled to length 1
        (spherical k-means); for cosine the rows are scaled to length 1 first.
    iterations : int
        At most so many.
    tolerance : float
        Converged when an iteration lowers the error by no more than this share of it. 0: when it falls no further.
    seeding : {"plus_plus", "random"}
        Where centroids start: rows drawn with a probability proportional to their squared distance from those drawn
        before, or all alike.
    initial : array [clusters, dim], optional
        Centroids to start from instead, in host memory; scaled to length 1 where centroids are.
    least_rows : int
        Between iterations a cluster of fewer rows is given up, and its centroid moved to a row of the cluster with the
        largest error. 1: only empty clusters, which never raises the error.
    balance : float
        At least 1: no cluster has more than this many times rows / clusters, in whole numbers, but no less than lets
        all rows in. Rows that find theirs full go to the nearest that has room, in every iteration; the error may then
        rise from one to the next. `assign` with the same balance says which rows go where. 0: no bound.
    batch_rows : int
        Mini-batches, for files far beyond memory: every iteration looks at about so many rows, in short blocks from all
        over the rows, and moves each centroid towards the mean of those it is given, the less the more it has been
        given before. Working memory depends on the batch then, not on the rows; 64 rows per cluster are a good
        size. `sizes` count the rows of all batches, and an error is that of the batch, times rows by rows of the batch.
        0: all rows in every iteration.
    seed : int
        Of all random numbers.
    device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; progress counts pairs of rows and centroids.

    Returns
    -------
    KMeans
        A named tuple of centroids, float32 [clusters, dim], sizes, int64 [clusters], errors, float64 [iterations], and
        converged.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
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
        "train_kmeans",
        rows,
        clusters,
        initial,
        (metric, iterations, tolerance, seeding, least_rows, balance, batch_rows, seed),
        (device, threads, memory_limit, isa, progress),
    )


def train_hierarchical_kmeans(
    rows: Any,
    clusters: int,
    *,
    metric: KMeansMetric = "sqeuclidean",
    iterations: int = 20,
    tolerance: float = 1e-4,
    seeding: Seeding = "plus_plus",
    least_rows: int = 1,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> KMeans:
    """The same for very many clusters, in two levels.

    About sqrt(clusters) are trained first; each is then cut into its share, by the number of its rows, with the same
    options. Takes about 2 / sqrt(clusters) of the time, at a somewhat larger error.

    Parameters
    ----------
    rows, clusters, metric, iterations, tolerance, seeding, least_rows, seed
        As in `nearwise.train_kmeans`.
    device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; progress counts rows.

    Returns
    -------
    KMeans
        `errors` has one entry, the sum over all parts.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    >>> trained = nearwise.train_hierarchical_kmeans(rows, 100)
    >>> trained.centroids.shape, int(trained.sizes.sum()), trained.errors.shape
    ((100, 4), 1000, (1,))
    """
    return _train(
        "train_hierarchical_kmeans",
        rows,
        clusters,
        None,
        (metric, iterations, tolerance, seeding, least_rows, 0, 0, seed),
        (device, threads, memory_limit, isa, progress),
    )


def _train(
    operation: str,
    rows: Any,
    clusters: int,
    initial: Any,
    training: tuple[str, int, float, str, int, float, int, int],
    place: tuple[Optional[str], int, Union[int, str], str, ProgressArgument],
) -> KMeans:
    metric, iterations, tolerance, seeding, least_rows, balance, batch_rows, seed = training
    device, threads, memory_limit, isa, progress = place
    limit = _options.byte_count(memory_limit, "memory_limit")
    given = [as_rows(rows, "rows", limit)]
    if initial is not None:
        given.append(as_rows(initial, "initial", limit))
        # C++ takes none for "not given".
        if given[1].array.shape[0] == 0:
            raise ValueError("initial: expected centroids [clusters, dim], given none")
    rest = rest_of_limit(limit, operation, *given)
    with reporting(progress, operation) as report:
        centroids, sizes, errors, converged = _core.train_kmeans(
            given[0].array,
            given[0].type,
            _options.count(clusters, "clusters"),
            operation == "train_hierarchical_kmeans",
            _options.word(metric, "metric"),
            _options.count(iterations, "iterations"),
            _options.number(tolerance, "tolerance"),
            _options.word(seeding, "seeding"),
            given[-1].array if initial is not None else None,
            given[-1].type,
            _options.count(least_rows, "least_rows"),
            _options.number(balance, "balance"),
            _options.count_or_none(batch_rows, "batch_rows"),
            _options.seed(seed),
            device_for(device, *(each.array for each in given)),
            _options.thread_count(threads),
            rest,
            _options.word(isa, "isa"),
            report,
        )
    return KMeans(centroids, sizes.view(np.int64), errors, converged)


def assign(
    rows: Any,
    centroids: Any,
    *,
    metric: Metric = "sqeuclidean",
    balance: float = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> Neighbors:
    """The nearest centroid of every row and its distance: what `knn` with k = 1 returns, often sooner.

    With `balance`, the nearest that has room.

    Parameters
    ----------
    rows, centroids : array [rows, dim]
        As queries and base in `nearwise.knn`; at least one centroid.
    balance : float
        At least 1: no centroid gets more than this many times rows / centroids, in whole numbers, but no less than lets
        all rows in. In rounds: every row asks the nearest centroid with room left, which takes the nearest of those that
        ask until it is full; the others ask again. 0: every row gets its nearest.
    metric, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [rows, 1], and distances, float32 [rows, 1].

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> ids, distances = nearwise.assign(rows, rows[:2])
    >>> ids[:, 0], distances[:, 0]
    (array([0, 1, 0]), array([0., 0., 1.], dtype=float32))
    >>> nearwise.assign(np.array([[0, 0], [1, 0], [2, 0], [9, 0]]), [[0, 0], [3, 4]], balance=1).ids[:, 0]
    array([0, 0, 1, 1])
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    own_rows = as_rows(rows, "rows", limit)
    centroid_rows = as_rows(centroids, "centroids", limit)
    rest = rest_of_limit(limit, "assign", own_rows, centroid_rows)
    with reporting(progress, "assign") as report:
        found = _core.assign(
            own_rows.array,
            own_rows.type,
            centroid_rows.array,
            centroid_rows.type,
            _options.word(metric, "metric"),
            _options.number(balance, "balance"),
            device_for(device, own_rows.array, centroid_rows.array),
            _options.thread_count(threads),
            rest,
            _options.word(isa, "isa"),
            report,
        )
    return adopt(found)
