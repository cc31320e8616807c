"""The answers: equal to the definition, bit for bit, for every type, metric, shape and number of threads."""

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import MACHINES, frees_what_it_takes
from hypothesis import given
from samples import TAILS, TYPES, assert_same, positive_rows, random_rows


@given(
    seed=st.integers(0, 2**32 - 1),
    query_rows=st.integers(0, 12),
    base_rows=st.integers(1, 80),
    dim=st.sampled_from(TAILS),
    k=st.integers(1, 100),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    metric=st.sampled_from(oracle.METRICS),
    spread=st.sampled_from((2, 4, 100)),
)
def test_equals_the_definition(seed, query_rows, base_rows, dim, k, types, metric, spread):
    queries = random_rows(seed, query_rows, dim, types[0], spread)
    base = random_rows(seed + 1, base_rows, dim, types[1], spread)
    found = nearwise.knn(queries, base, k, metric=metric, pad=True)
    oracle.check(found, queries, base, k, metric)


@given(seed=st.integers(0, 2**32 - 1), scale=st.integers(-30, 30), metric=st.sampled_from(oracle.METRICS))
def test_equals_the_definition_for_floats_of_any_size(seed, scale, metric):
    random = np.random.default_rng(seed)
    base = (random.standard_normal((200, 19)) * 2.0**scale).astype(np.float32)
    queries = (random.standard_normal((5, 19)) * 2.0**scale).astype(np.float32)
    queries[0] = base[17]
    oracle.check(nearwise.knn(queries, base, 10, metric=metric), queries, base, 10, metric)


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("dtype", TYPES)
def test_large_enough_for_the_blocked_path(dtype, metric):
    base = positive_rows(3, 1500, 40, dtype)
    queries = base[::30]
    oracle.check(nearwise.knn(queries, base, 20, metric=metric), queries, base, 20, metric)


def test_shapes_types_and_ownership_of_the_result(queries, base):
    found = nearwise.knn(queries, base, k=5)
    ids, distances = found
    assert type(found) is nearwise.Neighbors
    assert found._fields == ("ids", "distances")
    assert ids.shape == distances.shape == (20, 5)
    assert ids.dtype == np.int64 and ids.dtype.num == np.dtype(np.int64).num
    assert distances.dtype == np.float32
    for array in found:
        assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
    kept = ids[:, 0]
    expected = kept.copy()
    del found, ids, distances
    np.testing.assert_array_equal(kept, expected)  # a view keeps the memory


def test_same_bits_whatever_the_machine_offers():
    rows = np.random.default_rng(5).standard_normal((4000, 24), dtype=np.float32)
    expected = nearwise.knn(rows[:500], rows, 10)
    for options in (*MACHINES, {"threads": 2}, {"threads": 4}, {"memory_limit": "4MiB"}):
        assert_same(nearwise.knn(rows[:500], rows, 10, **options), expected)


@pytest.mark.parametrize("metric", oracle.METRICS)
def test_k_equal_to_and_beyond_the_base(queries, base, metric):
    oracle.check(nearwise.knn(queries, base, 300, metric=metric), queries, base, 300, metric)
    padded = nearwise.knn(queries, base, 310, metric=metric, pad=True)
    oracle.check(padded, queries, base, 310, metric)
    assert (padded.ids[:, 300:] == -1).all()
    assert (padded.distances[:, 300:] == (-np.inf if metric == "inner_product" else np.inf)).all()


def test_an_empty_base_is_all_padding(queries):
    found = nearwise.knn(queries, np.empty((0, 24), np.float32), 3, pad=True)
    assert found.ids.shape == (20, 3) and (found.ids == -1).all() and np.isinf(found.distances).all()


def test_no_queries(base):
    found = nearwise.knn(np.empty((0, 24), np.float32), base, 3)
    assert found.ids.shape == found.distances.shape == (0, 3)


def test_k_may_be_a_numpy_integer(queries, base):
    for k in (np.int64(3), np.uint8(3), np.array(3)):
        assert nearwise.knn(queries, base, k).ids.shape == (20, 3)


def test_zero_vectors_under_cosine(base):
    zero = np.zeros((1, 24), np.float32)
    found = nearwise.knn(zero, base, 3, metric="cosine")
    assert found.ids.tolist() == [[0, 1, 2]] and found.distances.tolist() == [[1, 1, 1]]


def test_results_are_freed():
    base = np.arange(1000, dtype=np.float32)[:, None]
    frees_what_it_takes(lambda: nearwise.knn(base[:300], base, 1000))  # 3.6 MB
