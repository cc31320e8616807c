"""nearwise plan, and build --work: killed at any moment, the same command resumes and ends with the same bytes."""
import json
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import formats
import numpy as np
import pytest

MEMORY = "40MiB"


def make_base(folder, rows, dim=8):
    formats.write_vectors(folder / "base.fbin",
                          np.random.default_rng(7).standard_normal((rows, dim)).astype(np.float32))


def build(output, work, way="partitions"):
    return ["graph", "build", "base.fbin", "-o", output, "--work", work, "--memory-limit", MEMORY, "--threads", "1", "--method", way]


WAYS = pytest.mark.parametrize("way", ["partitions", "pairs"])


def test_plan_is_told(nearwise, tmp_path):
    make_base(tmp_path, 24_000)
    table = nearwise("plan", "graph", "base.fbin", "--memory-limit", MEMORY).out
    for stage in ("input", "sample", "train", "assign", "build", "merge", "measure", "finish", "all"):
        assert f"\n{stage} " in table
    told = nearwise("plan", "graph", "base.fbin", "--memory-limit", MEMORY, "--json").json
    names = [task["name"] for task in told["tasks"]]
    assert len(set(names)) == len(names) and names[:2] == ["input", "sample"] and names[-1] == "finish"
    for task in told["tasks"]:
        assert set(task["after"]) <= set(names[: names.index(task["name"])])
        assert task["memory_bytes"] <= told["memory_bytes"] <= 40 << 20
    assert told["disk_bytes"] > 24_000 * 10 * 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.fbin"]


def test_plan_by_pairs_is_told(nearwise, tmp_path):
    make_base(tmp_path, 24_000)
    table = nearwise("plan", "graph", "base.fbin", "--memory-limit", MEMORY, "--method", "pairs").out
    for stage in ("input", "sample", "build", "merge", "measure", "finish", "all"):
        assert f"\n{stage} " in table
    told = nearwise("plan", "graph", "base.fbin", "--memory-limit", MEMORY, "--method", "pairs", "--json").json
    shards = sum(task["name"].startswith("build-") for task in told["tasks"])
    merges = [task for task in told["tasks"] if task["name"].startswith("merge-")]
    assert shards >= 3 and len(merges) == shards * (shards - 1) // 2
    # Every vector is read once with those of every other shard.
    assert sum(task["read_bytes"] for task in merges) >= (shards - 1) * 24_000 * 8 * 4


SIZES = [line.rsplit("|", 1) for line in (Path(__file__).parent / "sizes.txt").read_text().splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("text, size", SIZES)
def test_sizes(nearwise, tmp_path, text, size):
    make_base(tmp_path, 300)
    call = ["plan", "index", "base.fbin", "--lists", 2, f"--memory-limit={text}", "--json"]
    if size == "refused":
        nearwise(*call, expect=2)
    else:
        assert nearwise(*call).json["memory_limit_bytes"] == int(size)


@pytest.mark.parametrize("options", [["graph"], ["index"], ["index", "--kind", "graph"]])
def test_what_is_needed_is_told(nearwise, tmp_path, options):
    make_base(tmp_path, 24_000)
    call = ["plan", *options, "base.fbin", "--memory-limit", "100MiB", "--threads", 2, "--work", "work/of/mine"]
    told = nearwise(*call, "--json").json
    assert told["memory_limit_bytes"] == 100 << 20 and told["threads"] == 2
    assert told["disk_free_bytes"] > told["disk_bytes"]
    last = nearwise(*call).out.splitlines()[-1]
    assert re.fullmatch(r"Needs about \d+:\d\d on 2 threads, \d+\.\d [KM]iB of disk in work/of/mine \(\d+\.\d [MGT]iB free\), "
                        r"and up to \d+\.\d MiB of memory \(limit 100\.0 MiB; \d+\.\d MiB suffice\)\.", last)
    least = told["least_memory_bytes"]
    assert 1 << 20 < least < 100 << 20
    again = [least if word == "100MiB" else word for word in call]
    assert nearwise(*again, "--json").json["least_memory_bytes"] == least
    if options == ["index"]:
        nearwise(*[least - 1 if word == "100MiB" else word for word in call], expect=71)
    assert not (tmp_path / "work").exists()


@WAYS
def test_build_and_again(nearwise, tmp_path, way):
    make_base(tmp_path, 24_000)
    first = nearwise(*build("graph.nw", "work", way), "--keep-work", "--json").json
    assert first["method"] == way and first["reached"] and first["recall"]["low"] >= 0.95 and first["tasks"]["done_before"] == 0
    assert first["memory_peak_bytes"] <= 40 << 20
    nearwise("verify", "graph.nw")
    metadata = nearwise("info", "graph.nw", "--json").json["files"][0]["metadata"]
    assert metadata["provenance.command"] == ("nearwise graph build base.fbin --degree 10 --metric sqeuclidean "
                                              f"--target-recall 0.95 --method {way} --seed 0 --memory-limit {40 << 20} --work")
    # What the estimate of the disk was for.
    written = sum(path.stat().st_size for path in (tmp_path / "work").iterdir()) + (tmp_path / "graph.nw").stat().st_size
    told = nearwise("plan", "graph", "base.fbin", "--memory-limit", MEMORY, "--method", way, "--json").json
    assert written <= told["disk_bytes"]
    evaluated = nearwise("graph", "eval", "graph.nw", "base.fbin", "--seed", 5, "--json").json
    assert evaluated["recall"]["high"] >= 0.95
    whole = (tmp_path / "graph.nw").read_bytes()
    (tmp_path / "work" / "notes.txt").write_text("not of the plan")
    # As if somebody had been killed while he removed the files.
    next(path for path in work_files(tmp_path / "work") if path.name != "input.nw").unlink()
    for _ in range(2):
        again = nearwise(*build("graph.nw", "work", way), "--json").json
        assert again["tasks"] == {"done": 0, "done_before": 1, "not_needed": 0, "repaired": 0}
        assert again["recall"] == first["recall"]
        assert [path.name for path in work_files(tmp_path / "work")] == ["input.nw"]
    assert (tmp_path / "work" / "notes.txt").exists() and (tmp_path / "graph.nw").read_bytes() == whole
    # Without the result it is made again.
    (tmp_path / "graph.nw").unlink()
    result = nearwise(*build("graph.nw", "work", way))
    assert "removed the intermediate files in work" in result.err and (tmp_path / "graph.nw").read_bytes() == whole
    assert "--work" in nearwise("graph", "build", "base.fbin", "-o", "x.nw", "--keep-work", expect=2).err


@pytest.mark.parametrize("arguments, code, words", [
    (["--work", "work"], 2, "needs --memory-limit"),
    (["--work", "work", "--memory-limit", "1MiB"], 71, "would suffice"),
    (["--work", "work", "--memory-limit", MEMORY, "--target-recall", "1"], 2, "below 1"),
    (["--work", "base.fbin/work", "--memory-limit", MEMORY], 73, "base.fbin"),
    (["--work", "work", "--memory-limit", MEMORY, "--method", "couples"], 2, "partitions, pairs"),
    (["--method", "pairs"], 2, "needs --work"),
])
def test_refusals(nearwise, tmp_path, arguments, code, words):
    make_base(tmp_path, 2000)
    assert words in nearwise("graph", "build", "base.fbin", "-o", "graph.nw", *arguments, expect=code).err


def test_the_folder_of_another_build_is_refused(nearwise, tmp_path):
    make_base(tmp_path, 2000)
    nearwise(*build("graph.nw", "work"))
    refused = nearwise(*build("graph.nw", "work"), "--degree", 5, expect=65).err
    assert "belongs to another plan" in refused and "degree is 10 there and 5 here" in refused


def manifest(work):
    path = work / "manifest"
    # A killed writer leaves an incomplete line.
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [json.loads(line.split("\t")[0]) for line in lines]


def records(work):
    """Tasks that are recorded as done."""
    return sum("task" in record for record in manifest(work))


def work_files(work):
    return [path for path in work.iterdir() if path.suffix == ".nw"]


@pytest.mark.parametrize("blow, way", [(signal.SIGKILL, "partitions"), (signal.SIGINT, "partitions"),
                                       (signal.SIGKILL, "pairs")])
def test_killed_at_random_moments(nearwise, start, tmp_path, blow, way):
    make_base(tmp_path, 30_000)
    begun = time.monotonic()
    nearwise(*build("whole.nw", "whole", way))
    longest_wait = (time.monotonic() - begun) / 3
    chance = random.Random(11)
    work = tmp_path / "work"
    moments = []
    while len(moments) < 6:
        before = records(work)
        process = start(*build("graph.nw", "work", way), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0, longest_wait))
        process.send_signal(blow)
        if process.wait(timeout=60) == 0:
            # Faster than the whole build was: from the beginning, with shorter waits.
            shutil.rmtree(work)
            (tmp_path / "graph.nw").unlink()
            longest_wait /= 2
            continue
        moments.append((before, records(work)))
    # Nothing that was recorded is lost.
    assert all(before <= after for before, after in moments)
    recorded = records(work)
    told = nearwise(*build("graph.nw", "work", way), "--json").json
    assert (tmp_path / "graph.nw").read_bytes() == (tmp_path / "whole.nw").read_bytes()
    if told["tasks"]["done"]:
        # All that was recorded is not done again.
        assert told["tasks"]["done_before"] == recorded
    names = [record["task"] for record in manifest(work) if "task" in record]
    assert len(set(names)) == len(names)
    # Outputs that were being written are swept.
    assert not [path for path in work.iterdir() if path.name.endswith(".tmp")]


def flip_a_bit(path, random):
    data = bytearray(path.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    path.write_bytes(data)


@WAYS
def test_what_is_damaged_is_made_again(nearwise, tmp_path, way):
    make_base(tmp_path, 24_000)
    command = [*build("graph.nw", "work", way), "--keep-work", "--json"]
    nearwise(*command)
    whole = (tmp_path / "graph.nw").read_bytes()
    draws = random.Random(way)
    files = sorted((tmp_path / "work").glob("*.nw"))
    for damaged in [*draws.sample(files, 6), tmp_path / "work" / "manifest", tmp_path / "graph.nw"]:
        # Without the last files the tasks that wrote them read the damaged one.
        for lost in draws.sample(files, len(files) // 2):
            if lost != damaged:
                lost.unlink(missing_ok=True)
        if damaged.name != "graph.nw":
            (tmp_path / "graph.nw").unlink()
        flip_a_bit(damaged, draws)
        told = nearwise(*command).json
        assert told["tasks"]["done"] >= 1, damaged
        assert (tmp_path / "graph.nw").read_bytes() == whole, damaged
        nearwise("verify", "graph.nw")


def test_plan_of_an_index_is_told_and_done(nearwise, tmp_path):
    make_base(tmp_path, 24_000)
    options = ["--memory-limit", "48MiB", "--lists", "30", "--code-bytes", "4"]
    table = nearwise("plan", "index", "base.fbin", "--work", "work", *options).out
    for stage in ("input", "train", "add", "gather", "finish", "all"):
        assert f"\n{stage} " in table
    told = nearwise("plan", "index", "base.fbin", "--work", "work", *options, "--json").json
    assert [task["name"] for task in told["tasks"]] == ["input", "train", "add-0000", "gather", "finish"]
    assert not (tmp_path / "work").exists()
    first = nearwise("index", "build", "base.fbin", "-o", "index.nw", "--work", "work", *options, "--json").json
    assert first["tasks"] == {"done": 5, "done_before": 0, "not_needed": 0, "repaired": 0}
    assert first["memory_peak_bytes"] <= 48 << 20
    nearwise("verify", "index.nw")
    before = (tmp_path / "index.nw").read_bytes()
    again = nearwise("index", "build", "base.fbin", "-o", "index.nw", "--work", "work", *options, "--json").json
    assert again["tasks"]["done"] == 0 and (tmp_path / "index.nw").read_bytes() == before
    assert [path.name for path in work_files(tmp_path / "work")] == ["input.nw"]
    metadata = nearwise("info", "index.nw", "--json").json["files"][0]["metadata"]
    assert metadata["provenance.command"] == (
        "nearwise index build base.fbin --codec pq --lists 30 --code-bytes 4 --vectors keep --iterations 10 "
        f"--metric sqeuclidean --target-recall 0.9 --seed 0 --memory-limit {48 << 20} --work")
    assert metadata["provenance.version"].startswith("nearwise ") and "provenance.time" not in metadata
    # Without the folder, in memory: the same answers.
    nearwise("index", "build", "base.fbin", "-o", "other.nw", *options)
    for index in ("index", "other"):
        nearwise("index", "search", f"{index}.nw", "base.fbin", "-k", "3", "-o", f"{index}.ibin")
    assert (tmp_path / "index.ibin").read_bytes() == (tmp_path / "other.ibin").read_bytes()


@pytest.mark.parametrize("command", [
    "graph build base.fbin --degree 10 --metric sqeuclidean --target-recall 0.95 --method partitions",
    "index build base.fbin --kind graph --degree 16 --metric sqeuclidean --target-recall 0.9",
])
def test_the_recorded_command_writes_the_same_bytes_again(nearwise, tmp_path, command):
    make_base(tmp_path, 3000)
    time = {"SOURCE_DATE_EPOCH": "86400"}
    nearwise(*command.split(), "--memory-limit", "48MiB", "--threads", 1, "--work", "work", "-o", "first.nw", env=time)
    metadata = nearwise("info", "first.nw", "--json").json["files"][0]["metadata"]
    assert metadata["provenance.time"] == "1970-01-02T00:00:00Z"
    recorded = metadata["provenance.command"]
    assert recorded == f"nearwise {command} --seed 0 --memory-limit {48 << 20} --work"
    nearwise(*recorded.split()[1:], "more", "-o", "again.nw", env=time)
    assert (tmp_path / "again.nw").read_bytes() == (tmp_path / "first.nw").read_bytes()


def test_an_index_over_files_needs_a_limit_and_measures(nearwise, tmp_path):
    make_base(tmp_path, 1000)
    work = ["index", "build", "base.fbin", "-o", "index.nw", "--work", "work"]
    assert "a build over files needs --memory-limit" in nearwise(*work, expect=2).err
    assert "--probes cannot be combined with --work" in nearwise(*work, "--memory-limit", "48MiB", "--probes", "3", expect=2).err
    assert "too small" in nearwise(*work, "--memory-limit", "1MiB", expect=71).err
