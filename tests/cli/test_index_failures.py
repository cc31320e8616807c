"""Failures of nearwise index: exit codes, messages, interrupts, and files that stay unchanged."""
import json
import signal
import time

import formats
import numpy as np
import pytest

from conftest import without_progress

ROWS, DIM = 1200, 16

SEARCH = ["index", "search", "index.nw", "queries.fbin"]
CASES = [
    (["index", "build"], 2, "usage", "base"),
    (["index", "build", "rows.fbin"], 2, "usage", "--output"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--codec", "zip"], 2, "usage", "flat"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--bits", "5"], 2, "usage", "one of 4, 8"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--codec", "flat", "--code-bytes", "8"], 2, "invalid_argument", "--codec pq"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--lists", "0"], 2, "usage", "at least 1"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--lists", "1201"], 2, "invalid_argument", "1200 vectors"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--lists", "4", "--probes", "5"], 2, "invalid_argument", "4 lists"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--probes", "1000"], 2, "invalid_argument", "lists"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--code-bytes", "17"], 2, "invalid_argument", "16 dimensions"),
    (["index", "build", "queries.fbin", "-o", "x.nw"], 2, "invalid_argument", "256 training vectors"),
    (["index", "build", "rows.fbin", "-o", "x.fbin"], 2, "invalid_argument", ".nw"),
    (["index", "build", "nan.fbin", "-o", "x.nw"], 65, "invalid_data", "row 7"),
    (["index", "build", "missing.fbin", "-o", "x.nw"], 66, "not_found", "missing.fbin"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--memory-limit", "1KiB"], 71, "out_of_memory", "1 KiB"),
    (["index", "build", "rows.fbin", "-o", "nowhere/x.nw"], 73, "cannot_create", "nowhere"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--device", "cuda:63"], 69, "unsupported", "cuda:63"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--target-recall", "0"], 2, "usage", "--target-recall"),
    (["index", "build", "rows.fbin", "-o", "x.nw", "--target-recall", "0.8", "--probes", "2"], 2, "usage", "--probes"),
    (["index", "calibrate", "index.nw", "rows.fbin"], 2, "usage", "--output"),
    (["index", "calibrate", "index.nw", "rows.fbin", "-o", "x.nw", "--target-recall", "1.5"], 2, "usage", "at most 1"),
    (["index", "calibrate", "index.nw", "queries.fbin", "-o", "x.nw"], 2, "invalid_argument", "a vector for every id"),
    (["index", "calibrate", "index.nw", "narrow.fbin", "-o", "x.nw"], 2, "invalid_argument", "dimension"),
    (["index", "calibrate", "index.nw", "rows.fbin", "-o", "x.nw", "--memory-limit", "1KiB"], 71, "out_of_memory", "1 KiB"),
    (["index", "calibrate", "result.nw", "rows.fbin", "-o", "x.nw"], 2, "invalid_argument", "neighbors"),
    (["index", "add", "index.nw", "rows.fbin"], 2, "usage", "--output"),
    (["index", "add", "index.nw", "narrow.fbin", "-o", "x.nw"], 2, "invalid_argument", "dimension"),
    (["index", "add", "index.nw", "rows.u8bin", "-o", "x.nw"], 2, "invalid_argument", "the element type of the training, f32, got u8"),
    (["index", "add", "index.nw", "rows.fbin", "--ids", "ids.txt", "-o", "x.nw"], 2, "invalid_argument", "one id per vector"),
    (["index", "add", "index.nw", "rows.fbin", "--ids", "rows.fbin", "-o", "x.nw"], 2, "invalid_argument", ".txt"),
    (["index", "add", "index.nw", "rows.fbin", "--ids", "ids.txt", "--first-id", "3", "-o", "x.nw"], 2, "usage", "--ids"),
    (["index", "add", "index.nw", "rows.fbin", "--first-id", "9223372036854775000", "-o", "x.nw"], 2, "invalid_argument", "ids"),
    (["index", "add", "index.nw", "nan.fbin", "-o", "x.nw"], 65, "invalid_data", "row 7, column 3"),
    (["index", "add", "index.nw", "nan.fbin", "-o", "index.nw"], 65, "invalid_data", "row 7, column 3"),
    (["index", "add", "missing.nw", "rows.fbin", "-o", "x.nw"], 66, "not_found", "missing.nw"),
    (["index", "add", "rows.fbin", "rows.fbin", "-o", "x.nw"], 2, "invalid_argument", ".nw"),
    (["index", "add", "result.nw", "rows.fbin", "-o", "x.nw"], 2, "invalid_argument", "neighbors"),
    (["index", "remove", "index.nw", "-o", "x.nw"], 2, "usage", "ids is required"),
    (["index", "remove", "index.nw", "words.txt", "-o", "x.nw"], 65, "invalid_data", "line 2"),
    (["index", "remove", "index.nw", "negative.txt", "-o", "x.nw"], 65, "invalid_data", "-4"),
    (["index", "remove", "index.nw", "missing.txt", "-o", "x.nw"], 66, "not_found", "missing.txt"),
    (["index", "merge", "index.nw", "-o", "x.nw"], 2, "invalid_argument", "at least 2 indexes"),
    (["index", "merge", "index.nw", "stranger.nw", "-o", "x.nw"], 2, "invalid_argument", "stranger.nw"),
    (["index", "merge", "index.nw", "bad.nw", "-o", "x.nw"], 65, "corrupt", "bad.nw"),
    (["index", "merge", "index.nw", "result.nw", "-o", "x.nw"], 2, "invalid_argument", "neighbors"),
    (["index", "merge", "index.nw", "missing.nw", "-o", "x.nw"], 66, "not_found", "missing.nw"),
    (["index", "merge", "rows.fbin", "index.nw", "-o", "x.nw"], 2, "invalid_argument", ".nw"),
    ([*SEARCH, "--probes", "9"], 2, "invalid_argument", "8 lists"),
    ([*SEARCH, "-k", "0"], 2, "usage", "at least 1"),
    ([*SEARCH, "--candidates", "20", "--codes-only"], 2, "usage", "--codes-only"),
    ([*SEARCH, "--rerank", "rows.fbin", "--candidates", "9"], 2, "invalid_argument", "k = 10"),
    ([*SEARCH, "--rerank", "queries.fbin"], 2, "invalid_argument", "a vector for every id"),
    ([*SEARCH, "--rerank", "narrow.fbin"], 2, "invalid_argument", "dimension"),
    ([*SEARCH, "-o", "index.nw"], 2, "invalid_argument", "replace"),
    ([*SEARCH, "-o", "found.txt"], 2, "invalid_argument", ".ivecs"),
    (["index", "search", "index.nw", "narrow.fbin"], 2, "invalid_argument", "dimension"),
    (["index", "search", "index.nw", "nan.fbin"], 65, "invalid_data", "row 7, column 3"),
    (["index", "search", "result.nw", "queries.fbin"], 2, "invalid_argument", "neighbors"),
    (["index", "search", "missing.nw", "queries.fbin"], 66, "not_found", "missing.nw"),
    ([*SEARCH, "--memory-limit", "1KiB"], 71, "out_of_memory", "1.0 KiB"),
    ([*SEARCH, "--memory-limit", "10KiB"], 71, "out_of_memory", "memory"),
]


@pytest.fixture(scope="module")
def broken_files(tmp_path_factory):
    """What every case of CASES looks at, made once."""
    folder = tmp_path_factory.mktemp("cases")
    rows = np.random.default_rng(2).standard_normal((ROWS, DIM), dtype=np.float32)
    formats.write_vectors(folder / "rows.fbin", rows)
    formats.write_vectors(folder / "rows.u8bin", rows.clip(0, 5).astype(np.uint8))
    formats.write_vectors(folder / "queries.fbin", rows[:30])
    formats.write_vectors(folder / "narrow.fbin", rows[:, :7])
    damaged = rows[:400].copy()
    damaged[7, 3] = np.nan
    formats.write_vectors(folder / "nan.fbin", damaged)
    (folder / "bad.nw").write_bytes(b"\x00" * 9000)
    (folder / "ids.txt").write_text("1\n2\n")
    (folder / "words.txt").write_text("1\ntwo\n")
    (folder / "negative.txt").write_text("1\n-4\n")
    return folder


@pytest.fixture
def cases(broken_files, nearwise):
    if not (broken_files / "index.nw").exists():
        for name, seed in (("index.nw", 0), ("stranger.nw", 1)):
            nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 8, "--seed", seed, "-o", name, cwd=broken_files)
        nearwise("knn", "rows.fbin", "queries.fbin", "-o", "result.nw", cwd=broken_files)
    return broken_files


@pytest.mark.parametrize("arguments, code, name, mention", CASES,
                         ids=[f"{code}-{' '.join(arguments)}" for arguments, code, _, _ in CASES])
def test_exit_codes(nearwise, cases, arguments, code, name, mention):
    def state():
        return {path.name: path.read_bytes() for path in cases.iterdir()}

    before = state()
    result = nearwise(*arguments, expect=code, cwd=cases)
    assert result.out == "" and mention in result.err
    assert result.err.startswith("nearwise: ") and result.err.count("\n") == 1
    error = json.loads(nearwise(*arguments, "--json", expect=code, cwd=cases).err)["error"]
    assert error["code"] == name and mention in error["message"]
    assert state() == before


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """100 MB: work of many seconds."""
    path = tmp_path_factory.mktemp("large") / "rows.fbin"
    rows = np.random.default_rng(1).standard_normal((2000, 128), dtype=np.float32)
    formats.write_vectors(path, np.tile(rows, (100, 1)) + np.arange(200_000, dtype=np.float32)[:, None] / 1e5)
    yield path
    path.unlink()


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_build_leaves_nothing(start, large, tmp_path, number, code):
    process = start("index", "build", large, "--lists", 4000, "--training-rows", 200_000, "--threads", 1, "-o", "index.nw")
    time.sleep(1)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=5) == code
    out, err = process.communicate()
    assert out == b"" and without_progress(err) == b"nearwise: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_search_and_addition(start, nearwise, large, tmp_path):
    formats.write_vectors(tmp_path / "sample.fbin", np.random.default_rng(1).standard_normal((5000, 128), dtype=np.float32))
    nearwise("index", "build", "sample.fbin", "--codec", "flat", "--lists", 2000, "--iterations", 1, "-o", "index.nw")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    slow = ["--threads", 1, "--isa", nearwise("info", "--json").json["instruction_sets"][-1]]
    for arguments in (["index", "add", "index.nw", large, "-o", "index.nw"],
                      ["index", "search", "index.nw", large, "--probes", 2000, "-o", "found.nw"]):
        process = start(*arguments, *slow)
        time.sleep(0.7)
        assert process.poll() is None, arguments
        process.send_signal(signal.SIGINT)
        process.wait(timeout=20)
        assert process.returncode == 130
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
