"""First mistakes of new users, and words of other libraries: each message names the way."""

import inspect
import pathlib
import re

import nearwise
import numpy as np
import pytest
from checks import refuses
from nearwise import _suggest

ROWS = np.random.default_rng(11).standard_normal((400, 16), dtype=np.float32)
QUERIES = ROWS[:3]


@pytest.fixture(scope="module")
def indexes():
    return {
        "exact": nearwise.Exact(ROWS),
        "ivf": nearwise.IvfFlat.build(ROWS, lists=8, target_recall=0.5),
        "graph": nearwise.GraphIndex.build(ROWS, degree=16, target_recall=0.5),
    }


ARGUMENTS = [
    # shapes and types
    (lambda: nearwise.knn(ROWS[:, :8], ROWS, 3), "queries and base must have the same dimension, got 8 and 16"),
    (lambda: nearwise.knn(QUERIES, ROWS[0], 3), r"for one vector pass base\[None, :\]"),
    (lambda: nearwise.knn(QUERIES[None], ROWS, 3), r"expected a 2-D array \[rows, dim\] or one vector \[dim\], got 3-D"),
    (lambda: nearwise.knn([], ROWS, 3), r"queries: expected a 2-D .* got 1-D of shape \(0,\); it is empty"),
    (lambda: nearwise.knn(QUERIES, [], 3), "base: expected a 2-D .*; it is empty"),
    (lambda: nearwise.knn([[1, 2], [3]], ROWS, 3), "row 1 has 1 elements, row 0 has 2: vectors of one length expected"),
    (lambda: nearwise.knn(["a text"], ROWS, 3), "dtype <U6 is not accepted; .*; texts become vectors by an encoder first"),
    (lambda: nearwise.knn(QUERIES > 0, ROWS, 3), r"dtype bool is not accepted; .*; astype\(np.uint8\) makes numbers of it"),
    (lambda: nearwise.knn((row for row in QUERIES), ROWS, 3), r"got a generator; np.stack\(list\(queries\)\) makes one"),
    (lambda: nearwise.knn({"a": 1}, ROWS, 3), "expected an array of vectors .*, got a dict"),
    (lambda: nearwise.knn({1.0, 2.0}, ROWS, 3), "expected an array of vectors .*, got a set"),
    (lambda: nearwise.GraphIndex.build("base.fbin"), r"nearwise.read_vectors\('base.fbin'\) maps it"),
    (lambda: nearwise.build(pathlib.Path("base.fbin")), r"nearwise.read_vectors\('base.fbin'\) maps it"),
    # sizes and options
    (lambda: nearwise.knn(QUERIES, ROWS[:2], 3), r"at most the number of base rows, 2, got 3 \(pad=True fills up the rows\)"),
    (lambda: nearwise.select_k(ROWS[:, :2], 3), r"\(pad=True fills up the rows\)"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="euclid"), "one of sqeuclidean, .* got 'euclid'; did you mean 'euclidean'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="cosine_similarity"), "did you mean 'cosine'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="dot_product"), "did you mean 'inner_product'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="L2"), "got 'L2'; did you mean 'sqeuclidean'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="IP"), "did you mean 'inner_product'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="Cosine"), "did you mean 'cosine'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric="hamming"), "expected one of sqeuclidean, .* got 'hamming'$"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, threads=-1), "threads: expected at least 1, got -1; for all CPUs leave it out"),
    (lambda: nearwise.build(ROWS, queries=QUERIES), r"queries: expected one of single, batch, got an array of shape \(3, 16\)"),
    (lambda: nearwise.build(ROWS, target_recall=95), "at most 1, got 95.0; 95 % is 0.95"),
    (lambda: nearwise.dedup(ROWS, similarity=95), "the similarity must be at most 1 for cosine, got 95; 95 % is 0.95"),
    (lambda: nearwise.dedup(ROWS, similarity=1.5, metric="cosine"), "at most 1 for cosine, got 1.5"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, filter=lambda id: id > 3), "got a function; comparing an array makes a mask"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, filter="price < 20"), "got 'price < 20'; comparing an array makes a mask"),
]


@pytest.mark.parametrize(("call", "text"), ARGUMENTS, ids=[text for _, text in ARGUMENTS])
def test_wrong_values(call, text):
    refuses(ValueError, text, call)


TYPES = [
    (lambda: nearwise.knn(QUERIES, ROWS), "missing 1 required positional argument: 'k'"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, "cosine"), r"knn\(\) takes queries, base, k as positional arguments, got 4; .* metric=, "),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, metric=1), r"metric: expected a string, got 1 \(int\), such as 'sqeuclidean'"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, memory_limit=1e9), "text such as '500MB' is accepted, too"),
    (lambda: nearwise.dedup(ROWS, threshold=0.9), "did you mean 'similarity'?"),
    (lambda: nearwise.range_search(QUERIES, ROWS, eps=0.9), "did you mean 'radius'?"),
    (lambda: nearwise.knn(QUERIES, ROWS, 3, where=[1]), "did you mean 'filter'?"),
    (lambda: nearwise.GraphIndex.build(ROWS, ef_construction=100), "did you mean 'graph_recall'?"),
    (lambda: nearwise.GraphIndex(ROWS), r"a GraphIndex is made by GraphIndex.build\(rows\)"),
    (lambda: nearwise.IvfPq(16, 100, 8), "nearwise.IvfPq.build"),
    (lambda: nearwise.Ivf(ROWS), "nearwise.IvfFlat.build"),
    (lambda: nearwise.KnnGraph(ROWS, 5), r"made by nearwise.build_knn_graph\(rows, degree\)"),
    (lambda: nearwise.ProductQuantizer(16, 4), r"made by ProductQuantizer.train\(rows\)"),
    (lambda: nearwise.AdditiveQuantizer(16), r"made by AdditiveQuantizer.train\(rows\)"),
    (lambda: nearwise.Rotation(16), r"made by Rotation.pca\(rows, dims\)"),
]


@pytest.mark.parametrize(("call", "text"), TYPES, ids=[text for _, text in TYPES])
def test_wrong_types_and_names(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_positions_of_methods_are_counted_without_the_object(indexes):
    for name, arguments in (("exact", "queries, k"), ("ivf", "queries, k"), ("graph", "queries, k")):
        with pytest.raises(TypeError, match=rf"takes {arguments} as positional arguments, got 3; .*filter="):
            indexes[name].search(QUERIES, 3, 5)
    with pytest.raises(TypeError, match="takes nothing as positional arguments, got 1$"):
        indexes["ivf"].ids(3)


def test_cosine_needs_no_normalized_vectors():
    lengths = np.random.default_rng(2).uniform(0.1, 100, (len(ROWS), 1)).astype(np.float32)
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    found, expected = (nearwise.knn(rows[:20], rows, 5, metric="cosine") for rows in (ROWS * lengths, unit))
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_allclose(found.distances, expected.distances, atol=1e-6)
    # Of unit vectors, but of these alone, the inner product has the same order.
    np.testing.assert_array_equal(nearwise.knn(unit[:20], unit, 5, metric="inner_product").ids, expected.ids)
    assert (nearwise.knn((ROWS * lengths)[:20], ROWS * lengths, 5, metric="inner_product").ids != expected.ids).any()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("vectors.csv", b"1,2\n", "numpy.loadtxt reads such files, and nearwise takes arrays"),
        ("vectors.npz", b"PK", "numpy.load reads such files"),
        ("vectors.h5", b"HDF", "h5py reads such files"),
        ("vectors.pt", b"PK", "torch.load reads such files"),
        ("vectors.parquet", b"PAR1", "nearwise.arrow.to_vectors makes a file of vectors of a column"),
        ("index.nw", None, "nearwise.load opens files of indexes"),
    ],
)
def test_files_that_hold_no_vectors(name, content, text, tmp_path, indexes):
    path = tmp_path / name
    if content is None:
        indexes["ivf"].save(path)
    else:
        path.write_bytes(content)
    refuses(ValueError, text, nearwise.read_vectors, path)


def test_files_of_vectors_are_not_loaded(tmp_path):
    for name in ("vectors.fbin", "vectors.npy"):
        nearwise.write_vectors(tmp_path / name, ROWS)
        with pytest.raises(nearwise.Error, match="if it holds vectors, nearwise.read_vectors maps it"):
            nearwise.load(tmp_path / name)


def test_a_missing_file_is_named():
    for read in (nearwise.read_vectors, nearwise.load, nearwise.verify):
        with pytest.raises(FileNotFoundError, match=r"nowhere/base\.fbin: No such file"):
            read("nowhere/base.fbin")


class Tensor:
    """Of PyTorch: numpy converts it, unless it needs gradients."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


def test_the_words_of_another_library_reach_the_user():
    with pytest.raises(RuntimeError, match=r"tensor.detach\(\)"):
        nearwise.knn(Tensor(), ROWS, 3)


NAMES = [
    ("IndexFlatL2", r"nearwise.Exact\(base\)"),
    ("IndexFlatIP", 'metric="inner_product"'),
    ("IndexIVFPQ", r"nearwise.IvfPq.build\(rows\)"),
    ("Index", r"nearwise.GraphIndex.build\(rows\)"),
    ("NNDescent", r"nearwise.build_knn_graph\(rows, degree\)"),
    ("Kmeans", r"nearwise.train_kmeans\(rows, clusters\)"),
    ("normalize_L2", 'metric="cosine", which needs no normalized vectors'),
    ("read_index", r"nearwise.load\(path\)"),
    ("NearestNeighbors", "nearwise.sklearn.NearestNeighbors"),
    ("serach", r"nearwise.knn\(queries, base, k\), or index.search"),
    ("graphindex", r"did you mean nearwise.GraphIndex\?"),
    ("knnn", r"did you mean nearwise.knn\?"),
]


@pytest.mark.parametrize(("name", "text"), NAMES)
def test_names_of_the_package(name, text):
    with pytest.raises(AttributeError, match=f"module 'nearwise' has no attribute '{name}'; .*{text}"):
        getattr(nearwise, name)


def test_names_that_mean_nothing_say_nothing_more():
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        nearwise.zzz  # noqa: B018
    assert not hasattr(nearwise, "__wrapped__")


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        ("ivf", "nprobe", r"write index.search\(queries, k, probes=..., candidates=...\)"),
        ("ivf", "ef", "probes="),
        ("graph", "ef", r"write index.search\(queries, k, beam=...\)"),
        ("graph", "set_ef", "beam="),
        ("graph", "nprobe", "beam="),
        ("exact", "nprobe", "which is exact and has nothing to tune"),
        ("graph", "knn_query", r"write index.search\(queries, k\)"),
        ("graph", "add_items", r"write index.add\(rows, ids\)"),
        ("ivf", "remove_ids", r"write index.remove\(ids\)"),
        ("ivf", "ntotal", r"write len\(index\)"),
        ("graph", "load_index", r"write nearwise.load\(path\)"),
        ("ivf", "reconstruct", r"write index.get\(ids\)"),
        ("graph", "serach", r"did you mean index.search\?"),
        ("ivf", "zzz", "has no attribute 'zzz'$"),
    ],
)
def test_names_of_indexes(kind, name, text, indexes):
    with pytest.raises(AttributeError, match=text):
        getattr(indexes[kind], name)


def test_settings_of_other_libraries_cannot_be_set(indexes):
    """index.nprobe = 8 would do nothing."""
    for kind, name, text in (("ivf", "nprobe", "probes="), ("graph", "ef", "beam="), ("exact", "threads", r"Context\(threads=")):
        with pytest.raises(AttributeError, match=text):
            setattr(indexes[kind], name, 8)
        assert not hasattr(indexes[kind], name)
    for name, text in (("nlist", r"lists=\.\.\."), ("target_recall", r"index.calibrate\(target_recall=")):
        with pytest.raises(AttributeError, match=text):
            setattr(indexes["ivf"], name, 8)
    indexes["ivf"].provenance = {"base": "mine"}
    assert indexes["ivf"].provenance["base"] == "mine"
    indexes["ivf"].titles = ["of", "the", "caller"]
    assert indexes["ivf"].titles[0] == "of"


def test_names_of_graphs():
    graph = nearwise.build_knn_graph(ROWS, 3)
    for name, text in (("neighbor_graph", "ids and distances"), ("search", "GraphIndex.from_knn_graph"), ("to_crs", "index.to_csr|to_csr")):
        with pytest.raises(AttributeError, match=text):
            getattr(graph, name)


def paths_of(words):
    """What texts name in code: nearwise.X.Y, and index.method(arguments)."""
    for text in words:
        yield from re.findall(r"nearwise\.([\w.]+)", text)


def test_what_messages_name_exists(indexes):
    import nearwise.sklearn

    for path in paths_of([*_suggest._OF_PACKAGE, *_suggest._OF_INDEX, *_suggest._OF_GRAPH]):
        found = nearwise
        for part in path.split("."):
            found = getattr(found, part)
    assert hasattr(nearwise.KnnGraph, "to_csr")
    knobs = [type(index)._knob for index in indexes.values()]
    for text in [*_suggest._OF_INDEX, *knobs]:
        for method, arguments in re.findall(r"index\.(\w+)(?:\(([^()]*)\))?", text):
            holders = [index for index in indexes.values() if hasattr(type(index), method)]
            assert holders, text
            for keyword in re.findall(r"(\w+)=", arguments):
                assert any(keyword in inspect.signature(getattr(each, method)).parameters for each in holders), text


def test_every_word_is_named_once():
    for words in (_suggest._OF_PACKAGE, _suggest._OF_INDEX, _suggest._OF_GRAPH):
        theirs = [name for names in words.values() for name in names]
        assert len(theirs) == len(set(theirs))
    assert not {name for names in _suggest._OF_PACKAGE.values() for name in names} & set(nearwise.__all__)
