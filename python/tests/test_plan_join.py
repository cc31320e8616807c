"""Joins and the removal of near-duplicates over files, against the same in memory."""

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nearwise

LIMIT = "19MiB"


@pytest.fixture
def rows(tmp_path):
    chance = np.random.default_rng(5)
    rows = chance.standard_normal((9000, 8)).astype(np.float32)
    rows[chance.permutation(9000)[:2000]] = rows[chance.permutation(9000)[:2000]] + np.float32(1e-3)
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)
    return rows


def same(found, expected):
    return type(found) is type(expected) and all(
        np.array_equal(one, other) for one, other in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("options", [{"similarity": 0.9999}, {"radius": 0.01}, {"radius": 15.0, "metric": "ip"}])
def test_a_file_gives_the_pairs_of_an_array(rows, tmp_path, options):
    expected = nearwise.threshold_join(rows, **options)
    assert len(expected.ids) > 500
    work, output = tmp_path / "work", tmp_path / "pairs.nw"
    found = nearwise.threshold_join(tmp_path / "rows.fbin", work=work, output=output, memory_limit=LIMIT, **options)
    assert same(found, expected)
    assert same(nearwise.load(output), expected) and same(nearwise.load(output, nearwise.RangeNeighbors), expected)
    assert [path.name for path in work.glob("*.nw")] == ["input.nw"]


@pytest.mark.parametrize("grouping", ["star", "connected"])
@pytest.mark.parametrize("keep", ["first", "medoid", "scores"])
def test_a_file_gives_the_deduplication_of_an_array(rows, tmp_path, keep, grouping):
    options = {
        "similarity": 0.9999,
        "grouping": grouping,
        "keep": np.arange(9000) % 13 if keep == "scores" else keep,
    }
    expected = nearwise.dedup(rows, **options)
    work, output = tmp_path / "work", tmp_path / "dedup.nw"
    for _ in range(2):
        found = nearwise.dedup(str(tmp_path / "rows.fbin"), work=work, output=output, memory_limit=LIMIT, **options)
        assert same(found, expected) and found.pairs > 500
    assert nearwise.inspect(output).metadata["keep"] == ("scored" if keep == "scores" else keep)
    with pytest.raises(TypeError, match="expected a RangeNeighbors, the file holds a Deduplication"):
        nearwise.load(output, nearwise.RangeNeighbors)


def test_progress_is_told_and_tasks_can_run_elsewhere(rows, tmp_path):
    reports = []
    plan = nearwise.plan_dedup(
        tmp_path / "rows.fbin", tmp_path / "work", tmp_path / "dedup.nw", radius=0.01, memory_limit=LIMIT,
        keep=np.arange(9000.0),
    )  # fmt: skip
    kinds = [task.name.partition("-")[0] for task in plan.tasks]
    assert kinds.count("join") > 3 and kinds.count("sides") > 1
    other = pickle.loads(pickle.dumps(plan))
    assert other.run_task("input") == "done" and plan.is_done("input")
    plan.run(progress=lambda done, total: reports.append((done, total)))
    assert reports and reports[-1][0] == reports[-1][1]
    assert same(plan.load(), nearwise.dedup(rows, radius=0.01, keep=np.arange(9000.0)))


@pytest.mark.parametrize("options", [{"similarity": 0.9999}, {"radius": 0.01}])
def test_methods_give_the_same_bytes(rows, tmp_path, options):
    path = tmp_path / "rows.fbin"
    for function, name in ((nearwise.plan_threshold_join, "pairs"), (nearwise.plan_dedup, "dedup")):
        results = {}
        for method in ("pairs", "partitions", None):
            output = tmp_path / f"{name}-{method}.nw"
            plan = function(path, tmp_path / f"{name}-{method}", output, method=method, memory_limit=LIMIT, **options)
            plan.run()
            results[method] = output.read_bytes()
            report = plan.join_report()
            assert report.method == (method or "pairs")  # so few vectors
            if method == "partitions":
                assert report.partitions > 1 and report.copies == pytest.approx(report.predicted_copies, rel=0.05)
                assert report.comparisons < 9000 * 8999 / 2
            else:
                assert report == ("pairs", 0, 1, 9000 * 8999 / 2, None, None)
        assert results["pairs"] == results["partitions"] == results[None]
    found = nearwise.dedup(
        path, work=tmp_path / "work", output=tmp_path / "out.nw", method="partitions", memory_limit=LIMIT, **options
    )
    assert same(found, nearwise.dedup(rows, **options))


def test_wrong_methods_are_refused(rows, tmp_path):
    path, work, output = tmp_path / "rows.fbin", tmp_path / "work", tmp_path / "out.nw"
    with pytest.raises(ValueError, match="method: expected one of auto, partitions, pairs, got 'cells'"):
        nearwise.plan_dedup(path, work, output, radius=1, method="cells", memory_limit=LIMIT)
    with pytest.raises(ValueError, match="method partitions needs a distance, got the metric inner_product"):
        nearwise.plan_dedup(path, work, output, radius=1, metric="ip", method="partitions", memory_limit=LIMIT)
    with pytest.raises(ValueError, match="got an array"):
        nearwise.dedup(rows, radius=1, method="partitions")
    with pytest.raises(nearwise.Error, match="expected one of a join or a deduplication"):
        nearwise.plan_graph(path, work, output, memory_limit="64MiB").join_report()


PROGRAM = """
import sys, nearwise
nearwise.dedup("rows.fbin", similarity=0.9999, keep="medoid", work="work", output="dedup.nw", memory_limit="19MiB",
               method=sys.argv[1], threads=1)
"""


@pytest.mark.parametrize("method", ["pairs", "partitions"])
def test_a_killed_process_is_resumed(rows, tmp_path, method):
    chance, waited = np.random.default_rng(1), 0.2
    place = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(Path(nearwise._core.__file__).parents[1])}}
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, method], **place)
        time.sleep(chance.uniform(0.1, 0.1 + waited))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
        waited += 0.1
    subprocess.run([sys.executable, "-c", PROGRAM, method], check=True, **place)
    found = nearwise.load(tmp_path / "dedup.nw", nearwise.Deduplication)
    assert same(found, nearwise.dedup(rows, similarity=0.9999, keep="medoid"))


@pytest.mark.parametrize("function", [nearwise.threshold_join, nearwise.dedup])
def test_what_is_missing_is_named(rows, tmp_path, function):
    path = tmp_path / "rows.fbin"
    with pytest.raises(ValueError, match=r"needs work=, output= and memory_limit=; nearwise.read_vectors"):
        function(path, radius=1)
    with pytest.raises(ValueError, match="memory limit"):
        function(path, radius=1, work=tmp_path / "work", output=tmp_path / "out.nw")
    with pytest.raises(ValueError, match="got an array"):
        function(rows, radius=1, work=tmp_path / "work")
    with pytest.raises(TypeError, match="one of the two"):
        function(path, work=tmp_path / "work", output=tmp_path / "out.nw", memory_limit=LIMIT)
