"""Nearest neighbors by exact search, or by an index."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from nearwise import _options
from nearwise._index.build import build
from nearwise._index.exact import Exact
from nearwise._neighbors import Neighbors, RangeNeighbors
from nearwise.sklearn._parameters import in_type, metric_of, neighbor_matrix, threads_of


class NearestNeighbors(BaseEstimator):
    """Finds nearest neighbors, like scikit-learn's class of this name.

    Parameters
    ----------
    n_neighbors : int
        Of `kneighbors`, unless a call says otherwise.
    radius : float
        Of `radius_neighbors`, likewise.
    metric : {"euclidean", "l2", "minkowski", "sqeuclidean", "cosine"}
        minkowski with p = 2, the euclidean metric.
    target_recall : float
        1: exact search. Less: an index (`nearwise.build`) that finds at least this share of the true neighbors on
        average; searches within a radius are exact all the same.
    n_jobs : int or None
        Threads; None and -1: all CPUs.
    memory_limit
        See `nearwise.Context`.

    Attributes
    ----------
    n_samples_fit_, n_features_in_ : int
    effective_metric_ : str
        Our name of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> model = NearestNeighbors(n_neighbors=2).fit(rows)
    >>> distances, ids = model.kneighbors([[0, 1]])
    >>> ids
    array([[0, 2]])
    >>> model.kneighbors(return_distance=False)  # of the fitted vectors, each without itself
    array([[2, 1],
           [2, 0],
           [0, 1]])
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 5,
        radius: float = 1.0,
        metric: str = "euclidean",
        target_recall: float = 1.0,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.radius = radius
        self.metric = metric
        self.target_recall = target_recall
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any = None) -> NearestNeighbors:
        """Prepares the vectors for searches."""
        self.effective_metric_ = metric_of(self.metric)
        _options.count(self.n_neighbors, "n_neighbors")
        _options.target_recall(self.target_recall)
        self._fit_X = validate_data(self, X)
        self.n_samples_fit_ = len(self._fit_X)
        settings: dict[str, Any] = {
            "metric": self.effective_metric_,
            "threads": threads_of(self.n_jobs),
            "memory_limit": self.memory_limit,
        }
        self._exact = Exact(self._fit_X, **settings)
        self._index: Any = self._exact
        if self.target_recall < 1:
            self._index = build(self._fit_X, target_recall=self.target_recall, queries="batch", **settings)
        return self

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """distances and ids [rows of X, n_neighbors], nearest first; ids alone without `return_distance`.

        X: None for the fitted vectors, which are not their own neighbors.
        """
        found, dtype = self._search(X, n_neighbors)
        return (in_type(found.distances, dtype), found.ids) if return_distance else found.ids

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: Literal["connectivity", "distance"] = "connectivity"
    ) -> csr_matrix:
        """The neighbors as a sparse matrix [rows of X, n_samples_fit_] of ones or distances."""
        if mode not in ("distance", "connectivity"):
            raise ValueError(f"mode: expected 'distance' or 'connectivity', got {mode!r}")
        found, dtype = self._search(X, n_neighbors)
        return neighbor_matrix(found, self.n_samples_fit_, dtype, has_distances=mode == "distance")

    def radius_neighbors(
        self, X: Any = None, radius: float | None = None, return_distance: bool = True, sort_results: bool = False
    ) -> Any:
        """Arrays of distances and ids for each row of X: all vectors within the radius, nearest first.

        X: None for the fitted vectors, which are not their own neighbors. sort_results: they are sorted in any case.
        """
        check_is_fitted(self)
        queries = self._fit_X if X is None else validate_data(self, X, reset=False)
        found = self._exact.range_search(queries, self.radius if radius is None else radius)
        ids, distances = [], []
        for query in range(len(queries)):
            near, values = _without(found, query) if X is None else found.of(query)
            ids.append(near)
            distances.append(in_type(values, queries.dtype))
        return (_ragged(distances), _ragged(ids)) if return_distance else _ragged(ids)

    def _search(self, X: Any, n_neighbors: int | None) -> tuple[Neighbors, np.dtype[Any]]:
        check_is_fitted(self)
        count = _options.count(self.n_neighbors if n_neighbors is None else n_neighbors, "n_neighbors")
        most = self.n_samples_fit_ - (X is None)
        if count > most:
            raise ValueError(
                f"n_neighbors: expected at most {most} with n_samples_fit = {self.n_samples_fit_}, got {count}"
            )
        if X is not None:
            queries = validate_data(self, X, reset=False)
            return self._index.search(queries, count), queries.dtype
        own = np.arange(self.n_samples_fit_, dtype=np.int64)[:, None]
        return self._index.search(self._fit_X, count, exclude=own), self._fit_X.dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def _without(found: RangeNeighbors, query: int) -> tuple[Any, Any]:
    ids, distances = found.of(query)
    others = ids != query
    return ids[others], distances[others]


def _ragged(arrays: list[Any]) -> Any:
    """An array of arrays, also where all have one length."""
    result = np.empty(len(arrays), dtype=object)
    result[:] = arrays
    return result
