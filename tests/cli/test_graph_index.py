"""nearwise index build --kind graph, its searches, and files for hnswlib."""
import shlex

import formats
import numpy as np
import pytest
from test_knn import METRICS, check

ROWS, DIM = 900, 16


@pytest.fixture
def files(tmp_path):
    random = np.random.default_rng(12)
    rows = random.standard_normal((ROWS, DIM)).astype(np.float32)
    queries = random.standard_normal((30, DIM)).astype(np.float32)
    formats.write_vectors(tmp_path / "rows.fbin", rows)
    formats.write_vectors(tmp_path / "queries.fbin", queries)
    return rows, queries


@pytest.mark.parametrize("metric", METRICS)
def test_the_widest_beam_finds_the_truth(nearwise, files, tmp_path, metric):
    rows, queries = files
    report = nearwise("index", "build", "rows.fbin", "--kind", "graph", "--metric", metric, "-o", "index.nw", "--json").json
    assert report["rows"] == ROWS and report["degree"] == 48 and report["calibration"]["reached"]
    nearwise("index", "search", "index.nw", "queries.fbin", "-k", 5, "--beam", ROWS, "-o", "found.bin")
    check(*formats.read_truth_bin(tmp_path / "found.bin"), queries, rows, metric)


def test_filters_and_provenance(nearwise, files, tmp_path):
    nearwise("index", "build", "rows.fbin", "--kind", "graph", "--degree", 16, "--seed", 4, "-o", "index.nw")
    np.save(tmp_path / "mask.npy", np.arange(ROWS) % 2 == 0)
    nearwise("index", "search", "index.nw", "queries.fbin", "-k", 5, "--filter", "mask.npy", "-o", "found.bin")
    ids, _ = formats.read_truth_bin(tmp_path / "found.bin")
    assert (ids % 2 == 0).all()
    file = nearwise("info", "index.nw", "--json").json["files"][0]
    assert file["content"] == "graph_index" and file["rows"] == ROWS and file["degree"] == 16
    assert "rows.fbin" in file["metadata"]["provenance.base"]
    assert "graph_index" in nearwise("verify", "index.nw").out


def test_vectors_are_added_and_removed(nearwise, files, tmp_path):
    rows, queries = files
    formats.write_vectors(tmp_path / "first.fbin", rows[:600])
    formats.write_vectors(tmp_path / "second.fbin", rows[600:])
    nearwise("index", "build", "first.fbin", "--kind", "graph", "--degree", 16, "-o", "index.nw")
    assert nearwise("index", "add", "index.nw", "second.fbin", "-o", "index.nw", "--json").json["added"] == ROWS - 600
    (tmp_path / "ids.txt").write_text("".join(f"{i}\n" for i in range(0, ROWS, 3)))
    report = nearwise("index", "remove", "index.nw", "ids.txt", "-o", "index.nw", "--json").json
    assert report["removed"] == ROWS // 3 and report["rows"] == ROWS - ROWS // 3
    nearwise("index", "search", "index.nw", "queries.fbin", "-k", 5, "--beam", ROWS, "-o", "found.bin")
    nearwise("knn", "rows.fbin", "queries.fbin", "-k", 5, "--exclude", "ids.txt", "-o", "truth.bin")
    for found, truth in zip(formats.read_truth_bin(tmp_path / "found.bin"), formats.read_truth_bin(tmp_path / "truth.bin")):
        np.testing.assert_array_equal(found, truth)


def test_calibrations(nearwise, files):
    built = nearwise("index", "build", "rows.fbin", "--kind", "graph", "--degree", 16, "-o", "index.nw", "--json").json
    assert built["calibration"]["target_recall"] == 0.95
    wider = nearwise("index", "calibrate", "index.nw", "--target-recall", 0.999, "--queries", 300, "-o", "again.nw", "--json").json
    assert wider["calibration"]["target_recall"] == 0.999 and wider["beam"] >= built["beam"]
    for option in (["--largest-k", 20], ["--no-rerank"], ["rows.fbin"]):
        assert "is for inverted files" in nearwise("index", "calibrate", "index.nw", *option, "-o", "again.nw", expect=2).err
    assert "expected an inverted file" in nearwise("index", "merge", "index.nw", "index.nw", "-o", "again.nw", expect=2).err


def test_builds_over_files(nearwise, files, tmp_path):
    rows, queries = files
    options = ("rows.fbin", "--kind", "graph", "--degree", 16, "--memory-limit", "64MiB", "--work", "work")
    planned = nearwise("plan", "index", *options, "--json").json
    report = nearwise("index", "build", *options, "--keep-work", "-o", "index.nw", "--json").json
    assert report["rows"] == ROWS and report["degree"] == 16 and report["calibration"]["reached"]
    assert report["tasks"]["done"] + report["tasks"]["not_needed"] == len(planned["tasks"])
    again = nearwise("index", "build", *options, "-o", "index.nw", "--json").json
    assert again["tasks"]["done"] == 0 and not list(tmp_path.glob("work/prune*"))
    nearwise("index", "search", "index.nw", "queries.fbin", "-k", 5, "--beam", ROWS, "-o", "found.bin")
    check(*formats.read_truth_bin(tmp_path / "found.bin"), queries, rows, "sqeuclidean")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--lists", "4"), "--lists is for --kind ivf"),
        (("--degree", "20"), "--degree must be a multiple of 16"),
        (("--work", "folder"), "a build over files needs --memory-limit"),
        (("--train-only",), "--train-only is for --kind ivf"),
    ],
)
def test_wrong_options_are_named(nearwise, files, options, message):
    assert message in nearwise("index", "build", "rows.fbin", "--kind", "graph", *options, "-o", "i.nw", expect=2).err


def test_options_of_the_other_kind_are_named(nearwise, files):
    nearwise("index", "build", "rows.fbin", "--kind", "graph", "-o", "graph.nw")
    nearwise("index", "build", "rows.fbin", "--codec", "flat", "-o", "lists.nw")
    found = nearwise("index", "search", "graph.nw", "queries.fbin", "--probes", 3, expect=2)
    assert "--probes is for inverted files" in found.err
    found = nearwise("index", "search", "lists.nw", "queries.fbin", "--beam", 30, expect=2)
    assert "--beam is for graph indexes" in found.err
    found = nearwise("index", "export", "lists.nw", "-o", "index.hnsw", expect=2)
    assert "graph_index" in found.err or "a graph index" in found.err


def test_export(nearwise, files, tmp_path):
    """python/tests/test_graph_index_export.py searches such files with hnswlib."""
    nearwise("index", "build", "rows.fbin", "--kind", "graph", "-o", "index.nw")
    nearwise("index", "export", "index.nw", "-o", "index.hnsw")
    header = np.fromfile(tmp_path / "index.hnsw", "<u8", 6)
    assert header[1] == header[2] == ROWS and header[3] == 48 * 4 + 4 + DIM * 4 + 8
    nearwise("index", "export", "index.nw", "--library", "svs", "-o", "folder")
    assert (tmp_path / "folder" / "graph" / "graph_0.svs").stat().st_size == 1024 + ROWS * 49 * 4
    assert "entry_point = " in (tmp_path / "folder" / "config" / "svs_config.toml").read_text()
    nearwise("index", "export", "index.nw", "--library", "diskann", "-o", "diskann")
    assert np.fromfile(tmp_path / "diskann" / "ann", "<u8", 1)[0] == (tmp_path / "diskann" / "ann").stat().st_size


def test_the_chosen_index_can_be_built_by_the_command_that_is_printed(nearwise, files, tmp_path):
    report = nearwise("index", "choose", "rows.fbin", "--json").json
    assert report["kind"] == "exact"  # few vectors
    assert report["command"] == "nearwise knn rows.fbin QUERIES --metric sqeuclidean"
    nearwise(*report["command"].replace("QUERIES", "queries.fbin").removeprefix("nearwise ").split())
    rows = np.zeros((400_000, 64), np.float32)
    formats.write_vectors(tmp_path / "many.fbin", rows)
    report = nearwise("index", "choose", "many.fbin", "--queries", "single", "--expected-queries", 10**8, "--json").json
    assert report["kind"] == report["estimates"][0]["kind"] == "graph"
    nearwise(*report["command"].replace("many.fbin", "rows.fbin").removeprefix("nearwise ").split())
    assert nearwise("info", "index.nw", "--json").json["files"][0]["content"] == "graph_index"
    for codec, *options in (("flat", "350MB", "--expected-queries", 10_000), ("pq --vectors keep", "350MB", "--target-recall", 0.9),
                            ("pq --vectors f16", "250MB", "--metric", "cosine"), ("pq --vectors u8", "220MB")):
        command = nearwise("index", "choose", "many.fbin", "--threads", 1, "--memory-limit", *options, "--json").json["command"]
        assert f"--codec {codec} " in command
        nearwise(*command.replace("many.fbin", "rows.fbin").removeprefix("nearwise ").split())
        assert nearwise("info", "index.nw", "--json").json["files"][0]["content"] == "ivf"
    assert "query us" in nearwise("index", "choose", "many.fbin").out
    assert "too large" in nearwise("index", "choose", "many.fbin", "--memory-limit", "150MB", "--target-recall", 0.9).out


def test_paths_of_the_command_that_is_printed_are_quoted(nearwise, files, tmp_path):
    name = "it's two words.fbin"
    (tmp_path / "rows.fbin").rename(tmp_path / name)
    command = nearwise("index", "choose", name, "--json").json["command"]
    assert shlex.split(command) == ["nearwise", "knn", name, "QUERIES", "--metric", "sqeuclidean"]
    formats.write_vectors(tmp_path / "many vectors.fbin", np.zeros((100_000, 64), np.float32))
    command = nearwise("index", "choose", "many vectors.fbin", "--threads", 1, "--json").json["command"]
    assert shlex.split(command)[:4] == ["nearwise", "index", "build", "many vectors.fbin"]
