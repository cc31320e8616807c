"""Every exit code of docs/reference/command-line.md, produced. 130 is in test_interrupt.py; 70 is a mistake of ours."""
import json
import os
import resource
import subprocess
from functools import partial

import formats
import numpy as np
import pytest

from conftest import program

KNN = ["knn", "base.fbin", "queries.fbin"]
GRAPH = ["knn", "base.fbin", "--exclude-self"]

# arguments, exit code, error code in JSON, what the message mentions
CASES = [
    (["--help"], 0, None, ""),
    (["--version"], 0, None, ""),
    (["knn", "--help"], 0, None, ""),
    (KNN, 0, None, ""),
    ([], 2, "usage", "expected a command"),
    (["dance"], 2, "usage", "dance"),
    (["knn"], 2, "usage", "base"),
    (["knn", "base.fbin"], 2, "invalid_argument", "queries"),
    ([*KNN, "--exclude-self"], 2, "invalid_argument", "--exclude-self"),
    ([*GRAPH, "--limit-queries", "3"], 2, "usage", "--exclude-self"),
    ([*GRAPH, "-k", "200"], 2, "invalid_argument", "199 other vectors"),
    ([*KNN, "--colour", "red"], 2, "usage", "--colour"),
    ([*KNN, "-k", "0"], 2, "usage", "at least 1"),
    ([*KNN, "-k", "-3"], 2, "usage", "-k"),
    ([*KNN, "-k", "1.5"], 2, "usage", "1.5"),
    ([*KNN, "-k", "99999999999999999999999"], 2, "usage", "99999999999999999999999"),
    ([*KNN, "-k", "201"], 2, "invalid_argument", "200"),
    ([*KNN, "--metric", "manhattan"], 2, "usage", "sqeuclidean"),
    ([*KNN, "--memory-limit", "much"], 2, "usage", "2GiB"),
    ([*KNN, "--device", "abacus"], 2, "invalid_argument", "abacus"),
    ([*KNN, "--isa", "mmx"], 2, "invalid_argument", "mmx"),
    ([*KNN, "--threads", "1000000"], 2, "invalid_argument", "threads"),
    ([*KNN, "-o", "found.txt"], 2, "invalid_argument", ".ivecs"),
    (["knn", "base.txt", "queries.fbin"], 2, "invalid_argument", ".fbin"),
    (["knn", "ids.npy", "ids.npy", "-k", "1", "-o", "ids.npy"], 2, "invalid_argument", "replace"),
    (["info", "base.txt"], 2, "invalid_argument", ".fbin"),
    (["convert", "base.txt", "-o", "out.fbin"], 2, "invalid_argument", ".fbin"),
    (["knn", "base.fbin", "narrow.fbin"], 2, "invalid_argument", "dimension"),
    (["knn", "short.fbin", "queries.fbin"], 65, "corrupt", "short.fbin"),
    (["knn", "nan.fbin", "queries.fbin"], 65, "invalid_data", "7"),
    (["knn", "base.fbin", "nan.fbin"], 65, "invalid_data", "7"),
    (["knn", "nan.fbin", "--exclude-self"], 65, "invalid_data", "7"),
    (["eval", "bad.nw", "bad.nw"], 65, "corrupt", "bad.nw"),
    (["convert", "base.fbin", "-o", "out.u8bin", "--type", "u8"], 65, "invalid_data", "row"),
    (["knn", "doubles.npy", "queries.fbin"], 65, "invalid_data", "doubles.npy"),
    (["convert", "doubles.npy", "-o", "out.fbin"], 65, "invalid_data", "doubles.npy"),
    (["info", "bad.nw"], 65, "corrupt", "bad.nw"),
    (["knn", "missing.fbin", "queries.fbin"], 66, "not_found", "missing.fbin"),
    (["knn", "missing.fbin", "--exclude-self"], 66, "not_found", "missing.fbin"),
    (["knn", "missing.fbin", "./missing.fbin", "--exclude-self"], 66, "not_found", "missing.fbin"),
    (["eval", "missing.nw", "missing.nw"], 66, "not_found", "missing.nw"),
    (["convert", "missing.npy", "-o", "out.fbin"], 66, "not_found", "missing.npy"),
    (["info", "missing.bin"], 66, "not_found", "missing.bin"),
    ([*KNN, "--device", "cuda:63"], 69, "unsupported", "cuda:63"),
    ([*KNN, "--memory-limit", "1KiB"], 71, "out_of_memory", "1 KiB"),
    ([*GRAPH, "--memory-limit", "1KiB"], 71, "out_of_memory", "1 KiB"),
    ([*KNN, "-o", "nowhere/found.nw"], 73, "cannot_create", "nowhere"),
    ([*KNN, "-o", "base.fbin/found.nw"], 73, "cannot_create", "base.fbin"),
    ([*KNN, "-o", "folder.nw"], 73, "cannot_create", "folder.nw"),
    (["convert", "base.fbin", "-o", "nowhere/out.fvecs"], 73, "cannot_create", "nowhere"),
]


@pytest.fixture
def files(small, tmp_path):
    base, _ = small
    formats.write_vectors(tmp_path / "narrow.fbin", base[:5, :7])
    base[7, 3] = np.nan
    formats.write_vectors(tmp_path / "nan.fbin", base)
    (tmp_path / "short.fbin").write_bytes((tmp_path / "base.fbin").read_bytes()[:-1])
    (tmp_path / "bad.nw").write_bytes(b"\x00" * 9000)
    np.save(tmp_path / "ids.npy", np.ones((20, 16), np.float32))
    np.save(tmp_path / "doubles.npy", np.ones((20, 16)))
    (tmp_path / "folder.nw").mkdir()


@pytest.mark.parametrize("arguments, code, name, mention", CASES,
                         ids=[f"{code}-{' '.join(arguments)}" for arguments, code, _, _ in CASES])
def test_exit_code(nearwise, files, tmp_path, arguments, code, name, mention):
    before = sorted(path.name for path in tmp_path.iterdir())
    result = nearwise(*arguments, expect=code)
    if code == 0:
        assert result.out and result.err == ""
        return
    assert result.out == "" and mention in result.err
    assert result.err.startswith("nearwise: ") and result.err.count("\n") == 1
    error = json.loads(nearwise(*arguments, "--json", expect=code).err)["error"]
    assert error["code"] == name and mention in error["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_stdout_that_cannot_be_written(nearwise, small):
    for arguments in (["--help"], ["info", "base.fbin"], [*KNN, "--json"]):
        with open("/dev/full", "w") as full:
            assert "standard output" in nearwise(*arguments, stdout=full, expect=74).err


def test_closed_standard_files(small, tmp_path):
    """What is written to a closed stdout must not end up in the output file, which would take its number."""
    command = " ".join(["exec", program(), *KNN, "-k 3 --json -o found.bin"])
    for closing, code in [("", 0), ("<&-", 0), ("2>&-", 0), (">&-", 74), ("<&- >&- 2>&-", 74)]:
        shell = subprocess.run(["sh", "-c", f"{command} {closing}"], cwd=tmp_path, capture_output=True)
        assert shell.returncode == code, (closing, shell)
        assert (tmp_path / "found.bin").stat().st_size == 8 + 20 * 3 * 8


def test_source_date_epoch_that_is_no_number(nearwise, small, tmp_path):
    for text in ("yesterday", "99999999999999999999", "9223372036854775807"):
        nearwise(*KNN, "-o", "found.nw", env={"SOURCE_DATE_EPOCH": text}, expect=2)
        assert not (tmp_path / "found.nw").exists()


@pytest.fixture
def small_disk(tmp_path):
    """A folder with room for 256 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "nearwise-test", folder],
                             capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("suffix", [".nw", ".bin", ".ivecs", ".ibin", ".npy"])
def test_full_disk(nearwise, small_disk, tmp_path, suffix):
    formats.write_vectors(tmp_path / "many.fbin", np.random.default_rng(1).random((4000, 2), dtype=np.float32))
    output = small_disk / ("found" + suffix)
    output.write_bytes(b"precious")
    result = nearwise("knn", "many.fbin", "many.fbin", "-k", 20, "-o", output, expect=74)
    assert "space" in result.err
    assert [path.name for path in small_disk.iterdir()] == [output.name]
    assert output.read_bytes() == b"precious"


def test_a_limit_on_the_size_of_files(nearwise, small, tmp_path):
    (tmp_path / "found.nw").write_bytes(b"precious")
    before = sorted(path.name for path in tmp_path.iterdir())
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (4096, 4096))
    result = nearwise(*KNN, "-o", "found.nw", preexec_fn=limit, expect=74)
    assert "File too large" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "found.nw").read_bytes() == b"precious"


def test_full_disk_in_a_conversion(nearwise, small_disk, tmp_path):
    formats.write_vectors(tmp_path / "many.fbin", np.ones((4000, 64), np.float32))
    nearwise("convert", "many.fbin", "-o", small_disk / "out.fvecs", expect=74)
    assert list(small_disk.iterdir()) == []


def test_a_disk_too_small_for_a_plan(nearwise, small_disk, tmp_path):
    formats.write_vectors(tmp_path / "many.fbin", np.random.default_rng(1).random((4000, 64), dtype=np.float32))
    call = ["plan", "index", "many.fbin", "--memory-limit", "64MiB", "--work", small_disk / "work"]
    result = nearwise(*call, expect=73)
    assert "bytes are needed on the disk of" in result.err
    assert "Needs about" in result.out and "256.0 KiB free" in result.out
    result = nearwise(*call, "--json", expect=73)
    assert result.json["disk_bytes"] > 256 << 10 >= result.json["disk_free_bytes"]
    assert list(small_disk.iterdir()) == []
