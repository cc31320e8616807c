"""Graphs that merge, grow and shrink: exact ones stay exact, others keep the recall, and words for what is refused."""

import numpy as np
import pytest
from checks import refuses

import nearwise


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((400, 6)).astype(np.float32)


def same(graph, rows):
    exact = nearwise.exact_knn_graph(rows, graph.ids.shape[1], metric=graph.metric)
    np.testing.assert_array_equal(graph.ids, exact.ids)
    np.testing.assert_array_equal(graph.distances, exact.distances)
    graph.validate()
    return True


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "cosine"])
@pytest.mark.parametrize("left", [0, 5, 200, 395])
def test_merge(rows, metric, left):
    halves = [nearwise.build_knn_graph(half, 7, metric=metric) for half in (rows[:left], rows[left:])]
    merged = nearwise.merge_knn_graphs(rows, *halves)
    assert same(merged, rows) and merged.method == "exact" and merged.reached and merged.metric == metric
    assert len(halves[1]) == 400 - left  # as it was


def test_add_and_remove(rows):
    graph = nearwise.build_knn_graph(rows[:380], 5)
    grown = graph.with_rows(rows)
    assert same(grown, rows) and len(grown) == 400 and len(graph) == 380
    ids = [399, 0, 17]
    shrunk = grown.without_rows(rows, ids)
    assert same(shrunk, np.delete(rows, ids, axis=0)) and shrunk.method == "exact"
    assert same(grown.without_rows(rows, []), rows)
    assert len(grown.without_rows(rows, np.arange(400))) == 0


def test_many_rows_reach_the_recall_that_was_asked_for():
    rows = np.random.default_rng(2).integers(0, 255, (70_000, 4)).astype(np.uint8)
    options = {"target_recall": 0.9, "seed": 3}
    halves = [nearwise.build_knn_graph(half, 5, **options) for half in (rows[:35_000], rows[35_000:])]
    reports = []
    merged = nearwise.merge_knn_graphs(rows, *halves, progress=lambda done, total: reports.append(done), **options)
    assert merged.method == "nn_descent" and merged.reached and merged.recall.low >= 0.9 and reports
    assert nearwise.measure_recall(rows, merged, sample=300, seed=9).high >= 0.9
    merged.validate()
    removed = np.arange(0, 70_000, 3)
    shrunk = merged.without_rows(rows, removed, **options)
    assert shrunk.reached and len(shrunk) == 70_000 - len(removed)
    assert nearwise.measure_recall(np.delete(rows, removed, axis=0), shrunk, sample=300, seed=9).high >= 0.9


def test_wrong_arguments(rows):
    graph = nearwise.build_knn_graph(rows[:200], 5)
    other = nearwise.build_knn_graph(rows[200:], 5)
    with pytest.raises(ValueError, match="the rows of both graphs, 200 and 200, expected, got 300 rows"):
        nearwise.merge_knn_graphs(rows[:300], graph, other)
    with pytest.raises(ValueError, match="same degree, got 5 and 6"):
        nearwise.merge_knn_graphs(rows, graph, nearwise.build_knn_graph(rows[200:], 6))
    refuses(ValueError, "left graph must be of these rows", nearwise.merge_knn_graphs, rows, other, graph)
    with pytest.raises(TypeError, match="right: expected a KnnGraph, got Neighbors"):
        nearwise.merge_knn_graphs(rows, graph, nearwise.exact_knn_graph(rows[200:], 5))
    refuses(ValueError, "got 100 rows", graph.with_rows, rows[:100])
    with pytest.raises(ValueError, match="target_recall: expected above 0 and at most 1, got 2"):
        graph.with_rows(rows, target_recall=2)
    refuses(ValueError, "ids from 0 to 199 expected, got 200", graph.without_rows, rows[:200], [200])
    refuses(ValueError, "different ids expected, got 3 twice", graph.without_rows, rows[:200], [3, 3])
    refuses(ValueError, "ids: expected integers", graph.without_rows, rows[:200], [0.5])
