"""Every row's nearest other rows: exact_knn_graph, and knn with exclude_self."""

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import MACHINES, refuses, reports_of, spoiled
from hypothesis import given
from samples import TAILS, TYPES, assert_same, positive_rows, random_rows


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 80),
    dim=st.sampled_from(TAILS),
    k=st.integers(1, 100),
    dtype=st.sampled_from(TYPES),
    metric=st.sampled_from(oracle.METRICS),
    spread=st.sampled_from((2, 4, 100)),
)
def test_equals_the_definition(seed, rows, dim, k, dtype, metric, spread):
    base = random_rows(seed, rows, dim, dtype, spread)
    graph = nearwise.exact_knn_graph(base, k, metric=metric, pad=True)
    oracle.check_graph(graph, base, k, metric)
    assert_same(nearwise.knn(base, base, k, metric=metric, pad=True, exclude_self=True), graph)


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("dtype", TYPES)
def test_large_enough_for_the_self_join(dtype, metric):
    base = positive_rows(3, 1100, 40, dtype)
    base[700:720] = base[:20]  # copies are neighbours of each other
    oracle.check_graph(nearwise.exact_knn_graph(base, 12, metric=metric), base, 12, metric)


def test_a_copy_of_a_row_is_a_neighbour():
    base = np.zeros((5, 3), np.float32)
    found = nearwise.exact_knn_graph(base, 2)
    assert found.ids.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1], [0, 1]]
    assert found.distances.tolist() == [[0, 0]] * 5


def test_same_bits_for_any_threads_instruction_set_and_memory():
    base = np.random.default_rng(4).standard_normal((1500, 24), dtype=np.float32)
    expected = nearwise.exact_knn_graph(base, 7)
    for options in (*MACHINES, {"memory_limit": "4MiB"}):
        assert_same(nearwise.exact_knn_graph(base, 7, **options), expected)


def test_types_and_ownership(base):
    found = nearwise.exact_knn_graph(base.astype(np.float64), np.int64(5))  # converted
    assert type(found) is nearwise.Neighbors
    assert found.ids.dtype == np.int64 and found.distances.dtype == np.float32
    assert_same(found, nearwise.exact_knn_graph(base, 5))
    kept, expected = found.ids[:, 0], found.ids[:, 0].copy()
    del found
    np.testing.assert_array_equal(kept, expected)


def test_one_row_and_none():
    one = nearwise.exact_knn_graph(np.ones((1, 3), np.float32), 2, pad=True)
    assert one.ids.tolist() == [[-1, -1]] and np.isinf(one.distances).all()
    none = nearwise.exact_knn_graph(np.ones((0, 3), np.float32), 2, pad=True)
    assert none.ids.shape == none.distances.shape == (0, 2)


def test_progress(base):
    rows = np.tile(base, (30, 1))
    done, total = reports_of(nearwise.exact_knn_graph, rows, 3)[-1]
    assert done == total


@pytest.mark.parametrize("operation", ["exact_knn_graph", "knn"])
def test_k_counts_the_other_rows(operation, base):
    def search(k):
        if operation == "knn":
            return nearwise.knn(base, base, k, exclude_self=True)
        return nearwise.exact_knn_graph(base, k)

    assert search(299).ids.shape == (300, 299)
    refuses(ValueError, f"{operation}: k must be at most the number of other base rows, 299, got 300", search, 300)
    refuses(ValueError, "k: expected at least 1, got 0", search, 0)


def test_errors(queries, base):
    with pytest.raises(ValueError, match="exclude_self needs equal queries and base, got 20 and 300 rows"):
        nearwise.knn(queries, base, 3, exclude_self=True)
    refuses(TypeError, "exclude_self: expected True or False, got 1", nearwise.knn, base, base, 3, exclude_self=1)
    refuses(ValueError, r"base: expected a 2-D .*base\[None, :\]", nearwise.exact_knn_graph, base[0], 3)
    refuses(ValueError, "metric: expected one of", nearwise.exact_knn_graph, base, 3, metric="l3")
    refuses(TypeError, "", nearwise.exact_knn_graph, base, 3, "cosine")
    refuses(ValueError, r"\b17\b", nearwise.exact_knn_graph, spoiled(base, 17), 3)


def test_memory_limit_is_refused_or_kept(base):
    refuses("out_of_memory", "memory", nearwise.exact_knn_graph, base, 5, memory_limit=100)
    wide = base.astype(np.float64)
    refuses("out_of_memory", "base: a converted copy of float64", nearwise.exact_knn_graph, wide, 5, memory_limit=20_000)
