"""k-means in parts: sums as numpy makes them, and the steps put together as train_kmeans has them."""

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import refuses, spoiled
from hypothesis import assume, given
from samples import TAILS, TYPES, positive_rows

METRICS = ("sqeuclidean", "inner_product", "cosine")


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(12, 200),
    dim=st.sampled_from(TAILS),
    clusters=st.integers(1, 12),
    dtype=st.sampled_from(TYPES),
    metric=st.sampled_from(METRICS),
    block_rows=st.integers(1, 200),
)
def test_an_iteration_is_that_of_lloyd(seed, rows, dim, clusters, dtype, metric, block_rows):
    data = positive_rows(seed, rows, dim, dtype)
    start = nearwise.seed_kmeans(data, clusters, metric=metric, initial=data[:clusters])
    total = nearwise.sum_clusters(data[:0], start, metric=metric)
    for first in range(0, rows, block_rows):
        total += nearwise.sum_clusters(data[first : first + block_rows], start, metric=metric, first_row=first)
    centroids, sizes, errors = oracle.lloyd(data, data[:clusters], 1, metric)
    assume(sizes.min() > 0)  # zero rows are no directions, and stand for an axis
    np.testing.assert_array_equal(total.sizes, sizes[-1])
    np.testing.assert_allclose(total.errors.sum(), errors[-1], rtol=1e-9, atol=1e-9)
    moved = nearwise.move_centroids(total, start, metric=metric)
    np.testing.assert_allclose(moved, centroids, rtol=1e-6, atol=1e-9)
    assert moved.dtype == np.float32 and total.sums.dtype == np.float64 and total.sums.shape == (clusters, dim)


@pytest.mark.parametrize("seeding", ["plus_plus", "random"])
@pytest.mark.parametrize("metric", METRICS)
def test_one_block_is_train_kmeans(base, metric, seeding):
    options = {"metric": metric, "seeding": seeding, "seed": 3}
    start = nearwise.seed_kmeans(base, 9, **options)
    moved = nearwise.move_centroids(nearwise.sum_clusters(base, start, metric=metric), start, metric=metric)
    np.testing.assert_array_equal(moved, nearwise.train_kmeans(base, 9, iterations=1, **options).centroids)


def test_wrong_arguments_are_named(base):
    start = nearwise.seed_kmeans(base, 3)
    broken = spoiled(base, 5)
    with pytest.raises(ValueError, match="sum_clusters: every element must be finite, row 105 holds NaN"):
        nearwise.sum_clusters(broken, start, first_row=100)
    refuses(ValueError, "centroids: expected float32", nearwise.sum_clusters, base, start.astype(np.float16))
    refuses(ValueError, "euclidean", nearwise.sum_clusters, base, start, metric="euclidean")
    refuses(ValueError, "initial: expected centroids", nearwise.seed_kmeans, base, 3, initial=base[:0])
    sums = nearwise.sum_clusters(base, start)
    with pytest.raises(ValueError, match="move_centroids: sums and sizes must be of 2 centroids"):
        nearwise.move_centroids(sums, start[:2])
    with pytest.raises(ValueError, match="sizes: expected at least 0, got -"):
        nearwise.move_centroids(sums._replace(sizes=-sums.sizes - 1), start)
    refuses(nearwise.Error, "memory limit", nearwise.sum_clusters, base, start, memory_limit=100)
    with pytest.raises(TypeError):
        sums + 1
