"""k-means."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearwise import _options
from nearwise._index.exact import knn
from nearwise._kmeans import assign, train_kmeans
from nearwise.sklearn._parameters import in_type, seed_of, threads_of

_SEEDING = {"k-means++": "plus_plus", "random": "random"}


class KMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):
    """k-means, like scikit-learn's class of this name: the same bytes for the same `random_state` and any `n_jobs`.

    Parameters
    ----------
    n_clusters : int
    init : {"k-means++", "random"} or array [n_clusters, n_features]
        Initial centers, drawn once.
    max_iter : int
    tol : float
        Training ends when an iteration lowers the error by no more than this share of it.
    random_state : int, RandomState or None
        None: 0, so that results repeat.
    n_jobs : int or None
        Threads; None and -1: all CPUs.
    memory_limit
        See `nearwise.Context`.

    Attributes
    ----------
    cluster_centers_ : float32 [n_clusters, n_features]
    labels_ : int32 [rows]
    inertia_ : float
        Sum of squared distances to the centers.
    n_iter_, n_features_in_ : int

    Examples
    --------
    >>> rows = np.array([[0, 0], [0, 2], [9, 0], [9, 2]], dtype=np.float32)
    >>> model = KMeans(n_clusters=2).fit(rows)
    >>> model.inertia_, len(set(model.labels_))
    (4.0, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any = None) -> KMeans:
        """Trains the centers."""
        rows = validate_data(self, X)
        count = _options.count(self.n_clusters, "n_clusters")
        if count > len(rows):
            raise ValueError(f"n_clusters: expected at most n_samples={len(rows)}, got {count}")
        initial: dict[str, Any] = {"initial": self.init}
        if isinstance(self.init, str):
            _options.choice(self.init, "init", tuple(_SEEDING))
            initial = {"seeding": _SEEDING[self.init]}
        trained = train_kmeans(
            rows,
            count,
            iterations=_options.count(self.max_iter, "max_iter"),
            tolerance=_options.number(self.tol, "tol"),
            seed=seed_of(self.random_state),
            **initial,
            **self._settings(),
        )
        self.cluster_centers_ = trained.centroids
        self.n_iter_ = len(trained.errors)
        self.labels_, distances = self._assigned(rows)
        self.inertia_ = float(distances.sum(dtype=np.float64))
        return self

    def predict(self, X: Any) -> Any:
        """The nearest center of each row."""
        check_is_fitted(self)
        return self._assigned(validate_data(self, X, reset=False))[0]

    def transform(self, X: Any) -> Any:
        """The distances to all centers [rows, n_clusters]."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False)
        clusters = len(self.cluster_centers_)
        found = knn(rows, self.cluster_centers_, clusters, metric="euclidean", **self._settings())
        distances = np.empty((len(rows), clusters), dtype=np.float32)
        np.put_along_axis(distances, found.ids, found.distances, axis=1)
        return in_type(distances, rows.dtype)

    def score(self, X: Any, y: Any = None) -> float:
        """The negative sum of squared distances to the nearest centers."""
        check_is_fitted(self)
        distances = self._assigned(validate_data(self, X, reset=False))[1]
        return -float(distances.sum(dtype=np.float64))

    def _assigned(self, rows: Any) -> tuple[Any, Any]:
        found = assign(rows, self.cluster_centers_, **self._settings())
        return found.ids[:, 0].astype(np.int32), found.distances[:, 0]

    def _settings(self) -> dict[str, Any]:
        return {"threads": threads_of(self.n_jobs), "memory_limit": self.memory_limit}

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags
