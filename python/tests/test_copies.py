"""Copies of objects: copy.copy, copy.deepcopy, pickling, also for another process, and bytes."""

import copy
import functools
import inspect
import multiprocessing
import pickle

import nearwise
import numpy as np
import pytest
from checks import refuses
from samples import TYPES, positive_rows, random_rows
from tensor import FLOAT, Tensor, bfloat16_tensor

ROWS = np.random.default_rng(5).standard_normal((400, 12), dtype=np.float32)
CONTEXT = nearwise.Context(threads=1, memory_limit="256MiB")


def shifted():
    """An optimized quantizer of fewer, centred elements, which no file holds."""
    rotation = nearwise.Rotation.pca(ROWS + 3, 8, context=CONTEXT)
    quantizer = nearwise.ProductQuantizer.train(rotation.apply(ROWS), parts=2, bits=4, iterations=2)
    return nearwise.OptimizedProductQuantizer(rotation, quantizer, context=CONTEXT)


# Objects with a context, by how they are made and what they answer.
OBJECTS = {
    "Exact": (
        lambda: nearwise.Exact(ROWS, metric="cosine", context=CONTEXT),
        lambda exact: exact.search(ROWS[:9], 5) + exact.range_search(ROWS[:9], 0.5),
    ),
    "IvfFlat": (
        lambda: nearwise.IvfFlat.build(ROWS, lists=8, context=CONTEXT),
        lambda index: (*index.search(ROWS[:9], 5), index.ids()),
    ),
    "IvfPq": (
        lambda: nearwise.IvfPq.build(ROWS, lists=8, context=CONTEXT),
        lambda index: (*index.search(ROWS[:9], 5), index.ids()),
    ),
    "IvfLsq": (
        lambda: nearwise.IvfLsq.build(ROWS, lists=8, code_bytes=2, rounds=1, context=CONTEXT),
        lambda index: (*index.search(ROWS[:9], 5), index.ids()),
    ),
    "GraphIndex": (
        lambda: nearwise.GraphIndex.build(ROWS, degree=16, context=CONTEXT),
        lambda index: (*index.search(ROWS[:9], 5), index.ids()),
    ),
    "KnnGraph": (
        lambda: nearwise.build_knn_graph(ROWS, 4, metric="euclidean", context=CONTEXT),
        lambda graph: (*graph, *graph.mutual_neighbors(), *graph.recall, graph.reached),
    ),
    "ProductQuantizer": (
        lambda: nearwise.ProductQuantizer.train(ROWS, parts=5, bits=4, iterations=2, context=CONTEXT),
        lambda quantizer: (quantizer.encode(ROWS), quantizer.tables(ROWS[:3])),
    ),
    "OptimizedProductQuantizer": (
        lambda: nearwise.OptimizedProductQuantizer.train(
            ROWS, parts=3, bits=4, iterations=2, rounds=2, context=CONTEXT
        ),
        lambda quantizer: (quantizer.encode(ROWS), quantizer.tables(ROWS[:3])),
    ),
    "shifted OptimizedProductQuantizer": (
        shifted,
        lambda quantizer: (quantizer.encode(ROWS), quantizer.decode(quantizer.encode(ROWS))),
    ),
    "AdditiveQuantizer": (
        lambda: nearwise.AdditiveQuantizer.train(ROWS, codebooks=2, rounds=1, context=CONTEXT),
        lambda quantizer: (quantizer.encode(ROWS), quantizer.decode(quantizer.encode(ROWS))),
    ),
    "Rotation": (
        lambda: nearwise.Rotation.pca(ROWS + 3, 5, context=CONTEXT),
        lambda rotation: (rotation.apply(ROWS), rotation.reverse(ROWS[:, :5])),
    ),
}
SAVED = {name for name in OBJECTS if hasattr(getattr(nearwise, name, None), "save")}


@functools.cache
def made(name):
    return OBJECTS[name][0]()


def assert_same_answers(name, left, right):
    for one, other in zip(answers(name, left), answers(name, right), strict=True):
        np.testing.assert_array_equal(one, other)


def by_bytes(index):
    return nearwise.from_bytes(index.to_bytes(), type(index))


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


COPIES = [copy.copy, copy.deepcopy, by_pickle]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("name", OBJECTS)
def test_a_copy_answers_alike_and_remembers_the_context(name, copied):
    original = made(name)
    other = copied(original)
    assert other is not original and type(other) is type(original) and repr(other) == repr(original)
    assert other._context == original._context and other._context.threads == 1
    assert_same_answers(name, original, other)
    assert_same_answers(name, original, copied(other))


def answers(name, value):
    return OBJECTS[name][1](value)


def test_copies_answer_alike_in_another_process():
    """Spawned, so that nothing is inherited."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.starmap(answers, [(name, made(name)) for name in OBJECTS])
        for name, found in zip(OBJECTS, there, strict=True):
            for one, other in zip(found, answers(name, made(name)), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", sorted(SAVED))
def test_bytes_are_those_of_the_file(name, tmp_path):
    original = made(name)
    original.save(tmp_path / "saved.nw")
    data = original.to_bytes()
    assert data == (tmp_path / "saved.nw").read_bytes()
    other = nearwise.from_bytes(data, type(original), context=CONTEXT)
    assert_same_answers(name, original, other)
    assert other.to_bytes() == data


def test_everything_that_is_saved_has_bytes():
    classes = [value for value in vars(nearwise).values() if inspect.isclass(value)]
    assert {value.__name__ for value in classes if hasattr(value, "save")} == SAVED | {"Ivf", "StringIds"}
    assert all(hasattr(value, "to_bytes") for value in classes if hasattr(value, "save"))


def test_a_quantizer_that_no_file_holds():
    refuses(ValueError, "square rotation", made("shifted OptimizedProductQuantizer").to_bytes)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, by_bytes, by_pickle])
@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq])
def test_a_copy_is_an_index_of_its_own(kind, copied):
    rows = random_rows(5, 800, 12, np.float32)
    index = kind.build(rows, lists=8, seed=2)
    index.provenance = index.provenance | {"note": "mine"}
    other = copied(index)
    assert type(other) is kind and other.calibration == index.calibration and other.provenance == index.provenance
    assert other.to_bytes() == index.to_bytes()
    before = index.search(rows[:9], 5)
    other.remove(before.ids[:, 0])
    other.add(rows[:1], [10**9])
    assert len(index) == 800 and 10**9 not in index and 10**9 in other
    np.testing.assert_array_equal(index.search(rows[:9], 5).ids, before.ids)


def test_bytes_of_something_else():
    data = made("IvfPq").to_bytes()
    refuses(TypeError, "expected a KnnGraph, the file holds an IvfPq", nearwise.from_bytes, data, nearwise.KnnGraph)
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(nearwise.Error, match="bytes.nw"):
        nearwise.from_bytes(damaged)
    with pytest.raises(nearwise.Error):
        nearwise.from_bytes(b"")
    refuses(TypeError, "bytes-like", nearwise.from_bytes, "text")


def test_graphs_keep_their_report():
    rows = np.random.default_rng(1).standard_normal((3000, 8), dtype=np.float32)
    graph = nearwise.merge_knn_graphs(
        rows, *(nearwise.build_knn_graph(half, 5) for half in (rows[:1500], rows[1500:])), target_recall=0.8
    )
    for copied in COPIES:
        other = copied(graph)
        assert (other.method, other.recall, other.reached) == (graph.method, graph.recall, graph.reached)
        assert other.rounds == graph.rounds and other.metric == graph.metric
        assert not np.shares_memory(other.ids, graph.ids)


@pytest.mark.parametrize("dtype", [*TYPES, np.float64])
def test_prepared_bases_of_every_type(dtype):
    """With gaps between the rows, or converted."""
    base = positive_rows(3, 80, 6, dtype)[::2]
    prepared = nearwise.Exact(base, metric="inner_product", memory_limit="1MiB")
    for copied in COPIES:
        other = copied(prepared)
        assert other._context == prepared._context and other.shape == (40, 6)
        np.testing.assert_array_equal(other.search(base[:7], 3).distances, prepared.search(base[:7], 3).distances)


def test_prepared_tensors():
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    for tensor in (Tensor(values, FLOAT), bfloat16_tensor(values)):
        other = by_pickle(nearwise.Exact(tensor))
        assert other.search(values, 1).ids.ravel().tolist() == [0, 1, 2, 3]


def test_copies_of_a_prepared_base_and_its_vectors():
    base = ROWS.copy()
    prepared = nearwise.Exact(base)
    expected = prepared.search(ROWS, 1).distances
    assert copy.copy(prepared)._prepared is prepared._prepared
    deep = copy.deepcopy(prepared)
    base[:] = 0  # the copy has vectors of its own
    np.testing.assert_array_equal(deep.search(ROWS, 1).distances, expected)
    moved = deep.to("cpu", isa=nearwise.info()["instruction_sets"][0])
    again = by_pickle(moved)
    assert again._context == moved._context
    np.testing.assert_array_equal(again.search(ROWS, 1).distances, expected)


@functools.cache
def results():
    clusters = nearwise.train_kmeans(ROWS, 4, iterations=3)
    index, graph = made("IvfPq"), made("KnnGraph")
    return {
        "BenchReport": nearwise.BenchReport({"methods": [], "recommendations": []}),
        "Calibration": index.calibration,
        "ClusterSums": nearwise.sum_clusters(ROWS, clusters.centroids),
        "Context": CONTEXT,
        "Deduplication": nearwise.dedup(ROWS, radius=9),
        "GraphCalibration": made("GraphIndex").calibration,
        "GraphRound": graph.rounds[0] if graph.rounds else nearwise.GraphRound(0, 3, graph.recall),
        "IndexChoice": nearwise.choose_index(ROWS),
        "IndexEstimate": nearwise.choose_index(ROWS).estimates[0],
        "KMeans": clusters,
        "Neighbors": nearwise.knn(ROWS[:3], ROWS, 4),
        "RangeNeighbors": nearwise.range_search(ROWS[:3], ROWS, 9),
        "RecallAtK": index.calibration.other_k[0],
        "RecallEstimate": graph.recall,
        "RowGroups": graph.connected_components(),
        "Selection": nearwise.select_k(ROWS, 3),
        "SmoothestPath": graph.smoothest_path(0, 0),
    }


def assert_equal(left, right):
    assert type(left) is type(right)
    if isinstance(left, (tuple, list)):
        for one, other in zip(left, right, strict=True):
            assert_equal(one, other)
    else:
        np.testing.assert_equal(left, right)


@pytest.mark.parametrize("copied", COPIES)
def test_results_are_copied(copied, tmp_path):
    nearwise.save(tmp_path / "found.nw", results()["Neighbors"], metric="sqeuclidean", provenance={"a": "b"})
    saved = nearwise.load(tmp_path / "found.nw")
    info = nearwise.inspect(tmp_path / "found.nw")
    for value in (*results().values(), saved, info, info.sections[0]):
        assert_equal(copied(value), value)


def test_results_that_are_copied_are_all():
    """Those made of files and plans, filters, names and errors are copied in other tests."""
    elsewhere = {"ContainerInfo", "Filter", "JoinReport", "Plan", "PlannedTask", "RecallWarning", "SavedNeighbors", "SearchPlan", "Searchable", "SectionInfo", "StringIds"}
    classes = {name for name in nearwise.__all__ if inspect.isclass(getattr(nearwise, name)) and "Error" not in name}
    assert classes == {*OBJECTS, *results(), *elsewhere, "Ivf"} - {"shifted OptimizedProductQuantizer"}


def test_plans_are_copied(tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    plan = nearwise.plan_graph(
        tmp_path / "rows.fbin", tmp_path / "work", tmp_path / "graph.nw", 4, memory_limit="64MiB"
    )
    for copied in COPIES:
        assert_equal(copied(plan.tasks[0]), plan.tasks[0])
        for one, other in zip(copied(plan).tasks, plan.tasks, strict=True):
            assert one._replace(seconds=0) == other._replace(seconds=0)  # which are measured
