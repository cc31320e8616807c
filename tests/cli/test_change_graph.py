"""nearwise graph merge, add, remove: the files they leave, and words for what they cannot do."""
import formats
import numpy as np
import pytest


@pytest.fixture
def halves(nearwise, tmp_path):
    """300 rows in base.fbin, 180 of them in left.fbin and the others in right.fbin, and a graph of each."""
    rows = np.random.default_rng(5).standard_normal((300, 7)).astype(np.float32)
    for name, part in (("base", rows), ("left", rows[:180]), ("right", rows[180:])):
        formats.write_vectors(tmp_path / f"{name}.fbin", part)
        nearwise("graph", "build", f"{name}.fbin", "--degree", 6, "-o", f"{name}.nw", "--quiet")
    return rows


def ids_of(nearwise, tmp_path, graph):
    nearwise("verify", graph)
    nearwise("convert", graph, "-o", "converted.ivecs", "--quiet")
    return formats.read_array(tmp_path / "converted.ivecs").tolist()


@pytest.mark.parametrize("files", [["base.fbin"], ["left.fbin", "right.fbin"]])
def test_merge(nearwise, halves, tmp_path, files):
    result = nearwise("graph", "merge", "left.nw", "right.nw", *files, "-o", "merged.nw", "--json").json
    assert (result["rows"], result["degree"], result["dim"]) == (300, 6, 7)
    assert result["reached"] is True and result["recall"]["low"] == 1 and result["target_recall"] == 0.95
    assert ids_of(nearwise, tmp_path, "merged.nw") == ids_of(nearwise, tmp_path, "base.nw")
    metadata = nearwise("info", "--json", "merged.nw").json["files"][0]["metadata"]
    assert "graph merge left.nw right.nw" in metadata["provenance.command"]
    assert all(name in metadata["provenance.base"] for name in files)


def test_add(nearwise, halves, tmp_path):
    # Into the file itself, which is replaced when the graph is complete.
    result = nearwise("graph", "add", "left.nw", "left.fbin", "right.fbin", "-o", "left.nw")
    assert "wrote 300 x 6 to left.nw: exact, recall 1.0000" in result.err
    assert ids_of(nearwise, tmp_path, "left.nw") == ids_of(nearwise, tmp_path, "base.nw")


def test_remove(nearwise, halves, tmp_path):
    gone = [299, 4, 17]
    (tmp_path / "gone.txt").write_text("".join(f"{number}\n" for number in gone))
    result = nearwise("graph", "remove", "base.nw", "gone.txt", "base.fbin", "-o", "fewer.nw")
    assert "round 0: " in result.err and "wrote 297 x 6" in result.err
    formats.write_vectors(tmp_path / "fewer.fbin", np.delete(halves, gone, axis=0))
    nearwise("graph", "build", "fewer.fbin", "--degree", 6, "-o", "built.nw")
    assert ids_of(nearwise, tmp_path, "fewer.nw") == ids_of(nearwise, tmp_path, "built.nw")


@pytest.mark.parametrize("arguments, code, words", [
    (["merge", "left.nw", "right.nw", "left.fbin", "-o", "out.nw"], 2, "expected 300 vectors, those of the graph, got 180"),
    (["merge", "right.nw", "left.nw", "base.fbin", "-o", "out.nw"], 65, "the left graph must be of these rows"),
    (["merge", "left.nw", "right.nw", "base.fbin", "-o", "out.ivecs"], 2, "cannot hold a graph; use .nw"),
    (["merge", "left.nw", "right.nw", "base.fbin", "-o", "out.nw", "--target-recall", "2"], 2, "above 0 and at most 1"),
    (["merge", "left.nw", "missing.nw", "base.fbin", "-o", "out.nw"], 66, "missing.nw"),
    (["merge", "left.nw", "right.nw", "base.fbin", "other.fbin", "-o", "out.nw"], 2, "same dimension and type"),
    (["add", "base.nw", "left.fbin", "-o", "out.nw"], 2, "expected at least 300 vectors, those of the graph and the new ones, got 180"),
    (["add", "base.fbin", "left.fbin", "-o", "out.nw"], 2, "cannot hold a graph"),
    (["add", "found.nw", "left.fbin", "-o", "out.nw"], 2, "expected a graph, got a file of neighbors"),
    (["remove", "base.nw", "far.txt", "base.fbin", "-o", "out.nw"], 65, "ids from 0 to 299 expected, got 300"),
    (["remove", "base.nw", "twice.txt", "base.fbin", "-o", "out.nw"], 65, "got 7 twice"),
    (["remove", "base.nw", "far.txt", "-o", "out.nw"], 2, "vectors is required"),
])
def test_refusals(nearwise, halves, tmp_path, arguments, code, words):
    formats.write_vectors(tmp_path / "other.fbin", halves[:, :5])
    (tmp_path / "far.txt").write_text("3\n300\n")
    (tmp_path / "twice.txt").write_text("7\n8\n7\n")
    nearwise("knn", "left.fbin", "--exclude-self", "-k", 6, "-o", "found.nw", "--quiet")
    assert words in nearwise("graph", *arguments, expect=code).err
    assert not (tmp_path / "out.nw").exists()
