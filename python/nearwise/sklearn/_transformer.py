"""A transformer of vectors into their k-NN graph."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearwise import _options
from nearwise._index.exact import knn
from nearwise._knn_graph import KnnGraph, build_knn_graph
from nearwise._neighbors import Neighbors
from nearwise.sklearn._parameters import metric_of, neighbor_matrix, seed_of, threads_of


class KNeighborsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transforms vectors into the sparse matrix of their nearest neighbors, like scikit-learn's class of this name.

    For estimators that take a precomputed graph: ``DBSCAN(metric="precomputed")``, ``Isomap`` and
    ``KNeighborsClassifier`` likewise, ``SpectralClustering(affinity="precomputed_nearest_neighbors")``, and scanpy's
    ``sc.pp.neighbors(transformer=...)``. `fit_transform` builds the graph by `nearwise.build_knn_graph`, at a measured
    recall; `transform` finds the neighbors of other vectors by exact search.

    Parameters
    ----------
    mode : {"distance", "connectivity"}
        Whether the matrix holds distances or ones.
    n_neighbors : int
        Neighbors of each vector. As in scikit-learn, a fitted vector is its own neighbor: with "connectivity" it is
        one of them, with "distance" an additional one.
    metric : {"euclidean", "l2", "minkowski", "sqeuclidean", "cosine"}
        minkowski with p = 2, the euclidean metric.
    target_recall : float
        Share of the true neighbors in the graph; 1: exact search.
    random_state : int, RandomState or None
        Of the graph. None: 0, so that results repeat.
    n_jobs : int or None
        Threads; None and -1: all CPUs.
    memory_limit
        See `nearwise.Context`.

    Attributes
    ----------
    graph_ : KnnGraph
        With its measured recall; set by `fit_transform`.
    n_samples_fit_, n_features_in_ : int

    Examples
    --------
    >>> from sklearn.cluster import DBSCAN
    >>> from sklearn.pipeline import make_pipeline
    >>> rows = np.array([[0], [0.1], [5], [0.2], [5.1]], dtype=np.float32)
    >>> transformer = KNeighborsTransformer(n_neighbors=2)
    >>> make_pipeline(transformer, DBSCAN(eps=0.5, min_samples=2, metric="precomputed")).fit_predict(rows)
    array([0, 0, 1, 0, 1])
    >>> transformer.graph_.recall.value
    1.0
    """

    def __init__(
        self,
        *,
        mode: Literal["distance", "connectivity"] = "distance",
        n_neighbors: int = 5,
        metric: str = "euclidean",
        target_recall: float = 0.95,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.target_recall = target_recall
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:
        """Keeps the vectors, in which `transform` searches."""
        self._check_parameters()
        self._fit_X = validate_data(self, X)
        self.n_samples_fit_ = len(self._fit_X)
        self.__dict__.pop("graph_", None)  # of other vectors
        return self

    def transform(self, X: Any) -> csr_matrix:
        """The nearest fitted vectors of each vector of X, by exact search: [rows of X, n_samples_fit_]."""
        check_is_fitted(self)
        self._check_parameters()
        queries = validate_data(self, X, reset=False)
        found = knn(
            queries,
            self._fit_X,
            self._checked_count(),
            metric=metric_of(self.metric),
            threads=threads_of(self.n_jobs),
            memory_limit=self.memory_limit,
        )
        return self._matrix(found, queries.dtype)

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """Fits X and returns its graph, each vector its own first neighbor: [n_samples_fit_, n_samples_fit_]."""
        self.fit(X)
        count = self._checked_count()
        self.graph_: KnnGraph = build_knn_graph(
            self._fit_X,
            max(count - 1, 1),
            metric=metric_of(self.metric),
            target_recall=self.target_recall,
            seed=seed_of(self.random_state),
            threads=threads_of(self.n_jobs),
            memory_limit=self.memory_limit,
        )
        ids, distances = self.graph_.with_self()
        return self._matrix(Neighbors(ids[:, :count], distances[:, :count]), self._fit_X.dtype)

    def _check_parameters(self) -> None:
        if self.mode not in ("distance", "connectivity"):
            raise ValueError(f"mode: expected 'distance' or 'connectivity', got {self.mode!r}")
        metric_of(self.metric)
        _options.count(self.n_neighbors, "n_neighbors")

    def _checked_count(self) -> int:
        """Entries of each row of the matrix."""
        count = self.n_neighbors + (self.mode == "distance")
        if count > self.n_samples_fit_:
            raise ValueError(
                f"n_neighbors: expected at most {self.n_samples_fit_ - (self.mode == 'distance')} with mode "
                f"{self.mode!r} and n_samples_fit = {self.n_samples_fit_}, got {self.n_neighbors}"
            )
        return count

    def _matrix(self, found: Neighbors, dtype: np.dtype[Any]) -> csr_matrix:
        return neighbor_matrix(found, self.n_samples_fit_, dtype, has_distances=self.mode == "distance")

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
