"""Graph indexes."""

import threading
import warnings

import numpy as np
import pytest

import nearwise
from checks import refuses

RNG = np.random.default_rng(5)
ROWS = RNG.standard_normal((3000, 16)).astype(np.float32)
QUERIES = RNG.standard_normal((200, 16)).astype(np.float32)


def recall(found, exact):
    return np.mean(found.distances <= exact.distances[:, -1:])


@pytest.fixture(scope="module")
def index():
    return nearwise.GraphIndex.build(ROWS)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int8])
def test_the_target_recall_is_found(metric, dtype):
    scale = 1 if np.issubdtype(dtype, np.floating) else 30
    rows, queries = (np.clip(given * scale, 0 if dtype is np.uint8 else -120, 120).astype(dtype) for given in (ROWS, QUERIES))
    built = nearwise.GraphIndex.build(rows, target_recall=0.95, metric=metric)
    assert built.calibration.reached and built.metric == metric
    for k in (1, 10, 100):
        assert recall(built.search(queries, k), nearwise.knn(queries, rows, k, metric=metric)) >= 0.93


def test_inner_products():
    rows = ROWS * RNG.uniform(0.2, 3, (3000, 1)).astype(np.float32)
    built = nearwise.GraphIndex.build(rows, metric="inner_product")
    found, exact = built.search(QUERIES, 10), nearwise.knn(QUERIES, rows, 10, metric="inner_product")
    assert np.mean(found.distances >= exact.distances[:, -1:]) >= 0.93


def test_threads_and_instruction_sets_give_the_same_bytes():
    expected = nearwise.GraphIndex.build(ROWS[:800], threads=1).to_bytes()
    for settings in ({"threads": 3}, *({"isa": name, "threads": 1} for name in nearwise.info()["instruction_sets"])):
        assert nearwise.GraphIndex.build(ROWS[:800], **settings).to_bytes() == expected


def test_a_saved_index_is_the_same(index, tmp_path):
    index.provenance = {**index.provenance, "data": "random"}
    index.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw", nearwise.GraphIndex)
    assert loaded.calibration == index.calibration and loaded.provenance["data"] == "random"
    np.testing.assert_array_equal(loaded.search(QUERIES, 7).ids, index.search(QUERIES, 7).ids)
    assert nearwise.verify(tmp_path / "index.nw").kind == "graph_index"
    damaged = bytearray((tmp_path / "index.nw").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "index.nw").write_bytes(damaged)
    refuses("corrupt", "index.nw", nearwise.load, tmp_path / "index.nw")


def test_ids_of_the_users():
    ids = RNG.permutation(10**6)[:3000]
    index = nearwise.GraphIndex.build(ROWS, ids=ids)
    assert index.search(ROWS[17], 1).ids[0] == ids[17]
    np.testing.assert_array_equal(index.get(ids[:5]), ROWS[:5])
    assert ids[3] in index and -1 not in index and "a" not in index
    np.testing.assert_array_equal(index.ids(), np.sort(ids))
    assert set(index.search(QUERIES, 5, filter=ids[:50]).ids.ravel()) <= set(ids[:50])
    refuses(ValueError, "twice", nearwise.GraphIndex.build, ROWS, ids=np.zeros(3000, int))
    refuses(ValueError, "one id per vector", nearwise.GraphIndex.build, ROWS, ids=[1])


def test_a_graph_is_used():
    graph = nearwise.build_knn_graph(ROWS, 30, metric="cosine")
    index = nearwise.GraphIndex.from_knn_graph(graph, ROWS)
    assert index.metric == "cosine"
    assert recall(index.search(QUERIES, 10), nearwise.knn(QUERIES, ROWS, 10, metric="cosine")) >= 0.93
    refuses(ValueError, "graph", nearwise.GraphIndex.from_knn_graph, graph, ROWS[::-1].copy())
    refuses(TypeError, "graph: expected a KnnGraph", nearwise.GraphIndex.from_knn_graph, ROWS, ROWS)


def test_queries_of_another_kind_are_calibrated_with():
    shifted = (QUERIES * 0.3 + 2).astype(np.float32)
    index = nearwise.GraphIndex.build(ROWS, calibration_queries=shifted[:100])
    assert recall(index.search(shifted[100:], 10), nearwise.knn(shifted[100:], ROWS, 10)) >= 0.92


def test_a_recall_that_is_not_reached_is_said():
    rows = RNG.standard_normal((6000, 200)).astype(np.float32)
    with pytest.warns(nearwise.RecallWarning, match="target recall 1.0 is not reached"):
        index = nearwise.GraphIndex.build(rows, target_recall=1.0, degree=16, graph_recall=0.5)
    assert not index.calibration.reached
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(rows[:3], 5)  # once per index


def test_defaults_can_be_assigned(index):
    copy = nearwise.from_bytes(index.to_bytes())
    copy.beam = 30
    assert copy.beam == 30 and copy.calibration is None
    assert copy.calibrate(target_recall=0.9).beam == copy.beam
    refuses(ValueError, "beam must be at least k", copy.search, QUERIES, 10, beam=5)


def test_threads_search_at_the_same_time(index):
    expected = index.search(QUERIES, 10).ids
    wrong = []

    def search():
        for _ in range(20):
            if not np.array_equal(index.search(QUERIES, 10).ids, expected):
                wrong.append(1)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_errors_name_the_argument():
    refuses(ValueError, "degree must be a multiple of 16", nearwise.GraphIndex.build, ROWS, degree=20)
    refuses(ValueError, "row 4", nearwise.GraphIndex.build, np.where(np.arange(3000)[:, None] == 4, np.nan, ROWS).astype(np.float32))
    refuses(TypeError, "made by GraphIndex.build", nearwise.GraphIndex)
    refuses("out_of_memory", "memory", nearwise.GraphIndex.build, ROWS, memory_limit="100KiB")
