"""A 1-D array of queries is one query: results without the axis of queries."""

import nearwise
import numpy as np
import pytest
from checks import callables_with, refuses
from samples import TYPES, filled, positive_rows
from tensor import FLOAT, Tensor, bfloat16_tensor

LAYOUTS = {
    "row": lambda rows: rows[3],
    "list": lambda rows: rows[3].tolist(),
    "step": lambda rows: np.repeat(rows[3], 2)[::2],
    "column": lambda rows: np.asfortranarray(rows)[3],
    "backwards": lambda rows: rows[3][::-1].copy()[::-1],
    "float64": lambda rows: rows[3].astype(np.float64),
    "big-endian": lambda rows: rows[3].astype(">f4"),
    "unaligned": lambda rows: np.frombuffer(b"x" + rows[3].tobytes(), np.uint8)[1:].view(np.float32),
    "masked": lambda rows: np.ma.masked_array(rows[3]),
    "tensor": lambda rows: Tensor(rows[3], FLOAT),
}


def assert_one(found, expected):
    """`expected` is the result for a matrix of the same query."""
    assert type(found) is type(expected)
    for one, rows in zip(found, expected, strict=True):
        assert one.dtype == rows.dtype and one.shape == rows.shape[1:] and rows.shape[0] == 1
        np.testing.assert_array_equal(one, rows[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, base):
    query = LAYOUTS[layout](base)
    assert_one(nearwise.knn(query, base, 5), nearwise.knn(base[3:4], base, 5))
    assert nearwise.knn(query, base, 5).ids.shape == (5,)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    base = positive_rows(4, 50, 9, dtype)
    for metric in ("euclidean", "inner_product", "cosine"):
        assert_one(nearwise.knn(base[7], base, 3, metric=metric), nearwise.knn(base[7:8], base, 3, metric=metric))


def test_a_bfloat16_tensor():
    base = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert nearwise.knn(bfloat16_tensor(base[2]), base, 1).ids.tolist() == [2]


def test_vectors_of_one_element():
    """[dim] with dim 1 is a query, not queries."""
    base = np.array([[1], [5], [9]], dtype=np.float32)
    assert nearwise.knn([8.0], base, 2).ids.tolist() == [2, 1]
    refuses(ValueError, "3 and 1", nearwise.knn, [8.0, 1.0, 2.0], base, 2)


def test_prepared_bases(base):
    prepared = nearwise.Exact(base)
    assert_one(prepared.search(base[3], 5), prepared.search(base[3:4], 5))
    assert_one(prepared.search(base[3], 305, pad=True), prepared.search(base[3:4], 305, pad=True))


def test_range_search(base):
    """Ids and distances have no axis of queries anyway."""
    expected = nearwise.range_search(base[3:4], base, 40)
    assert len(expected.ids) > 1
    for found in (nearwise.range_search(base[3], base, 40), nearwise.Exact(base).range_search(base[3], 40)):
        assert found.offsets.tolist() == [0, len(found.ids)]
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("options", [{}, {"codes_only": True}, {"probes": 3, "candidates": 30}])
def test_inverted_files(options, rows):
    index = filled(nearwise.IvfPq, rows, lists=16, code_bytes=12)
    assert_one(index.search(rows[3], 5, **options), index.search(rows[3:4], 5, **options))
    assert_one(index.search(rows[3], 5, rerank=rows), index.search(rows[3:4], 5, rerank=rows))
    for one, other in zip(index.range_search(rows[3], 40.0), index.range_search(rows[3:4], 40.0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_graph_indexes(rows):
    index = nearwise.GraphIndex.build(rows, degree=16)
    assert_one(index.search(rows[3], 5), index.search(rows[3:4], 5))
    for one, other in zip(index.range_search(rows[3], 40.0), index.range_search(rows[3:4], 40.0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_rerank(rows):
    index = filled(nearwise.IvfFlat, rows, lists=16)
    candidates = np.array([9, 3, -1, 7])
    expected = index.rerank(rows[3:4], candidates[None], 2)
    assert expected.ids[0, 0] == 3
    assert_one(index.rerank(rows[3], candidates, 2), expected)
    assert_one(index.rerank(rows[3], candidates[None].tolist(), 2), expected)
    refuses(ValueError, "candidates: expected a 2-D array of integers", index.rerank, rows[3:4], candidates, 2)


def test_quantizers(rows):
    additive = nearwise.AdditiveQuantizer.train(rows[:300], codebooks=2, rounds=1)
    codes = additive.encode(rows[:50])
    assert_one(additive.search(rows[3], codes, 4), additive.search(rows[3:4], codes, 4))
    for kind in (nearwise.ProductQuantizer, nearwise.OptimizedProductQuantizer):
        product = kind.train(rows, parts=4, bits=4, iterations=1)
        assert product.tables(rows[3]).shape == (4, 16)
        np.testing.assert_array_equal(product.tables(rows[3]), product.tables(rows[3:4])[0])


def test_results_of_one_query_are_merged_and_saved(base, tmp_path):
    query, halves = base[3], (base[:150], base[150:])
    first, second = (nearwise.knn(query, half, 4) for half in halves)
    merged = nearwise.merge_neighbors([first, (second.ids + 150, second.distances)], 4)
    assert_one(merged, nearwise.knn(base[3:4], base, 4))
    mixed = nearwise.merge_neighbors([first, (second.ids[None] + 150, second.distances[None])], 4)
    assert mixed.ids.shape == (1, 4)
    nearwise.save(tmp_path / "one.nw", merged, metric="sqeuclidean")
    np.testing.assert_array_equal(nearwise.load(tmp_path / "one.nw").neighbors.ids, merged.ids[None])
    refuses(ValueError, r"one shape \[queries, k\] or \[k\]", nearwise.merge_neighbors, [(first.ids, mixed.distances)], 4)


def test_wrong_queries_are_named(base):
    refuses(ValueError, "23 and 24", nearwise.knn, base[0, :23], base, 1)
    refuses(ValueError, "row 0", nearwise.knn, np.full(24, np.nan, np.float32), base, 1)
    refuses(ValueError, r"queries: expected a 2-D array \[rows, dim\] or one vector \[dim\], got 3-D",
            nearwise.knn, base[None], base, 1)  # fmt: skip
    refuses(ValueError, "queries: expected a 2-D .* got 0-D", nearwise.knn, np.float32(1), base, 1)
    refuses("out_of_memory", "queries: a converted copy", nearwise.knn, base[3].astype(float), base, 1, memory_limit=90)


def test_only_queries_may_be_one_vector(base):
    refuses(ValueError, r"base: expected a 2-D .*base\[None, :\]", nearwise.knn, base, base[0], 1)
    refuses(ValueError, r"rows: expected a 2-D .*rows\[None, :\]", nearwise.assign, base[0], base)


def test_every_search_is_tested_here():
    """A new callable with queries belongs into this file."""
    tested = {"knn", "range_search", "Exact.search", "Exact.range_search", "AdditiveQuantizer.search"}
    tested |= {f"{kind}.tables" for kind in ("ProductQuantizer", "OptimizedProductQuantizer")}
    tested |= {f"{kind}.{name}" for kind in ("Ivf", "IvfFlat", "IvfPq", "IvfLsq") for name in ("search", "rerank", "range_search")}
    tested |= {"GraphIndex.search", "GraphIndex.range_search"}
    counts = {f"{kind}.calibrate" for kind in ("Ivf", "IvfFlat", "IvfPq", "IvfLsq")}
    patterns = {"build", "choose_index"}  # "single" or "batch"
    samples = {"bench"}  # whose recall is a mean
    assert callables_with("queries") == tested | counts | patterns | samples
