"""All rows within a radius: equal to the definition, bit for bit."""

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
    query_rows=st.integers(0, 12),
    base_rows=st.integers(0, 80),
    dim=st.sampled_from(TAILS),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    metric=st.sampled_from(oracle.METRICS),
    share=st.floats(0, 1),
)
def test_equals_the_definition(seed, query_rows, base_rows, dim, types, metric, share):
    queries = random_rows(seed, query_rows, dim, types[0])
    base = random_rows(seed + 1, base_rows, dim, types[1])
    everything = np.sort(oracle.distances(queries, base, metric).ravel())
    # A distance that occurs: rows exactly at the radius are inside.
    radius = everything[int(share * (everything.size - 1))] if everything.size else 1.0
    oracle.check_range(nearwise.range_search(queries, base, radius, metric=metric), queries, base, radius, metric)


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("dtype", TYPES)
def test_large_enough_for_several_blocks(dtype, metric):
    base = positive_rows(3, 1500, 40, dtype)
    queries = base[::30]
    radius = float(np.quantile(oracle.distances(queries, base, metric), 0.9 if metric == "inner_product" else 0.1))
    oracle.check_range(nearwise.range_search(queries, base, radius, metric=metric), queries, base, radius, metric)


def test_same_bits_for_any_threads_instruction_set_and_memory():
    base = np.random.default_rng(4).standard_normal((3000, 24), dtype=np.float32)
    expected = nearwise.range_search(base[:200], base, 20)
    assert expected.offsets[-1] > 1000
    for options in (*MACHINES, {"memory_limit": "16MiB"}):
        assert_same(nearwise.range_search(base[:200], base, 20, **options), expected)


def test_types_and_ownership(queries, base):
    found = nearwise.range_search(queries, base, 40)
    assert type(found) is nearwise.RangeNeighbors and found._fields == ("offsets", "ids", "distances")
    assert found.offsets.shape == (21,) and found.ids.shape == found.distances.shape == (found.offsets[-1],)
    for array, dtype in zip(found, (np.int64, np.int64, np.float32)):
        assert array.dtype == dtype and array.dtype.num == np.dtype(dtype).num
        assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned
    kept, expected = found.ids[3:], found.ids[3:].copy()
    del found
    np.testing.assert_array_equal(kept, expected)  # a view keeps the memory


def test_answers_of_one_query(queries, base):
    found = nearwise.range_search(queries, base, 40)
    assert len({len(found.of(query)[0]) for query in range(20)}) > 1
    for query in (0, 7, 19, np.int64(3)):
        ids, distances = found.of(query)
        alone = nearwise.range_search(queries[query][None, :], base, 40)
        np.testing.assert_array_equal(ids, alone.ids)
        np.testing.assert_array_equal(distances, alone.distances)
        assert np.shares_memory(ids, found.ids) or ids.size == 0
    np.testing.assert_array_equal(found.of(-1)[0], found.of(19)[0])
    for outside in (20, -21):
        refuses(IndexError, "", found.of, outside)


def test_nothing_and_everything(queries, base):
    nothing = nearwise.range_search(queries, base, -1)
    assert nothing.offsets.tolist() == [0] * 21 and nothing.ids.shape == nothing.distances.shape == (0,)
    assert nothing.ids.dtype == np.int64 and nothing.of(4)[0].shape == (0,)
    for radius in (np.inf, 1e300):
        everything = nearwise.range_search(queries, base, radius)
        np.testing.assert_array_equal(everything.ids.reshape(20, 300), nearwise.knn(queries, base, 300).ids)
    assert nearwise.range_search(queries, base, -np.inf, metric="inner_product").offsets[-1] == 6000
    empty = np.empty((0, 24), np.float32)
    assert nearwise.range_search(empty, base, 1).offsets.tolist() == [0]
    assert nearwise.range_search(queries, empty, 1).offsets.tolist() == [0] * 21


def test_the_radius_is_rounded_as_distances_are():
    base = np.array([[0.1]], np.float32)
    zero = np.zeros((1, 1), np.float32)
    distance = nearwise.knn(zero, base, 1, metric="euclidean").distances[0, 0]
    for radius in (0.1, np.float32(0.1), np.float64(distance), np.array(0.1)):
        assert nearwise.range_search(zero, base, radius, metric="euclidean").ids.tolist() == [0]
    assert nearwise.range_search(zero, base, np.nextafter(distance, np.float32(0)), metric="euclidean").ids.size == 0
    assert nearwise.range_search(zero, base, 1, metric="euclidean").ids.tolist() == [0]


@pytest.mark.parametrize(
    ("radius", "kind", "text"),
    [
        (np.nan, ValueError, "radius: expected a number, got NaN"),
        ("1", TypeError, r"radius: expected a number, got '1' \(str\)"),
        (None, TypeError, "radius: expected a number, got None"),
        (True, TypeError, "radius: expected a number, got True"),
        (1j, TypeError, "radius: expected a number"),
        (np.ones(3), TypeError, "radius: expected a number"),
        ([1.0], TypeError, "radius: expected a number"),
    ],
)
def test_radius(radius, kind, text, queries, base):
    refuses(kind, text, nearwise.range_search, queries, base, radius)
    refuses(kind, text, nearwise.Exact(base).range_search, queries, radius)


def test_errors(queries, base):
    with pytest.raises(ValueError, match="range_search: queries and base must have the same dimension, got 23 and 24"):
        nearwise.range_search(queries[:, :23], base, 1)
    with pytest.raises(ValueError, match="queries: dtype complex64 is not accepted"):
        nearwise.range_search(queries.astype(np.complex64), base, 1)
    refuses(ValueError, "metric: expected one of", nearwise.range_search, queries, base, 1, metric="l3")
    with pytest.raises(TypeError, match="progress: expected None, True or a callable"):
        nearwise.range_search(queries, base, 1, progress=3)
    refuses(TypeError, "", nearwise.range_search, queries, base, 1, "cosine")
    refuses(ValueError, r"\b17\b", nearwise.range_search, spoiled(queries, 17, np.inf), base, 1)
    refuses(ValueError, r"\b17\b", nearwise.range_search, queries, spoiled(base, 17, np.inf), 1)


def test_more_answers_than_memory():
    base = np.zeros((2000, 4), np.float32)
    # Four million answers.
    refuses("out_of_memory", "memory", nearwise.range_search, base, base, 0, memory_limit="16MiB")


def test_progress(base):
    rows = np.tile(base, (20, 1))
    done, total = reports_of(nearwise.range_search, rows, rows, 1)[-1]
    assert done == total
