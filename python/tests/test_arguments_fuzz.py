"""Every public callable with arguments of any type, shape and value: a result, or an error with a message.

Each case is a call that works. Examples replace some of its arguments, so that wrong ones meet right ones.
"""

import copy
import inspect
import pathlib
import signal

import nearwise
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LIMIT = "48MiB"  # of memory, in all calls: huge results are refused and not tried
ROWS = np.random.default_rng(3).standard_normal((300, 8), dtype=np.float32)
QUERIES = ROWS[:7]


class Stop(Exception):
    """Raised by a progress callback."""


def stop(done, total):
    raise Stop


def made(kind, **options):
    index = kind.train(ROWS, lists=4, iterations=1, memory_limit=LIMIT, **options)
    index.add(ROWS)
    return index


PQ = nearwise.ProductQuantizer.train(ROWS, parts=2, bits=4, iterations=1, memory_limit=LIMIT)
OPQ = nearwise.OptimizedProductQuantizer.train(ROWS, parts=2, bits=4, iterations=1, rounds=1, memory_limit=LIMIT)
LSQ = nearwise.AdditiveQuantizer.train(ROWS, codebooks=1, rounds=1, iterations=1, memory_limit=LIMIT)
PCA = nearwise.Rotation.pca(ROWS, 4, memory_limit=LIMIT)
GRAPH = nearwise.build_knn_graph(ROWS, 3, memory_limit=LIMIT)
HALF = nearwise.build_knn_graph(ROWS[:150], 3, memory_limit=LIMIT)
REST = nearwise.build_knn_graph(ROWS[150:], 3, memory_limit=LIMIT)
FOUND = nearwise.knn(QUERIES, ROWS, 3)
SUMS = nearwise.sum_clusters(ROWS, ROWS[:4])
EXACT = nearwise.Exact(ROWS, memory_limit=LIMIT)
RANGE = nearwise.range_search(QUERIES, ROWS, 1.0)
NAMES = nearwise.StringIds(["a", "b"])
REPORT = nearwise.bench(ROWS, kinds="exact", against=[], repeat=1)
INDEXES = {
    "IvfFlat": made(nearwise.IvfFlat),
    "IvfPq": made(nearwise.IvfPq, code_bytes=2, bits=4),
    "IvfLsq": made(nearwise.IvfLsq, code_bytes=1, rounds=1, train_iterations=1, encode_iterations=1),
}
GRAPH_INDEX = nearwise.GraphIndex.build(ROWS, degree=16, memory_limit=LIMIT)
LSQ_OPTIONS = {"code_bytes": 1, "rounds": 1, "train_iterations": 1, "encode_iterations": 1}


def quantizer_cases(name, quantizer):
    cases = {
        f"{name}.encode": (quantizer.encode, {"rows": ROWS}),
        f"{name}.decode": (quantizer.decode, {"codes": quantizer.encode(ROWS)}),
        f"{name}.error": (quantizer.error, {"rows": ROWS}),
        f"{name}.save": (quantizer.save, {"path": "quantizer.nw", "provenance": {"a": "b"}}),
        f"{name}.to_bytes": (quantizer.to_bytes, {}),
    }
    if name != "AdditiveQuantizer":
        cases[f"{name}.tables"] = (quantizer.tables, {"queries": QUERIES, "metric": "sqeuclidean"})
    return cases


def index_cases(name):
    index, kind = INDEXES[name], getattr(nearwise, name)
    options = {"IvfFlat": {}, "IvfPq": {"code_bytes": 2, "bits": 4}, "IvfLsq": LSQ_OPTIONS}[name]
    training = {"rows": ROWS, "lists": 4, "iterations": 1, "metric": "sqeuclidean"} | options
    return {
        f"{name}.train": (kind.train, training),
        f"{name}.build": (kind.build, training | {"target_recall": 0.5}),
        # Into a copy: an index that grows by every example would end the test slowly.
        f"{name}.add": (lambda **given: index.empty_copy().add(**given), {"rows": QUERIES, "ids": np.arange(7), "on_duplicate": "keep"}),
        f"{name}.update": (index.update, {"ids": [3, 4], "rows": ROWS[3:5]}),
        f"{name}.compact": (index.compact, {}),
        f"{name}.to_bytes": (index.to_bytes, {}),
        f"{name}.ids": (index.ids, {}),
        f"{name}.get": (index.get, {"ids": [1, 2]}),
        f"{name}.rerank": (index.rerank, {"queries": QUERIES, "candidates": np.arange(7).reshape(-1, 1), "k": 1}),
        f"{name}.remove": (lambda **given: index.empty_copy().remove(**given), {"ids": [1, 2]}),
        f"{name}.merge": (lambda **given: index.empty_copy().merge(**given), {"other": index}),
        f"{name}.empty_copy": (index.empty_copy, {}),
        f"{name}.search": (index.search, {"queries": QUERIES, "k": 3, "probes": 2, "codes_only": False, "rerank": ROWS, "candidates": 9, "filter": [1, 2], "exclude": [5], "scanned": 20, "explain": None}),
        f"{name}.range_search": (index.range_search, {"queries": QUERIES, "radius": 1.0, "probes": 2, "filter": None, "exclude": [1]}),
        f"{name}.calibrate": (index.calibrate, {"rows": ROWS, "target_recall": 0.5, "queries": 20, "rerank": True, "largest_k": 20}),
        f"{name}.save": (index.save, {"path": "index.nw"}),
        f"{name}.list_size": (index.list_size, {"list": 1}),
        f"{name}.to": (index.empty_copy().to, {"device": "cpu", "isa": None}),
    }


def plan_of(**changes):
    nearwise.write_vectors("vectors.fbin", ROWS)
    return nearwise.plan_graph(**{"vectors": "vectors.fbin", "work": "work", "output": "graph.nw", "degree": 3,
                                  "memory_limit": LIMIT} | changes)  # fmt: skip


def on_plan(method):
    return lambda **given: getattr(plan_of(), method)(**given)


def on_file(function):
    """Reads a file that is there."""

    def call(**given):
        GRAPH.save("here.nw")
        nearwise.write_vectors("here.fbin", ROWS)
        nearwise.write_neighbors("here.ivecs", FOUND)
        return function(**given)

    return call


CASES = {
    "knn": (nearwise.knn, {"queries": QUERIES, "base": ROWS, "k": 3, "metric": "cosine", "pad": False, "filter": None, "exclude": [1]}),
    "exact_knn_graph": (nearwise.exact_knn_graph, {"base": ROWS, "k": 3, "metric": "euclidean", "pad": True}),
    "range_search": (nearwise.range_search, {"queries": QUERIES, "base": ROWS, "radius": 1.0, "metric": "sqeuclidean", "filter": [1, 2], "exclude": None}),
    "threshold_join": (nearwise.threshold_join, {"rows": ROWS, "radius": 1.0, "similarity": None, "metric": "sqeuclidean", "work": None, "output": None}),
    "dedup": (nearwise.dedup, {"rows": ROWS, "radius": None, "similarity": 0.9, "metric": "cosine", "keep": "first", "grouping": "star", "work": None, "output": None}),
    "Filter": (nearwise.Filter, {"allowed": [1, 2], "exclude": [[3], [4]]}),
    "Filter.allows": (nearwise.Filter([1, 2]).allows, {"id": 1, "query": 0}),
    "select_k": (nearwise.select_k, {"values": ROWS, "k": 2, "largest": True, "ids": None, "pad": False}),
    "merge_neighbors": (nearwise.merge_neighbors, {"parts": [FOUND, FOUND], "k": 3, "metric": "sqeuclidean"}),
    "Exact": (nearwise.Exact, {"base": ROWS, "metric": "inner_product"}),
    "Exact.search": (EXACT.search, {"queries": QUERIES, "k": 3, "pad": False, "filter": [1, 2], "exclude": None}),
    "Exact.range_search": (EXACT.range_search, {"queries": QUERIES, "radius": 1.0, "filter": None, "exclude": [1]}),
    "Exact.to": (EXACT.to, {"device": "cpu", "isa": None}),
    "Context": (nearwise.Context, {"threads": 2, "memory_limit": LIMIT, "device": "cpu", "seed": 1, "isa": None}),
    "train_kmeans": (nearwise.train_kmeans, {
        "rows": ROWS, "clusters": 4, "metric": "sqeuclidean", "iterations": 2, "tolerance": 0.1, "seeding": "random",
        "initial": None, "min_cluster_size": 1, "balance": 2.0, "batch_size": None}),
    "train_hierarchical_kmeans": (nearwise.train_hierarchical_kmeans, {
        "rows": ROWS, "clusters": 4, "metric": "cosine", "iterations": 2, "tolerance": 0.1, "seeding": "plus_plus"}),
    "assign": (nearwise.assign, {"rows": ROWS, "centroids": ROWS[:4], "metric": "sqeuclidean", "balance": None}),
    "seed_kmeans": (nearwise.seed_kmeans, {"rows": ROWS, "clusters": 4, "metric": "sqeuclidean", "initial": None}),
    "sum_clusters": (nearwise.sum_clusters, {"rows": ROWS, "centroids": ROWS[:4], "first_row": 3}),
    "move_centroids": (nearwise.move_centroids, {"sums": SUMS, "centroids": ROWS[:4], "metric": "sqeuclidean"}),
    "build_knn_graph": (nearwise.build_knn_graph, {"rows": ROWS, "degree": 3, "metric": "cosine", "target_recall": 0.9}),
    "merge_knn_graphs": (nearwise.merge_knn_graphs, {"rows": ROWS, "left": HALF, "right": REST, "target_recall": 0.9}),
    "measure_recall": (nearwise.measure_recall, {"rows": ROWS, "neighbors": GRAPH, "sample": 20}),
    "KnnGraph.validate": (GRAPH.validate, {}),
    "KnnGraph.with_rows": (HALF.with_rows, {"rows": ROWS, "target_recall": 0.9}),
    "KnnGraph.without_rows": (GRAPH.without_rows, {"rows": ROWS, "ids": [1, 2], "target_recall": 0.9}),
    "KnnGraph.to_bytes": (GRAPH.to_bytes, {}),
    "KnnGraph.save": (GRAPH.save, {"path": "graph.nw", "provenance": {"a": "b"}}),
    "KnnGraph.smoothest_path": (GRAPH.smoothest_path, {"start": 1, "end": 2}),
    "KnnGraph.connected_components": (GRAPH.connected_components, {}),
    "KnnGraph.near_duplicates": (GRAPH.near_duplicates, {"distance": 1.0}),
    "KnnGraph.mutual_neighbors": (GRAPH.mutual_neighbors, {}),
    "KnnGraph.with_self": (GRAPH.with_self, {}),
    "KnnGraph.to_csr": (GRAPH.to_csr, {"mutual": False}),
    "KnnGraph.save_npz": (GRAPH.save_npz, {"path": "graph.npz", "mutual": False}),
    "RowGroups.members": (GRAPH.connected_components().members, {}),
    "RangeNeighbors.of": (RANGE.of, {"query": 1}),
    "RangeNeighbors.pairs": (RANGE.pairs, {}),
    "ProductQuantizer.train": (nearwise.ProductQuantizer.train, {"rows": ROWS, "parts": 2, "bits": 4, "iterations": 1}),
    "ProductQuantizer.from_codebooks": (nearwise.ProductQuantizer.from_codebooks, {"codebooks": PQ.codebooks}),
    "OptimizedProductQuantizer": (nearwise.OptimizedProductQuantizer, {"rotation": OPQ.rotation, "quantizer": PQ}),
    "OptimizedProductQuantizer.train": (nearwise.OptimizedProductQuantizer.train, {
        "rows": ROWS, "parts": 2, "bits": 4, "iterations": 1, "rounds": 1, "training_rows": 100}),
    "AdditiveQuantizer.train": (nearwise.AdditiveQuantizer.train, {
        "rows": ROWS, "codebooks": 1, "rounds": 1, "iterations": 1, "training_rows": 280}),
    "AdditiveQuantizer.from_codebooks": (nearwise.AdditiveQuantizer.from_codebooks, {
        "codebooks": LSQ.codebooks, "norms": LSQ.norms}),
    "AdditiveQuantizer.search": (LSQ.search, {"queries": QUERIES, "codes": LSQ.encode(ROWS), "k": 2}),
    "Rotation.pca": (nearwise.Rotation.pca, {"rows": ROWS, "dims": 3, "training_rows": None}),
    "Rotation.from_matrix": (nearwise.Rotation.from_matrix, {"matrix": PCA.matrix, "mean": PCA.mean}),
    "Rotation.apply": (PCA.apply, {"rows": ROWS}),
    "Rotation.reverse": (PCA.reverse, {"rows": ROWS[:, :4]}),
    "save": (nearwise.save, {"path": "found.nw", "neighbors": FOUND, "metric": "cosine", "provenance": None}),
    "from_bytes": (nearwise.from_bytes, {"data": INDEXES["IvfFlat"].to_bytes(), "expected": None}),
    "load": (on_file(nearwise.load), {"path": "here.nw", "expected": None}),
    "inspect": (on_file(nearwise.inspect), {"path": "here.nw"}),
    "verify": (on_file(nearwise.verify), {"path": "here.nw"}),
    "read_vectors": (on_file(nearwise.read_vectors), {"path": "here.fbin"}),
    "write_vectors": (nearwise.write_vectors, {"path": "written.npy", "vectors": ROWS}),
    "read_neighbors": (on_file(nearwise.read_neighbors), {"path": "here.ivecs"}),
    "write_neighbors": (nearwise.write_neighbors, {"path": "written.ibin", "neighbors": FOUND}),
    "plan_graph": (plan_of, {"degree": 3, "metric": "sqeuclidean", "target_recall": 0.9, "method": "pairs"}),
    "plan_threshold_join": (on_file(nearwise.plan_threshold_join), {
        "vectors": "here.fbin", "work": "work", "output": "pairs.nw", "radius": 1.0, "similarity": None,
        "metric": "sqeuclidean", "method": "auto", "provenance": None, "memory_limit": LIMIT}),
    "plan_dedup": (on_file(nearwise.plan_dedup), {
        "vectors": "here.fbin", "work": "work", "output": "dedup.nw", "radius": None, "similarity": 0.9,
        "metric": "cosine", "keep": "first", "grouping": "star", "method": "partitions", "provenance": None,
        "memory_limit": LIMIT}),
    "plan_index": (on_file(nearwise.plan_index), {
        "vectors": "here.fbin", "work": "work", "output": "index.nw", "lists": 4, "codec": "flat", "iterations": 1,
        "memory_limit": LIMIT}),
    "plan_graph_index": (on_file(nearwise.plan_graph_index), {
        "vectors": "here.fbin", "work": "work", "output": "index.nw", "degree": 16, "metric": "cosine",
        "graph_recall": 0.9, "target_recall": 0.9, "memory_limit": LIMIT}),
    "Plan.with_threads": (on_plan("with_threads"), {"threads": 2}),
    "Plan.check_disk": (on_plan("check_disk"), {}),
    "Plan.is_done": (on_plan("is_done"), {"task": "input"}),
    "Plan.run_task": (on_plan("run_task"), {"task": "input"}),
    "Plan.run": (on_plan("run"), {}),
    "Plan.remove_work": (on_plan("remove_work"), {}),
    "info": (nearwise.info, {}),
    "bench": (nearwise.bench, {
        "rows": ROWS, "queries": QUERIES, "k": 3, "metric": "cosine", "target_recalls": [0.9], "kinds": ["exact"], "against": [],
        "limit": 200, "query_count": 5, "repeat": 1, "title": "rows", "output": None}),
    "BenchReport.html": (REPORT.html, {}),
    "BenchReport.json": (REPORT.json, {}),
    "BenchReport.write": (REPORT.write, {"path": "report.html"}),
    "build": (nearwise.build, {
        "rows": ROWS, "target_recall": 0.5, "metric": "cosine", "queries": "batch", "expected_queries": 10}),
    "IndexChoice.explain": (nearwise.choose_index(ROWS).explain, {}),
    "choose_index": (nearwise.choose_index, {
        "rows": ROWS, "target_recall": 0.5, "metric": "cosine", "queries": "single", "expected_queries": 10}),
    "GraphIndex.build": (nearwise.GraphIndex.build, {
        "rows": ROWS, "target_recall": 0.5, "metric": "cosine", "ids": np.arange(300), "degree": 16, "graph_recall": 0.9,
        "calibration_queries": QUERIES}),
    "GraphIndex.from_knn_graph": (nearwise.GraphIndex.from_knn_graph, {
        "graph": GRAPH, "rows": ROWS, "target_recall": 0.5, "ids": None, "degree": 16, "calibration_queries": None}),
    "GraphIndex.search": (GRAPH_INDEX.search, {
        "queries": QUERIES, "k": 3, "beam": 20, "filter": [1, 2], "exclude": [5]}),
    "GraphIndex.range_search": (GRAPH_INDEX.range_search, {
        "queries": QUERIES, "radius": 1.0, "beam": 20, "filter": None, "exclude": [1]}),
    "GraphIndex.calibrate": (GRAPH_INDEX.calibrate, {"calibration_queries": None, "target_recall": 0.5, "sample": 20}),
    # Into copies: an index that grows by every example would end the test slowly.
    "GraphIndex.add": (lambda **given: copy.copy(GRAPH_INDEX).add(**given), {"rows": QUERIES, "ids": np.arange(7), "on_duplicate": "keep"}),
    "GraphIndex.update": (lambda **given: copy.copy(GRAPH_INDEX).update(**given), {"ids": [3, 4], "rows": ROWS[3:5]}),
    "GraphIndex.remove": (lambda **given: copy.copy(GRAPH_INDEX).remove(**given), {"ids": [1, 2]}),
    "GraphIndex.compact": (GRAPH_INDEX.compact, {}),
    "GraphIndex.ids": (GRAPH_INDEX.ids, {}),
    "GraphIndex.get": (GRAPH_INDEX.get, {"ids": [1, 2]}),
    "GraphIndex.save": (GRAPH_INDEX.save, {"path": "index.nw"}),
    "GraphIndex.to_bytes": (GRAPH_INDEX.to_bytes, {}),
    "GraphIndex.export_svs": (GRAPH_INDEX.export_svs, {"folder": "index_svs"}),
    "GraphIndex.export_diskann": (GRAPH_INDEX.export_diskann, {"folder": "index_diskann"}),
    "GraphIndex.export_hnswlib": (GRAPH_INDEX.export_hnswlib, {"path": "index.hnsw"}),
    **quantizer_cases("ProductQuantizer", PQ),
    **quantizer_cases("OptimizedProductQuantizer", OPQ),
    **quantizer_cases("AdditiveQuantizer", LSQ),
    "StringIds": (nearwise.StringIds, {"names": ["a", "b"]}),
    "StringIds.add": (nearwise.StringIds(["a"]).add, {"names": ["b", "a"]}),
    "StringIds.ids": (NAMES.ids, {"names": ["b", "a"]}),
    "StringIds.names": (NAMES.names, {"ids": [[0, -1], [1, 1]]}),
    "StringIds.save": (NAMES.save, {"path": "names.nw"}),
    "StringIds.to_bytes": (NAMES.to_bytes, {}),
    **index_cases("IvfFlat"),
    **index_cases("IvfPq"),
    **index_cases("IvfLsq"),
}  # fmt: skip

# Objects that callables return, without operations; and what a finished plan returns.
WITHOUT_CASES = {"BenchReport", "Deduplication", "Calibration", "ClusterSums", "ContainerInfo", "Error", "AccessError", "ArgumentError",
                 "FileError", "NotFoundError", "OutOfMemoryError", "GraphCalibration", "GraphIndex", "GraphRound", "IndexChoice", "IndexEstimate", "Ivf", "KMeans", "KnnGraph",
                 "JoinReport", "Neighbors", "Plan", "Plan.join_report", "PlannedTask", "RangeNeighbors", "RecallAtK", "RecallEstimate", "RecallWarning",
                 "RowGroups", "SavedNeighbors", "SearchPlan",
                 "SectionInfo", "Selection", "SmoothestPath", "Plan.load", "Context.merged", "Context.remembered",
                 "AdditiveQuantizer", "ProductQuantizer", "Rotation", "IvfFlat", "IvfPq", "IvfLsq",
}  # fmt: skip

INTEGERS = [-(2**70), -(2**63), -1, 0, 1, 2, 7, 299, 300, 301, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, 2**70]
FLOATS = [float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 0.5, 1.0, 1e-320, 1e300]
TEXTS = ["", "cosine", "inner_product", "nothing", "\0", "é", "\udcff", "cpu", "cuda:9", "9", "x" * 400]
OTHERS = [None, True, False, b"bytes", (), [], {}, {"a": 1}, {1: "a"}, object(), print, nearwise.Error, 1j, np.float32(3),
          np.int64(-1), pathlib.Path("nowhere")]  # fmt: skip
OBJECTS = [FOUND, GRAPH, HALF, PQ, OPQ, LSQ, PCA, SUMS, EXACT, RANGE, GRAPH_INDEX, *INDEXES.values(),
           INDEXES["IvfFlat"].empty_copy()]  # fmt: skip
ARRAYS = [
    ROWS, QUERIES, ROWS[0], ROWS[:0], ROWS[:, :0], ROWS[:, :3], ROWS[::-1], ROWS[:, ::-1], ROWS.T, ROWS[None],
    np.asfortranarray(ROWS), ROWS.astype(np.float64), ROWS.astype(np.float16), ROWS.astype(np.int8),
    ROWS.astype(np.uint8), ROWS.astype(np.int64), ROWS.astype(bool), ROWS.astype(complex), ROWS.astype(object),
    ROWS.astype(str), ROWS.astype(">f4"), np.broadcast_to(ROWS[:1], (300, 8)), np.broadcast_to(np.float32(1), (2**40, 8)),
    np.full((300, 8), np.nan, np.float32), np.full((300, 8), 3e38, np.float32), np.zeros((300, 8), np.float32),
    np.float32(1), np.arange(7), np.arange(7) - 3, np.arange(7) + 2**62, np.zeros(7, int), np.zeros((7, 2), np.uint8),
    np.zeros((3, 2**20), np.uint8), ROWS.tolist(), QUERIES.tolist(), [[1.0], [2.0, 3.0]], [1, 2, 3], ["a"],
    np.ma.masked_array(ROWS, ROWS > 0), np.frombuffer(bytes(9601), np.uint8)[1:].view(np.float32).reshape(300, 8),
]  # fmt: skip
PATHS = ["", ".", "here.nw", "here.fbin", "here.ivecs", "new.nw", "new.npy", "new.fvecs", "new.bin", "new.npz", "new",
         "nowhere/new.nw", "here.nw/new.nw", "\0.nw", "\udcff.nw", "x" * 300, b"new.nw", pathlib.Path("new.nw"), 5, None,
         "/dev/null", "/dev/zero"]  # fmt: skip
EFFORTS = [-(2**70), -1, 0, 1, 2, 2**64, 0.5, "2", None, True]
BY_NAME = {
    "memory_limit": [-1, 0, 1, 1000, 2**70, "", "12", "1KiB", "48MiB", "nothing", 0.5, True, b"1"],
    "threads": [-1, 0, 1, 3, 4096, 4097, 2**40, 2**70, "2", 0.5],
    "context": [None, 5, "cpu", nearwise.Context(memory_limit=LIMIT), {"threads": 1}, nearwise.Context],
    "progress": [None, False, "bar", 5, stop, print, lambda: None, lambda done, total: None],
    "device": ["cpu", "cuda", "cuda:0", "cuda:99", "cuda:-1", "gpu", "", 0, None],
    "isa": [None, "", "avx9", "scalar", 5, *nearwise.info()["instruction_sets"]],
}
SETTINGS = ("context", "seed", "device", "threads", "isa", "progress")


def values_for(name):
    if name in BY_NAME:
        return st.sampled_from(BY_NAME[name])
    if name in ("path", "work", "output"):
        return st.sampled_from(PATHS)
    if name in ("iterations", "rounds", "train_iterations", "encode_iterations", "passes"):
        return st.sampled_from(EFFORTS)  # work in proportion to a number is no hang
    return st.one_of(*(st.sampled_from(pool) for pool in (INTEGERS, FLOATS, TEXTS, OTHERS, OBJECTS, ARRAYS)))


def parameters_of(call, valid):
    """What may be replaced: the arguments of the case, and settings that the callable takes."""
    return sorted({*valid, *(setting for setting in SETTINGS if setting in inspect.signature(call).parameters)})


def limited(call, given):
    """With a memory limit where one can be set."""
    return {"memory_limit": LIMIT} | given if "memory_limit" in inspect.signature(call).parameters else given


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arguments")


@pytest.fixture
def here(folder, monkeypatch):
    """Files that examples write lie in a folder of their own; a call that takes 20 s ends with an error."""
    monkeypatch.chdir(folder)

    def hangs(number, frame):
        raise AssertionError("not over after 20 s")

    before = signal.signal(signal.SIGALRM, hangs)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def public_callables():
    for name in sorted({*nearwise.__all__} - {"Searchable"}):  # a protocol
        value = getattr(nearwise, name)
        if callable(value):
            yield name
        if isinstance(value, type):
            for method in dir(value):
                attribute = inspect.getattr_static(value, method)
                if not method.startswith("_") and isinstance(attribute, (classmethod, staticmethod)) or (
                    inspect.isfunction(attribute) and not method.startswith("_")
                ):
                    yield f"{name}.{method}"


def test_every_public_callable_has_a_case():
    missing = set(public_callables()) - set(CASES) - WITHOUT_CASES
    # Methods of bases are tested on the classes that have them, and those of tuples are Python's.
    missing = {name for name in missing if not name.startswith("Ivf.") and not name.endswith((".count", ".index"))}
    assert not missing


def assert_equal(left, right):
    assert type(left) is type(right)
    if isinstance(left, (tuple, list)):
        for one, other in zip(left, right, strict=True):
            assert_equal(one, other)
    elif hasattr(left, "to_bytes") and not isinstance(left, int):
        assert left.to_bytes() == right.to_bytes()
    elif isinstance(left, (int, float, np.ndarray)):
        np.testing.assert_array_equal(left, right)


def defaults_of(name):
    """What a public callable has defaults for."""
    parts = name.split(".")
    function = getattr(nearwise, parts[0])
    for part in parts[1:]:
        function = getattr(function, part)
    return {each.name for each in inspect.signature(function).parameters.values() if each.default is not each.empty}


@pytest.mark.parametrize("name", [name for name in CASES if defaults_of(name)])
def test_none_is_the_default(name, here):
    call, valid = CASES[name]
    # Defaults that take long stay out, and so does the limit that a plan must have.
    kept = ("radius", "similarity", "kinds", "against", "repeat", "rounds", "codebooks", "code_bytes", "train_iterations", *(["memory_limit"] if "plan" in name else []))
    required = {key: value for key, value in valid.items() if key not in defaults_of(name) or key in kept}
    nothing = dict.fromkeys(defaults_of(name) - {*kept})
    assert_equal(call(**required, **nothing), call(**required))


@pytest.mark.parametrize("name", CASES)
def test_arguments(name, here):
    call, valid = CASES[name]
    call(**limited(call, valid))
    names = parameters_of(call, valid)
    if not names:
        return

    @settings(max_examples=int(settings.default.max_examples) // 2, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def replaced(data):
        chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        changed = {each: data.draw(values_for(each), label=each) for each in chosen}
        signal.setitimer(signal.ITIMER_REAL, 20)
        try:
            call(**limited(call, valid | changed))
        except (nearwise.Error, TypeError) as error:  # wrong values are a nearwise.Error too
            assert str(error).strip(), f"{type(error).__name__} without a message"
        except Stop:
            assert changed.get("progress") is stop
        except IndexError:
            assert name == "RangeNeighbors.of"  # as a list's
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    replaced()
