"""Every row's nearest other rows: exact_knn_graph, and knn with exclude_self."""

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
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
    for options in [{"threads": 1}, {"threads": 3}, {"memory_limit": "4MiB"}] + [
        {"isa": isa} for isa in nearwise.info()["instruction_sets"]
    ]:
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
    reports = []
    nearwise.exact_knn_graph(rows, 3, progress=lambda done, total: reports.append((done, total)))
    assert reports and reports[-1][0] == reports[-1][1]


@pytest.mark.parametrize("operation", ["exact_knn_graph", "knn"])
def test_k_counts_the_other_rows(operation, base):
    def search(k):
        if operation == "knn":
            return nearwise.knn(base, base, k, exclude_self=True)
        return nearwise.exact_knn_graph(base, k)

    assert search(299).ids.shape == (300, 299)
    with pytest.raises(ValueError, match=f"{operation}: k must be at most the number of other base rows, 299, given 300"):
        search(300)
    with pytest.raises(ValueError, match="k: expected at least 1, given 0"):
        search(0)


def test_errors(queries, base):
    with pytest.raises(ValueError, match="with exclude_self the queries are the base row by row, given 20 and 300 rows"):
        nearwise.knn(queries, base, 3, exclude_self=True)
    with pytest.raises(TypeError, match="exclude_self: expected True or False, given 1"):
        nearwise.knn(base, base, 3, exclude_self=1)
    with pytest.raises(ValueError, match=r"base: expected a 2-D .*base\[None, :\]"):
        nearwise.exact_knn_graph(base[0], 3)
    with pytest.raises(ValueError, match="metric: expected one of"):
        nearwise.exact_knn_graph(base, 3, metric="l2")
    with pytest.raises(TypeError):
        nearwise.exact_knn_graph(base, 3, "cosine")
    damaged = base.copy()
    damaged[17, 3] = np.nan
    with pytest.raises(ValueError, match=r"\b17\b"):
        nearwise.exact_knn_graph(damaged, 3)


def test_memory_limit_is_refused_or_kept(base):
    with pytest.raises(nearwise.Error, match="memory") as caught:
        nearwise.exact_knn_graph(base, 5, memory_limit=100)
    assert caught.value.code == "out_of_memory"
    with pytest.raises(nearwise.Error, match="base: a converted copy of float64") as caught:
        nearwise.exact_knn_graph(base.astype(np.float64), 5, memory_limit=20_000)
    assert caught.value.code == "out_of_memory"
