"""Files that say what they are, .npy and .nw, are read under any name."""
import os
import shutil

import formats
import numpy as np
import pytest

NAMES = ["plain", "of.dat", "of.fbin", "of.ivecs", "of.bin"]


@pytest.fixture
def base(tmp_path):
    rows = np.random.default_rng(3).standard_normal((300, 8), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", rows)
    with open(tmp_path / "base.npy", "wb") as file:
        np.save(file, rows)
    return rows


def copied(tmp_path, source, name):
    shutil.copy(tmp_path / source, tmp_path / name)
    return name


@pytest.mark.parametrize("name", [*NAMES, "of.nw"])
def test_npy_under_any_name(nearwise, base, tmp_path, name):
    copied(tmp_path, "base.npy", name)
    file = nearwise("info", name, "--json").json["files"][0]
    assert (file["content"], file["format"], file["rows"], file["dim"]) == ("vectors", "npy", 300, 8)
    assert "ok (vectors, 300 x 8 f32)" in nearwise("verify", name).out
    nearwise("convert", name, "-o", "again.fbin")
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / "again.fbin"), base)
    nearwise("knn", name, "base.fbin", "-k", 3, "-o", "found.nw")
    nearwise("knn", "base.fbin", "base.fbin", "-k", 3, "-o", "expected.nw")
    assert "1.000" in nearwise("eval", "found.nw", "expected.nw", "-k", 3).out


def test_ids_and_masks_of_npy_under_any_name(nearwise, base, tmp_path):
    for name, array in (("ids", np.arange(10)), ("mask.dat", np.arange(300) < 10)):
        with open(tmp_path / name, "wb") as file:
            np.save(file, array if array.dtype == bool else array[:, None])
        nearwise("knn", "base.fbin", "base.fbin", "-k", 2, "--filter", name, "-o", "found.npy")
        assert np.load(tmp_path / "found.npy").max() == 9


@pytest.mark.parametrize("name", [*NAMES, "of.npy"])
def test_containers_under_any_name(nearwise, base, tmp_path, name):
    nearwise("knn", "base.fbin", "--exclude-self", "-k", 3, "-o", "found.nw")
    nearwise("graph", "build", "base.fbin", "--degree", 4, "-o", "graph.nw")
    nearwise("index", "build", "base.fbin", "--lists", 4, "-o", "index.nw")
    nearwise("quantizer", "train", "base.fbin", "--kind", "pq", "--code-bytes", 2, "--bits", 4, "-o", "quantizer.nw")

    for source in ("found.nw", "graph.nw", "index.nw", "quantizer.nw"):
        copied(tmp_path, source, name)
        file = nearwise("info", name, "--json").json["files"][0]
        expected = nearwise("info", source, "--json").json["files"][0]
        assert file == expected | {"path": name}
        assert f"{name}: ok (container of " in nearwise("verify", name).out
        assert "a .nw file, by its content, cannot hold vectors" in nearwise("knn", name, "base.fbin", expect=2).err
    nearwise("quantizer", "encode", name, "base.fbin", "-o", "codes.u8bin")
    copied(tmp_path, "index.nw", name)
    nearwise("index", "search", name, "base.fbin", "-k", 3, "-o", "result.nw")
    copied(tmp_path, "found.nw", name)
    assert "1.000" in nearwise("eval", name, "found.nw", "-k", 3).out
    nearwise("convert", name, "-o", "found.ivecs")
    assert "expected an index, got a file of neighbors" in nearwise("index", "search", name, "base.fbin", expect=2).err
    copied(tmp_path, "graph.nw", name)
    nearwise("graph", "path", name, 0, 1)


def test_the_suffix_decides_where_the_content_cannot(nearwise, base, tmp_path):
    data = (tmp_path / "base.fbin").read_bytes()
    for name in ("base.npy", "base.nw"):
        (tmp_path / name).write_bytes(data)
        nearwise("verify", name, expect=65)
    (tmp_path / "base.dat").write_bytes(data)
    assert "unknown suffix '.dat'" in nearwise("info", "base.dat", expect=2).err
    assert "unknown suffix ''" in nearwise("info", copied(tmp_path, "base.fbin", "base"), expect=2).err
    (tmp_path / "empty.npy").write_bytes(b"")
    nearwise("verify", "empty.npy", expect=65)


def test_suffixes_are_matched_in_any_case(nearwise, base, tmp_path):
    copied(tmp_path, "base.fbin", "BASE.FBIN")
    file = nearwise("info", "BASE.FBIN", "--json").json["files"][0]
    assert (file["content"], file["format"], file["rows"], file["type"]) == ("vectors", "fbin", 300, "f32")
    nearwise("convert", "BASE.FBIN", "-o", "Again.FVecs")
    copied(tmp_path, "Again.FVecs", "again.fvecs")
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / "again.fvecs"), base)
    nearwise("knn", "BASE.FBIN", "base.fbin", "-k", 3, "-o", "FOUND.NW")
    assert nearwise("info", "FOUND.NW", "--json").json["files"][0]["content"] == "neighbors"
    assert "distances are dropped" not in nearwise("convert", "FOUND.NW", "-o", "FOUND.BIN").err
    assert "1.000" in nearwise("eval", "FOUND.BIN", "FOUND.NW", "-k", 3).out
    (tmp_path / "IDS.TXT").write_text("1\n2\n")
    nearwise("knn", "base.fbin", "base.fbin", "-k", 2, "--filter", "IDS.TXT", "-o", "found.npy")
    assert set(np.load(tmp_path / "found.npy").ravel()) == {1, 2}
    nearwise("index", "build", "BASE.FBIN", "--lists", 4, "-o", "INDEX.NW")
    nearwise("index", "search", "INDEX.NW", "BASE.FBIN", "-k", 3)
    for command in (["dedup", "base.fbin", "--radius", 1], ["graph", "components", "FOUND.NW"]):
        assert "got 'x.BIN'" in nearwise(*command, "-o", "x.BIN", expect=2).err
    (tmp_path / "base.CSV").write_text("1,2\n")
    assert "suffix '.CSV' cannot hold vectors" in nearwise("knn", "base.CSV", "base.fbin", expect=2).err
    assert "numpy.save writes" in nearwise("knn", "base.CSV", "base.fbin", expect=2).err


def test_outputs_follow_their_suffix(nearwise, base, tmp_path):
    nearwise("convert", copied(tmp_path, "base.npy", "plain"), "-o", "base.fvecs")
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / "base.fvecs"), base)
    assert "suffix ''" in nearwise("convert", "base.fbin", "-o", "nothing", expect=2).err


def test_a_pipe_is_refused_at_once(nearwise, base, tmp_path):
    for name in ("pipe.fbin", "pipe.npy"):
        os.mkfifo(tmp_path / name)
        assert f"{name}: expected a regular file" in nearwise("knn", name, "base.fbin", expect=65).err
