"""nearwise join, and join and dedup over files: the bytes of a run in memory, whatever happens meanwhile."""

import random
import re
import shutil
import signal
import subprocess
import time

import formats
import numpy as np
import pytest

MEMORY = "19MiB"


def make_vectors(folder, rows=12_000, dim=8):
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((rows, dim)).astype(np.float32)
    copies = chance.permutation(rows)[: rows // 5]
    vectors[copies] = vectors[chance.permutation(rows)[: rows // 5]] + np.float32(1e-3)
    formats.write_vectors(folder / "x.fbin", vectors)


def over_files(verb, output, work="work"):
    return [verb, "x.fbin", "--similarity", "0.9999", "-o", output, "--work", work, "--memory-limit", MEMORY, "--threads", "1"]


def arrays(nearwise, path):
    """Every section but the metadata."""
    info = nearwise("info", path.name, "--json").json["files"][0]
    data = path.read_bytes()
    return {part["name"]: data[part["offset"] : part["offset"] + part["bytes"]] for part in info["sections"] if part["name"] != "metadata"}


def test_pairs(nearwise, tmp_path):
    make_vectors(tmp_path, rows=300)
    found = nearwise("join", "x.fbin", "--similarity", "0.9999", "-o", "pairs.nw", "--json").json
    assert found["pairs"] > 40 and found["metric"] == "cosine"
    assert "ok (container of pairs" in nearwise("verify", "pairs.nw").out
    told = nearwise("info", "pairs.nw", "--json").json["files"][0]
    assert (told["rows"], told["pairs"], told["format_version"]) == (300, found["pairs"], "1.5")
    assert f"wrote again.nw: {found['pairs']} pairs" in nearwise("join", "x.fbin", "--similarity", "0.9999", "-o", "again.nw").err
    assert ".nw" in nearwise("join", "x.fbin", "--radius", "1", "-o", "pairs.npy", expect=2).err


def test_everything_in_one_file(nearwise, tmp_path):
    make_vectors(tmp_path, rows=300)
    found = nearwise("dedup", "x.fbin", "--similarity", "0.9999", "-o", "dedup.nw", "--json").json
    told = nearwise("info", "dedup.nw", "--json").json["files"][0]
    assert (told["rows"], told["kept"]) == (300, found["kept"]) and told["metadata"]["keep"] == "first"
    nearwise("verify", "dedup.nw")


@pytest.mark.parametrize("verb", ["join", "dedup"])
def test_plan_is_told(nearwise, tmp_path, verb):
    make_vectors(tmp_path)
    call = ["plan", verb, "x.fbin", "--similarity", "0.9999", "--memory-limit", MEMORY]
    stages = ["input", "join", "finish", "all"] + (["sides"] if verb == "dedup" else [])
    assert all(f"\n{stage} " in nearwise(*call).out for stage in stages)
    told = nearwise(*call, "--json").json
    names = [task["name"] for task in told["tasks"]]
    joins = [task for task in told["tasks"] if task["name"].startswith("join-")]
    assert len(joins) > 3 and names[0] == "input" and names[-1] == "finish"
    for task in told["tasks"]:
        assert set(task["after"]) <= set(names[: names.index(task["name"])])
        assert task["memory_bytes"] <= 19 << 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.fbin"]


@pytest.mark.parametrize("verb", ["join", "dedup"])
def test_files_give_what_memory_gives(nearwise, tmp_path, verb):
    make_vectors(tmp_path)
    nearwise(verb, "x.fbin", "--similarity", "0.9999", "-o", "memory.nw")
    told = nearwise(*over_files(verb, "files.nw"), "--json").json
    assert told["tasks"]["done"] > 5 and told["pairs"] > 1000 and told["memory_peak_bytes"] <= 19 << 20
    assert arrays(nearwise, tmp_path / "files.nw") == arrays(nearwise, tmp_path / "memory.nw")
    again = nearwise(*over_files(verb, "files.nw"), "--json").json
    assert again["tasks"] == {"done": 0, "done_before": 1, "not_needed": 0, "repaired": 0}
    assert [path.name for path in (tmp_path / "work").iterdir() if path.suffix == ".nw"] == ["input.nw"]


@pytest.mark.parametrize("verb", ["join", "dedup"])
def test_methods_give_the_same(nearwise, tmp_path, verb):
    make_vectors(tmp_path)
    plan = ["plan", verb, "x.fbin", "--similarity", "0.9999", "--memory-limit", MEMORY, "--method"]
    assert re.search(r"Complete by \d\d+ partitions: ", nearwise(*plan, "partitions").out)
    assert "Complete by all pairs: " in nearwise(*plan, "auto").out  # so few vectors
    bytes_of = {}
    for method in ("pairs", "partitions"):
        told = nearwise(*over_files(verb, f"{method}.nw", method), "--method", method, "--json").json
        assert told["method"] == method and told["guarantee"] == "complete"
        assert (told["copies"] is None) == (method == "pairs")
        bytes_of[method] = (tmp_path / f"{method}.nw").read_bytes()
    assert 1 <= told["copies"] < 3 and abs(told["copies"] / told["predicted_copies"] - 1) < 0.1
    assert bytes_of["pairs"] == bytes_of["partitions"]


def test_rows_in_files_of_their_own(nearwise, tmp_path):
    make_vectors(tmp_path)
    formats.write_vectors(tmp_path / "scores.fbin", np.arange(12_000, dtype=np.float32)[:, None])
    options = ["dedup", "x.fbin", "--similarity", "0.9999", "--scores", "scores.fbin", "--grouping", "connected"]
    outputs = ["kept.npy", "groups.npy", "removed.ivecs"]
    for folder, more in (("memory", []), ("files", ["--work", "work", "--memory-limit", MEMORY])):
        (tmp_path / folder).mkdir()
        names = [f"{folder}/{name}" for name in outputs]
        nearwise(*options, "-o", names[0], "--groups", names[1], "--removed-by", names[2], *more)
    for name in outputs:
        assert (tmp_path / "memory" / name).read_bytes() == (tmp_path / "files" / name).read_bytes()


@pytest.mark.parametrize("verb", ["join", "dedup"])
def test_killed_at_random_moments(nearwise, start, tmp_path, verb):
    make_vectors(tmp_path)
    begun = time.monotonic()
    nearwise(*over_files(verb, "whole.nw", "whole"))
    longest_wait = (time.monotonic() - begun) / 2
    chance = random.Random(11)
    kills = 0
    while kills < 6:
        process = start(*over_files(verb, "result.nw"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, longest_wait))
        process.send_signal(signal.SIGKILL)
        if process.wait(timeout=60) == 0:
            # Faster than the whole run was: from the beginning, with shorter waits.
            shutil.rmtree(tmp_path / "work")
            (tmp_path / "result.nw").unlink()
            longest_wait /= 2
            continue
        kills += 1
    nearwise(*over_files(verb, "result.nw"))
    assert (tmp_path / "result.nw").read_bytes() == (tmp_path / "whole.nw").read_bytes()
    assert not [path for path in (tmp_path / "work").iterdir() if path.name.endswith(".tmp")]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--radius", "1", "--work", "work"], 2, "needs --memory-limit"),
        (["--radius", "1", "--work", "work", "--memory-limit", "1MiB"], 71, "suffice"),
        (["--radius", "1", "--keep-work"], 2, "--work"),
        (["--work", "work", "--memory-limit", MEMORY], 2, "--similarity or --radius"),
        (["--radius", "1", "--method", "pairs"], 2, "needs --work"),
    ],
)
@pytest.mark.parametrize("verb", ["join", "dedup"])
def test_refusals(nearwise, tmp_path, verb, arguments, code, words):
    make_vectors(tmp_path, rows=300)
    assert words in nearwise(verb, "x.fbin", "-o", "result.nw", *arguments, expect=code).err
