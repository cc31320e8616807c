"""nearwise dedup: files of kept rows, groups and removals, and the words of its errors."""

import formats
import numpy as np
import pytest


@pytest.fixture
def vectors(tmp_path):
    chance = np.random.default_rng(3)
    rows = chance.standard_normal((200, 6)).astype(np.float32)
    rows[50:90] = rows[:40] + np.float32(1e-3)
    formats.write_vectors(tmp_path / "x.fbin", rows)
    return rows


def test_rows_that_stay(nearwise, tmp_path, vectors):
    result = nearwise("dedup", "x.fbin", "--similarity", "0.999", "-o", "kept.npy", "--groups", "groups.npy",
                      "--removed-by", "removed.nw", "--json")
    found = result.json
    kept = np.load(tmp_path / "kept.npy").ravel()
    assert found["kept"] == len(kept) == 160 and found["pairs"] == 40 and found["metric"] == "cosine"
    assert np.array_equal(kept, np.delete(np.arange(200), np.arange(50, 90)))
    groups = np.load(tmp_path / "groups.npy").ravel()
    assert np.array_equal(groups[50:90], np.arange(40)) and np.array_equal(groups[kept], kept)
    nearwise("convert", "removed.nw", "-o", "removed.npy")
    removed_by = np.load(tmp_path / "removed.npy").ravel()
    assert np.array_equal(removed_by[50:90], np.arange(40)) and (removed_by[kept] == -1).all()


def test_the_best_score_is_kept(nearwise, tmp_path, vectors):
    scores = np.arange(200, dtype=np.float32)[:, None]
    formats.write_vectors(tmp_path / "scores.fbin", scores)
    nearwise("dedup", "x.fbin", "--radius", "0.01", "--scores", "scores.fbin", "-o", "kept.npy")
    assert np.array_equal(np.load(tmp_path / "kept.npy").ravel(), np.arange(40, 200))


def test_the_sentence(nearwise, vectors):
    words = nearwise("dedup", "x.fbin", "--radius", "0.01", "--keep", "medoid", "--grouping", "connected", "-o", "kept.npy").err
    assert "wrote kept.npy: 160 of 200 vectors stay, 40 pairs of duplicates" in words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--similarity or --radius"),
        (["--similarity", "0.9", "--radius", "1"], "--radius"),
        (["--similarity", "0.9", "--metric", "euclidean"], "cosine or inner_product, got euclidean"),
        (["--radius", "1", "--scores", "x.fbin"], "200 vectors of one f32 element expected, got 200 of 6 f32"),
        (["--radius", "nan"], "nan"),
    ],
)
def test_wrong_arguments_are_named(nearwise, vectors, arguments, words):
    result = nearwise("dedup", "x.fbin", "-o", "kept.npy", *arguments, expect=2)
    assert words in result.err


def test_an_output_that_cannot_hold_rows(nearwise, vectors):
    result = nearwise("dedup", "x.fbin", "--radius", "1", "-o", "kept.bin", expect=2)
    assert "row numbers must go to" in result.err


@pytest.mark.parametrize(
    "outputs",
    [
        ("-o", "x.npy", "--groups", "./x.npy"),
        ("-o", "x.nw", "--removed-by", "folder/../x.nw"),
        ("-o", "x.npy", "--groups", "y.nw", "--removed-by", "{here}/y.nw"),
        ("-o", "x.npy", "--groups", "folder/dedup.nw", "--work", "folder", "--memory-limit", "64MiB"),
    ],
)
def test_outputs_that_are_one_file(nearwise, tmp_path, vectors, outputs):
    (tmp_path / "folder").mkdir()
    outputs = [word.format(here=tmp_path) for word in outputs]
    result = nearwise("dedup", "x.fbin", "--radius", "1", *outputs, expect=2)
    assert "outputs must be different files, '" in result.err and "' are the same" in result.err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "x.fbin"]
