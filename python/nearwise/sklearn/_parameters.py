"""What estimators share: scikit-learn's parameters as ours, and sparse matrices of neighbors."""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from nearwise._neighbors import Metric, Neighbors

# scikit-learn's names of metrics and ours. minkowski is scikit-learn's default, with p = 2.
METRICS: dict[str, Metric] = {
    "cosine": "cosine",
    "euclidean": "euclidean",
    "l2": "euclidean",
    "minkowski": "euclidean",
    "sqeuclidean": "sqeuclidean",
}


def metric_of(name: Any) -> Metric:
    if name not in METRICS:
        raise ValueError(f"metric: expected one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[name]


def threads_of(n_jobs: Any) -> int | None:
    """None and -1: all CPUs; -2: all but one."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise ValueError(f"n_jobs: expected None or an integer other than 0, got {n_jobs!r}")
    count = int(n_jobs)
    return count if count > 0 else max(1, len(os.sched_getaffinity(0)) + 1 + count)


def seed_of(random_state: Any) -> int:
    """None: 0, so that results repeat. An integer is used as it is, a generator is drawn from."""
    if random_state is None:
        return 0
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def neighbor_matrix(found: Neighbors, columns: int, dtype: np.dtype[Any], *, has_distances: bool) -> csr_matrix:
    """[rows, columns] with the distances, or ones."""
    rows, count = found.ids.shape
    values = found.distances if has_distances else np.ones((rows, count), dtype=np.float32)
    index = np.int32 if max(found.ids.size, columns) < 2**31 else np.int64
    offsets = np.arange(0, rows * count + 1, count, dtype=index)
    ids = found.ids.reshape(-1).astype(index)
    return csr_matrix((in_type(values, dtype).reshape(-1), ids, offsets), shape=(rows, columns))


def in_type(values: Any, dtype: np.dtype[Any]) -> Any:
    """float64 for float64, as scikit-learn returns it; the values are float32."""
    return values.astype(np.float64 if dtype == np.float64 else np.float32, copy=False)
