"""nearwise graph: the file it leaves, the recall it tells, and words for what it cannot do."""
import formats
import numpy as np
import pytest


@pytest.fixture
def base(tmp_path):
    rows = np.random.default_rng(5).standard_normal((300, 7)).astype(np.float32)
    formats.write_vectors(tmp_path / "base.fbin", rows)
    return rows


def test_build_and_eval(nearwise, base, tmp_path):
    result = nearwise("graph", "build", "base.fbin", "--degree", 6, "-o", "graph.nw", "--json").json
    assert (result["rows"], result["degree"], result["dim"]) == (300, 6, 7)
    assert result["method"] == "exact" and result["reached"] is True and result["recall"]["low"] == 1
    nearwise("verify", "graph.nw")
    assert nearwise("info", "--json", "graph.nw").json["files"][0]["content"] == "graph"
    assert nearwise("info", "--json", "graph.nw").json["files"][0]["degree"] == 6
    nearwise("knn", "base.fbin", "--exclude-self", "-k", 6, "-o", "exact.ivecs")
    nearwise("convert", "graph.nw", "-o", "graph.ivecs")
    assert (tmp_path / "graph.ivecs").read_bytes() == (tmp_path / "exact.ivecs").read_bytes()
    evaluated = nearwise("graph", "eval", "graph.nw", "base.fbin", "--json").json
    assert evaluated["recall"] == {"value": 1.0, "low": 1.0, "high": 1.0, "rows": 300}
    assert nearwise("graph", "eval", "graph.nw", "base.fbin", "--sample", 50).out.startswith("recall 1.0000, 95 %")


def test_rounds_are_told(nearwise, tmp_path):
    rows = np.random.default_rng(6).integers(0, 255, (66_000, 4)).astype(np.uint8)
    formats.write_vectors(tmp_path / "many.u8bin", rows)
    result = nearwise("graph", "build", "many.u8bin", "--degree", 5, "--target-recall", 0.9, "--seed", 2, "-o", "graph.nw")
    assert "round 0: " in result.err and "wrote 66000 x 5 to graph.nw: nn_descent, recall " in result.err
    assert "warning" not in result.err


def test_eval_of_neighbours_of_others(nearwise, base, tmp_path):
    nearwise("knn", "base.fbin", "--exclude-self", "-k", 4, "-o", "exact.ivecs")
    ids = formats.read_array(tmp_path / "exact.ivecs")
    assert nearwise("graph", "eval", "exact.ivecs", "base.fbin", "--json").json["recall"]["value"] == 1
    ids[:, 1] = ids[:, 0]
    np.save(tmp_path / "wrong.npy", ids)
    assert nearwise("graph", "eval", "wrong.npy", "base.fbin", "--json").json["recall"]["value"] == 0.75


@pytest.mark.parametrize("arguments, code, words", [
    (["build", "base.fbin", "-o", "graph.ivecs"], 2, "cannot hold a graph; use .nw"),
    (["build", "base.fbin", "-o", "graph.nw", "--target-recall", "0"], 2, "above 0 and at most 1"),
    (["build", "base.fbin", "-o", "graph.nw", "--degree", "0"], 2, "--degree"),
    (["build", "missing.fbin", "-o", "graph.nw"], 66, "missing.fbin"),
    (["eval", "missing.nw", "base.fbin"], 66, "missing.nw"),
    (["walk"], 2, ""),
])
def test_refusals(nearwise, base, arguments, code, words):
    assert words in nearwise("graph", *arguments, expect=code).err


def test_a_graph_of_other_rows_is_refused(nearwise, base, tmp_path):
    nearwise("graph", "build", "base.fbin", "-o", "graph.nw")
    formats.write_vectors(tmp_path / "fewer.fbin", base[:100])
    assert "has 300 rows and 'fewer.fbin' 100 vectors" in nearwise("graph", "eval", "graph.nw", "fewer.fbin", expect=2).err
