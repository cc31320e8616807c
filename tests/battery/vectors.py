"""The vectors of all cases, and the truth about them."""

import numpy as np

DIM = 32
SIZE = 3000
SMALL = 500  # of a smaller index
K = 10

_random = np.random.default_rng(7)
ROWS = _random.standard_normal((SIZE, DIM), dtype=np.float32)
QUERIES = ROWS[:200] + 0.05 * _random.standard_normal((200, DIM), dtype=np.float32)


def normal(rows, dim, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def nearest(base, queries, k, metric="sqeuclidean"):
    """Ids of the k nearest vectors, by brute force."""
    norms = (base**2).sum(1)
    if metric == "cosine":
        base, queries, norms = unit(base), unit(queries), 0
    distances = norms - 2 * queries @ base.T
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


def recall(found, truth):
    return float(np.mean([len(set(ids.tolist()) & set(true.tolist())) / len(true) for ids, true in zip(found, truth)]))


def same_bits(left, right):
    """Whether two sequences of arrays are equal in shapes, types and bits."""
    return len(left) == len(right) and all(
        one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
        for one, other in zip(left, right)
    )
