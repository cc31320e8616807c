"""nearwise.build_knn_graph: the contract of rows, the recall it reports, files, and words for what is refused."""

import numpy as np
import pytest
from checks import damage, refuses

import nearwise


def brute_force(rows, degree):
    rows = rows.astype(np.float64)
    distances = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :degree]


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(1).standard_normal((500, 6)).astype(np.float32)


def test_few_rows_are_searched_exactly(rows):
    graph = nearwise.build_knn_graph(rows, 7)
    np.testing.assert_array_equal(graph.ids, brute_force(rows, 7))
    assert graph.method == "exact" and graph.reached and graph.recall == (1.0, 1.0, 1.0, 500)
    assert graph.ids.dtype == np.int64 and graph.distances.dtype == np.float32
    ids, distances = graph
    assert ids is graph.ids and distances is graph.distances and len(graph) == 500
    graph.validate()
    exact = nearwise.exact_knn_graph(rows, 7)
    np.testing.assert_array_equal(graph.distances, exact.distances)


def test_many_rows_descend_to_the_recall_that_was_asked_for():
    rows = np.random.default_rng(2).integers(0, 255, (66_000, 4)).astype(np.uint8)
    graph = nearwise.build_knn_graph(rows, degree=5, target_recall=0.9, seed=3)
    assert graph.method == "nn_descent" and graph.reached
    assert graph.recall.low >= 0.9 and graph.recall.low <= graph.recall.value <= graph.recall.high
    assert [each.round for each in graph.rounds] == list(range(len(graph.rounds)))
    graph.validate()
    assert nearwise.measure_recall(rows, graph, sample=300, seed=9).high >= 0.9
    assert "66000 x 5, sqeuclidean, nn_descent" in repr(graph)


def test_save_and_load(rows, tmp_path):
    graph = nearwise.build_knn_graph(rows, 4, metric="cosine")
    graph.save(tmp_path / "graph.nw", provenance={"base": "normal"})
    loaded = nearwise.load(tmp_path / "graph.nw")
    np.testing.assert_array_equal(loaded.ids, graph.ids)
    np.testing.assert_array_equal(loaded.distances, graph.distances)
    assert (loaded.metric, loaded.method, loaded.recall) == ("cosine", graph.method, graph.recall)
    info = nearwise.verify(tmp_path / "graph.nw")
    assert info.kind == "graph" and info.metadata["provenance.base"] == "normal"
    damage(tmp_path / "graph.nw")
    refuses("corrupt", "", nearwise.load, tmp_path / "graph.nw")


def test_validate_finds_a_broken_row(rows):
    graph = nearwise.build_knn_graph(rows, 4)
    graph.ids[17, 2] = 17
    refuses(nearwise.Error, "row 17 must not be its own neighbour", graph.validate)


def test_measure_recall_of_wrong_neighbours(rows):
    exact = nearwise.exact_knn_graph(rows, 4)
    ids = exact.ids.copy()
    ids[:, 3] = ids[:, 0]
    assert nearwise.measure_recall(rows, (ids, exact.distances), sample="all") == (0.75, 0.75, 0.75, 500)


@pytest.mark.parametrize("taken", [np.asarray, np.int32, np.uint32, np.ndarray.tolist, np.asfortranarray])
def test_measure_recall_of_ids_alone(rows, taken):
    ids = nearwise.exact_knn_graph(rows, 4).ids.copy()
    ids[:, 3] = -1 if taken is not np.uint32 else ids[:, 0]
    assert nearwise.measure_recall(rows, taken(ids), sample="all") == (0.75, 0.75, 0.75, 500)


def test_measure_recall_of_two_vectors():
    rows = np.array([[0], [1]], np.float32)  # ids of two vectors are no pair of ids and distances
    assert nearwise.measure_recall(rows, np.array([[1], [0]]), sample="all").value == 1
    assert nearwise.measure_recall(rows, [np.array([[1], [1]]), np.ones((2, 1))], sample="all").value == 0.5


@pytest.mark.parametrize(
    ("neighbors", "words"),
    [
        (np.array([[2**63]] * 500, np.uint64), "neighbors: expected at most 9223372036854775807"),
        (np.array([[500]] * 500), "ids from 0 to 499 expected, got 500"),
        (np.zeros((499, 2), int), "500"),
        (np.zeros((500, 2)), "neighbors: expected a pair"),
        ((np.zeros((500, 2), int), None), "neighbors: distances must be floats"),
    ],
)
def test_neighbors_that_measure_recall_refuses(rows, neighbors, words):
    refuses((nearwise.Error, TypeError), words, nearwise.measure_recall, rows, neighbors)


def test_short_rows_end_in_minus_one():
    graph = nearwise.build_knn_graph(np.eye(3, dtype=np.float32), 5)
    assert (graph.ids[:, 2:] == -1).all() and np.isinf(graph.distances[:, 2:]).all()
    graph.validate()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"degree": 0}, "degree: expected at least 1, got 0"),
        ({"target_recall": 0.0}, "target_recall: expected above 0 and at most 1, got 0"),
        ({"target_recall": 1.5}, "target_recall: expected above 0 and at most 1, got 1.5"),
        ({"metric": "manhattan"}, "manhattan"),
    ],
)
def test_wrong_arguments(rows, options, words):
    refuses(ValueError, words, nearwise.build_knn_graph, rows, **options)
    refuses(TypeError, "recall: expected a number", nearwise.build_knn_graph, rows, target_recall="much")
