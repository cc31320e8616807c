"""nearwise.Context, the plain keywords next to it, and the answers to keywords that do not exist."""

import inspect
import os
import pathlib
import pickle
import typing

import numpy as np
import pytest
from checks import public_callables, refuses, runs_in_a_child

import nearwise
from nearwise._context import operation

ROWS = np.random.default_rng(1).standard_normal((300, 8), dtype=np.float32)
SETTINGS = ("threads", "memory_limit", "device", "seed", "isa", "progress")


CALLABLES = dict(public_callables())
# They only read or write files, describe the machine, follow edges of a graph, or do a few additions.
WITHOUT_CONTEXT = {
    *("info", "inspect", "move_centroids", "read_neighbors", "read_vectors", "save", "verify"),
    *("write_neighbors", "write_vectors"),
}


def parameters_of(name):
    return inspect.signature(CALLABLES[name]).parameters


@pytest.mark.parametrize("name", CALLABLES)
def test_signatures_are_explicit(name):
    for parameter in parameters_of(name).values():
        assert parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or name.endswith(".__init__")
        if parameter.name in (*SETTINGS, "context"):
            assert parameter.default in (None, parameter.empty)


@pytest.mark.parametrize("name", CALLABLES)
def test_annotations_admit_none_for_every_default(name):
    names = inspect.unwrap(CALLABLES[name]).__globals__
    for parameter in parameters_of(name).values():
        if parameter.default is not parameter.empty:
            annotation = parameter.annotation
            kind = eval(annotation, names) if isinstance(annotation, str) else annotation
            assert kind is typing.Any or type(None) in typing.get_args(kind), parameter


def test_none_is_the_default():
    @operation
    def search(queries, k=3, *, metric="sqeuclidean", pad=False, ids=None, context=None, threads=None):
        return queries, k, metric, pad, ids, context.threads

    assert search(1, None, metric=None, pad=None, ids=None, threads=None) == (1, 3, "sqeuclidean", False, None, None)
    assert search(None, k=None) == (None, 3, "sqeuclidean", False, None, None)
    assert search(k=None, queries=None, pad=True, threads=2) == (None, 3, "sqeuclidean", True, None, 2)
    with pytest.raises(TypeError, match="positional"):
        search(1, None, None)
    with pytest.raises(TypeError, match="multiple values"):
        search(1, None, k=3)


def test_every_public_callable_is_an_operation():
    """Their errors are ours, None is a default, and unknown keywords are answered."""
    raises_only = {name for name in CALLABLES if name.endswith(".__init__")} - {"Exact.__init__", "Filter.__init__", "OptimizedProductQuantizer.__init__", "StringIds.__init__"}
    plain = {name for name, function in CALLABLES.items() if not hasattr(function, "__wrapped__")}
    of_reports = {f"BenchReport.{name}" for name in ("html", "json", "write")}
    assert plain == raises_only | of_reports | {"Context.merged", "Context.remembered"}


def test_operations_without_a_context():
    @operation
    def write(path, mutual=False):
        return path, mutual

    assert write("a", None) == ("a", False) and write(path="a", mutual=None) == ("a", False)
    with pytest.raises(TypeError, match=r"has no argument 'mutal'; did you mean 'mutual'"):
        write("a", mutal=True)
    assert operation(lambda: 3)() == 3


@pytest.mark.parametrize("name", [name for name in CALLABLES if "." not in name and name not in WITHOUT_CONTEXT])
def test_functions_take_a_context_and_its_settings(name):
    parameters = parameters_of(name)
    assert {"context", "threads"} <= parameters.keys()
    assert all(parameters[key].kind is inspect.Parameter.KEYWORD_ONLY for key in (*SETTINGS, "context") if key in parameters)


@pytest.mark.parametrize(
    "name",
    [
        *("Exact.__init__", "Exact.search", "Exact.range_search", "Ivf.add", "Ivf.remove", "Ivf.merge", "Ivf.search"),
        *("Ivf.calibrate", "IvfFlat.build", "IvfPq.train", "IvfLsq.build", "GraphIndex.build", "GraphIndex.search", "GraphIndex.add", "GraphIndex.remove", "GraphIndex.compact", "KnnGraph.with_rows", "KnnGraph.without_rows"),
        *("ProductQuantizer.train", "ProductQuantizer.encode", "OptimizedProductQuantizer.decode", "Rotation.pca"),
        *("AdditiveQuantizer.search", "AdditiveQuantizer.error", "Rotation.apply", "Plan.run", "Plan.run_task"),
    ],
)
def test_methods_that_compute_take_a_context(name):
    assert parameters_of(name)["context"].default is None


def test_a_context_gives_what_keywords_give():
    context = nearwise.Context(threads=2, memory_limit="64MiB", seed=7)
    by_context = nearwise.build_knn_graph(ROWS, 5, context=context)
    by_keywords = nearwise.build_knn_graph(ROWS, 5, threads=2, memory_limit=64 << 20, seed=7)
    assert np.array_equal(by_context.ids, by_keywords.ids)
    one, other = (nearwise.train_kmeans(ROWS, 9, context=nearwise.Context(seed=seed)) for seed in (1, 2))
    assert not np.array_equal(one.centroids, other.centroids)
    assert np.array_equal(one.centroids, nearwise.train_kmeans(ROWS, 9, seed=1).centroids)


def test_keywords_complete_a_context():
    reports = []
    context = nearwise.Context(threads=1)
    nearwise.knn(ROWS, ROWS, 3, context=context, progress=lambda done, total: reports.append(done), threads=1)
    assert reports and context.progress is None


@pytest.mark.parametrize(
    ("setting", "given", "other"),
    [("threads", 2, 3), ("memory_limit", "1GiB", "2GiB"), ("device", "cpu", "cuda"), ("isa", "avx2", "sse4"), ("seed", 1, 2)],
)
def test_keywords_must_not_contradict_a_context(setting, given, other):
    context = nearwise.Context(**{setting: given})
    words = rf"train_kmeans\(\) got {setting}={other!r}, but context= has {setting}={given!r}: give one of the two"
    refuses(TypeError, words, nearwise.train_kmeans, ROWS, 3, context=context, **{setting: other})


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"threads": 0}, ValueError, "threads: expected at least 1, got 0"),
        ({"memory_limit": 0}, ValueError, "memory_limit: expected at least 1, got 0"),
        ({"memory_limit": "a lot"}, ValueError, "memory_limit: expected bytes such as"),
        ({"seed": -1}, ValueError, "seed: expected at least 0"),
        ({"device": 0}, TypeError, "device: expected a string"),
        ({"progress": "yes"}, TypeError, "progress: expected None, True or a callable"),
    ],
)
def test_settings_are_checked(settings, error, words):
    refuses(error, words, nearwise.Context, **settings)
    refuses(error, words, nearwise.train_kmeans, ROWS, 3, **settings)


def test_only_a_context_is_a_context():
    with pytest.raises(TypeError, match=r"knn\(\) takes a nearwise.Context as context=, got dict"):
        nearwise.knn(ROWS, ROWS, 3, context={"threads": 2})


def test_contexts_are_values():
    context = nearwise.Context(threads=2, memory_limit="1GiB")
    assert context == nearwise.Context(threads=2, memory_limit="1GiB") and hash(context) == hash(pickle.loads(pickle.dumps(context)))
    with pytest.raises(AttributeError):
        context.threads = 3


def test_objects_remember_their_context():
    limit = nearwise.Context(memory_limit=200_000)
    exact = nearwise.Exact(ROWS, context=limit)
    quantizer = nearwise.ProductQuantizer.train(ROWS, parts=2, bits=4, memory_limit="1GiB")
    refuses(nearwise.Error, "memory", exact.search, np.repeat(ROWS, 100, axis=0), 100)
    free = exact.search(np.repeat(ROWS, 100, axis=0), 100, context=nearwise.Context(memory_limit="1GiB"))
    assert free.ids.shape == (30_000, 100)
    with pytest.raises(nearwise.Error, match="the memory limit of 1000 B"):
        quantizer.encode(ROWS.astype(np.float64), context=nearwise.Context(memory_limit=1000))
    assert quantizer.encode(ROWS).shape == (300, 1)


def test_an_object_stays_on_its_device():
    index = nearwise.IvfFlat.build(ROWS, lists=4)
    for search in (index.search, nearwise.Exact(ROWS).search):
        with pytest.raises(ValueError, match="the object is on cpu, got device 'cuda:0'"):
            search(ROWS, 3, context=nearwise.Context(device="cuda:0"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nearwise.knn(ROWS, ROWS, n_neighbors=3), r"knn\(\) has no argument 'n_neighbors'; did you mean 'k'\?"),
        (lambda: nearwise.build_knn_graph(ROWS, n_neighbors=3), "'n_neighbors'; did you mean 'degree'"),
        (lambda: nearwise.IvfFlat.build(ROWS, nlist=3), r"IvfFlat.build\(\) has no argument 'nlist'; did you mean 'lists'"),
        (lambda: nearwise.train_kmeans(ROWS, n_clusters=3), "'n_clusters'; did you mean 'clusters'"),
        (lambda: nearwise.train_kmeans(ROWS, 3, random_state=3), "'random_state'; did you mean 'seed'"),
        (lambda: nearwise.knn(ROWS, ROWS, 3, n_jobs=2), "'n_jobs'; did you mean 'threads'"),
        (lambda: nearwise.knn(ROWS, ROWS, 3, metrik="cosine"), "'metrik'; did you mean 'metric'"),
        (lambda: nearwise.Exact(data=ROWS), r"Exact\(\) has no argument 'data'; did you mean 'base'"),
        (lambda: nearwise.Exact(ROWS).search(ROWS, 3, n_jobs=2), r"'n_jobs'; give it in context=nearwise.Context\(threads=...\)"),
        (lambda: nearwise.Exact(ROWS).search(ROWS, 3, colour=2), "has no argument 'colour'; it takes queries, k, pad"),
    ],
)
def test_unknown_keywords_are_answered(call, words):
    refuses(TypeError, words, call)


def test_probes_and_candidates_are_suggested():
    index = nearwise.IvfFlat.build(ROWS, lists=4)
    refuses(TypeError, r"Ivf.search\(\) has no argument 'nprobe'; did you mean 'probes'\?", index.search, ROWS, 3, nprobe=2)
    refuses(TypeError, "'ef'; did you mean 'candidates'", index.search, ROWS, 3, ef=20)


@pytest.mark.parametrize("kind", ["neighbors", "flat", "pq", "lsq", "graph_index", "graph", "product", "optimized", "additive"])
def test_load_reads_every_kind(kind, tmp_path):
    path = tmp_path / "saved.nw"
    makers = {
        "flat": lambda: nearwise.IvfFlat.build(ROWS, lists=4),
        "pq": lambda: nearwise.IvfPq.build(ROWS, lists=4, code_bytes=4, bits=4),
        "lsq": lambda: nearwise.IvfLsq.build(ROWS, lists=4, code_bytes=2, rounds=1),
        "graph_index": lambda: nearwise.GraphIndex.build(ROWS, degree=16),
        "graph": lambda: nearwise.build_knn_graph(ROWS, 4),
        "product": lambda: nearwise.ProductQuantizer.train(ROWS, parts=2, bits=4),
        "optimized": lambda: nearwise.OptimizedProductQuantizer.train(ROWS, parts=2, bits=4, rounds=2),
        "additive": lambda: nearwise.AdditiveQuantizer.train(ROWS, codebooks=2, rounds=1),
    }
    if kind == "neighbors":
        found = nearwise.knn(ROWS, ROWS, 3)
        nearwise.save(path, found, metric="sqeuclidean")
        loaded = nearwise.load(path)
        assert isinstance(loaded, nearwise.SavedNeighbors) and np.array_equal(loaded.neighbors.ids, found.ids)
    else:
        made = makers[kind]()
        made.save(path)
        loaded = nearwise.load(path, threads=1)
        assert type(loaded) is type(made) and loaded._context.threads == 1
        if kind in ("flat", "pq", "lsq", "graph_index"):
            assert np.array_equal(loaded.search(ROWS, 3).ids, made.search(ROWS, 3).ids)
        elif kind == "graph":
            assert np.array_equal(loaded.ids, made.ids)
        else:
            assert np.array_equal(loaded.encode(ROWS), made.encode(ROWS))
    assert isinstance(nearwise.load(path, type(loaded)), type(loaded))
    wrong = nearwise.KnnGraph if kind != "graph" else nearwise.Ivf
    name = type(loaded).__name__
    with pytest.raises(TypeError, match=rf"saved.nw: expected an? {wrong.__name__}, the file holds an? {name}"):
        nearwise.load(path, wrong)


def test_a_rotation_with_a_mean_is_not_saved_without_it(tmp_path):
    rotation = nearwise.Rotation.pca(ROWS + 3, 8)
    quantizer = nearwise.ProductQuantizer.train(rotation.apply(ROWS), parts=2, bits=4)
    refuses(ValueError, "rotation", nearwise.OptimizedProductQuantizer(rotation, quantizer).save, tmp_path / "saved.nw")


def test_other_files_are_not_loaded(tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    refuses(nearwise.Error, "", nearwise.load, tmp_path / "rows.fbin")
    refuses("not_found", "", nearwise.load, tmp_path / "missing.nw")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_shared_context_survives_a_fork():
    rows = np.random.default_rng(0).standard_normal((2000, 16), dtype=np.float32)
    context = nearwise.Context(threads=2)
    found = nearwise.knn(rows, rows, 3, context=context)
    runs_in_a_child(lambda: (nearwise.knn(rows, rows, 3, context=context).ids == found.ids).all())


SIZES = [
    line.rsplit("|", 1)
    for line in (pathlib.Path(__file__).parents[2] / "tests" / "cli" / "sizes.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("text", "size"), SIZES)
def test_sizes_are_those_of_the_command_line(text, size):
    if size == "refused":
        refuses(ValueError, "memory_limit: expected", nearwise.Context, memory_limit=text)
    else:
        assert nearwise.Context(memory_limit=text).memory_bytes == int(size)
