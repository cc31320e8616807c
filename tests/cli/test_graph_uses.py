"""nearwise graph path, components, duplicates and export: answers that follow from the graph, and words for the rest."""
import formats
import numpy as np
import pytest


@pytest.fixture
def graph(nearwise, tmp_path):
    """Two lines of rows far from each other, numbered at random, with two copies; every row and its 2 nearest."""
    random = np.random.default_rng(4)
    places = np.concatenate([np.arange(20) + 0.01 * np.arange(20) ** 2, 1000 + np.arange(10)])
    rows = random.permutation(np.append(places, [places[3], places[25]])).astype(np.float32)[:, None]
    formats.write_vectors(tmp_path / "base.fbin", rows)
    nearwise("graph", "build", "base.fbin", "--degree", 2, "--metric", "euclidean", "-o", "graph.nw")
    return rows


def test_path(nearwise, graph):
    start, end = int(graph.argmin()), int(np.where(graph < 500, graph, 0).argmax())
    result = nearwise("graph", "path", "graph.nw", start, end, "--json").json
    assert result["found"] is True and (result["rows"][0], result["rows"][-1]) == (start, end)
    places = graph[result["rows"], 0]
    np.testing.assert_allclose(np.abs(np.diff(places)), result["distances"], rtol=1e-5)
    assert result["widest"] == max(result["distances"]) and result["metric"] == "euclidean"
    shown = nearwise("graph", "path", "graph.nw", start, end)
    lines = shown.out.splitlines()
    assert [int(line.split()[0]) for line in lines] == result["rows"]
    assert [float(line.split()[1]) for line in lines[1:]] == pytest.approx(result["distances"], rel=1e-5)
    assert f"{len(lines) - 1} steps, the widest" in shown.err


def test_no_path_is_an_answer(nearwise, graph):
    start, end = int(graph.argmin()), int(graph.argmax())
    assert nearwise("graph", "path", "graph.nw", start, end).out.startswith("no path: ")
    result = nearwise("graph", "path", "graph.nw", start, end, "--json").json
    assert (result["found"], result["rows"], result["widest"]) == (False, [], None)


def test_a_row_to_itself(nearwise, graph):
    assert nearwise("graph", "path", "graph.nw", 4, 4).out == "4\n"


def test_components(nearwise, graph, tmp_path):
    result = nearwise("graph", "components", "graph.nw", "--output", "labels.npy", "--json").json
    assert (result["groups"], result["rows"], result["rows_in_groups"], result["largest"]) == (2, 32, 32, [21, 11])
    labels = np.load(tmp_path / "labels.npy")
    assert labels.shape == (32, 1) and labels.dtype == np.int64
    np.testing.assert_array_equal(labels == labels[0], (graph < 500) == (graph[0] < 500))
    assert nearwise("graph", "components", "graph.nw").out == "2 components, 32 of 32 vectors, the largest: 21 11\n"


def test_duplicates(nearwise, graph, tmp_path):
    result = nearwise("graph", "duplicates", "graph.nw", "--distance", 0, "-o", "labels.ivecs", "--json").json
    assert (result["groups"], result["rows_in_groups"], result["largest"], result["distance"]) == (2, 4, [2, 2], 0)
    labels = formats.read_array(tmp_path / "labels.ivecs")[:, 0]
    for label in (0, 1):
        first, second = np.flatnonzero(labels == label)
        assert graph[first] == graph[second]
    assert (labels == -1).sum() == 28
    wide = nearwise("graph", "duplicates", "graph.nw", "--distance", 5).out
    assert wide == "2 groups of near duplicates, 32 of 32 vectors, the largest: 21 11\n"


def test_export(nearwise, graph, tmp_path):
    result = nearwise("graph", "export", "graph.nw", "-o", "graph.npz", "--json").json
    assert (result["rows"], result["entries"], result["mutual"]) == (32, 64, False)
    nearwise("convert", "graph.nw", "-o", "graph.ivecs")
    ids = formats.read_array(tmp_path / "graph.ivecs")
    with np.load(tmp_path / "graph.npz") as arrays:
        assert sorted(arrays.files) == ["data", "format", "indices", "indptr", "shape"]
        assert arrays["format"].item() == b"csr" and arrays["shape"].tolist() == [32, 32]
        np.testing.assert_array_equal(arrays["indices"].reshape(32, 2), ids)
        np.testing.assert_array_equal(arrays["indptr"], np.arange(0, 65, 2))
        np.testing.assert_allclose(arrays["data"].reshape(32, 2), np.abs(graph - graph[ids, 0]), rtol=1e-5)


def test_export_is_read_by_scipy(nearwise, graph, tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    assert "with 64 entries" in nearwise("graph", "export", "graph.nw", "-o", "graph.npz").err
    nearwise("graph", "export", "graph.nw", "-o", "mutual.npz", "--mutual")
    every, mutual = (sparse.load_npz(tmp_path / name) for name in ("graph.npz", "mutual.npz"))
    assert every.format == "csr" and every.nnz == 64 and every.dtype == np.float32
    held = np.zeros((32, 32), bool)
    held[every.nonzero()] = True
    held[np.repeat(np.arange(32), 2), every.indices] = True  # distances of 0 too
    kept = np.zeros((32, 32), bool)
    kept[np.repeat(np.arange(32), np.diff(mutual.indptr)), mutual.indices] = True
    np.testing.assert_array_equal(kept, held & held.T)


def test_neighbours_of_every_row_are_a_graph(nearwise, graph):
    nearwise("knn", "base.fbin", "--exclude-self", "-k", 2, "--metric", "euclidean", "-o", "exact.nw")
    for command in (["components"], ["duplicates", "--distance", "1"]):
        assert nearwise("graph", command[0], "exact.nw", *command[1:]).out == \
            nearwise("graph", command[0], "graph.nw", *command[1:]).out


@pytest.mark.parametrize("arguments, code, words", [
    (["path", "graph.nw", "0", "32"], 2, "end must be a row of 'graph.nw', from 0 to 31, got 32"),
    (["path", "graph.nw", "0"], 2, "end"),
    (["path", "graph.nw", "-1", "3"], 2, ""),
    (["path", "missing.nw", "0", "1"], 66, "missing.nw"),
    (["path", "base.fbin", "0", "1"], 2, "cannot hold a graph; use .nw"),
    (["components", "found.nw"], 65, "these neighbours are not a graph: knn graph: row 0 must not be its own neighbour"),
    (["components", "graph.nw", "-o", "labels.nw"], 2, "labels must go to .npy, .ivecs or .ibin"),
    (["duplicates", "graph.nw"], 2, "--distance"),
    (["export", "graph.nw", "-o", "graph.mtx"], 2, "must go to an .npz file"),
    (["export", "graph.nw", "-o", "missing/graph.npz"], 73, "missing"),
])
def test_refusals(nearwise, graph, arguments, code, words):
    nearwise("knn", "base.fbin", "base.fbin", "-k", 2, "-o", "found.nw")
    assert words in nearwise("graph", *arguments, expect=code).err
