"""The logger `nearwise`: silent by default; warnings, choices and copies for who asks."""

import logging
import subprocess
import sys

import nearwise
import numpy as np
import pytest

ROWS = np.random.default_rng(4).standard_normal((2000, 16), dtype=np.float32)


def records(caplog, level):
    return [each.getMessage() for each in caplog.records if each.name == "nearwise" and each.levelno == level]


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, logger="nearwise")
    return caplog


def test_nothing_is_shown_by_default():
    code = (
        "import warnings, numpy as np, nearwise; warnings.simplefilter('ignore');"
        "rows = np.random.default_rng(0).standard_normal((600, 32)).astype('f4');"
        "nearwise.GraphIndex.build(rows, target_recall=1.0, degree=16); nearwise.build(rows)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout + run.stderr == ""


def test_choices_are_told(log):
    nearwise.build(ROWS, target_recall=0.9)
    (text,) = records(log, logging.INFO)
    assert text.startswith("build: exact: ")


def test_calibrated_indexes_are_told(log):
    index = nearwise.IvfPq.build(ROWS, lists=20, code_bytes=8, target_recall=0.8)
    (text,) = records(log, logging.INFO)
    assert text == (
        f"IvfPq.build: {index!r}: {index.probes} probes, {index.candidates} candidates, "
        f"recall {index.calibration.recall} of 10"
    )
    log.clear()
    index.calibrate(target_recall=0.7)
    assert records(log, logging.INFO)[0].startswith("IvfPq.calibrate: <nearwise.IvfPq")
    log.clear()
    nearwise.IvfPq.train(ROWS, lists=20, code_bytes=8)
    assert records(log, logging.INFO) == []
    graph = nearwise.GraphIndex.build(ROWS, degree=16, target_recall=0.8)
    (text,) = records(log, logging.INFO)
    assert text == f"GraphIndex.build: {graph!r}: beam {graph.beam}, recall {graph.calibration.recall} of 10"


def test_missed_targets_are_warnings_each_time(log):
    for _ in range(2):
        with pytest.warns(nearwise.RecallWarning, match="target recall 1.0") as caught:
            nearwise.IvfPq.build(ROWS, lists=20, code_bytes=2, vectors="none", target_recall=1.0)
        assert caught[0].filename == __file__
    texts = records(log, logging.WARNING)
    assert texts == [str(caught[0].message)] * 2


def test_graphs_are_told(log):
    graph = nearwise.build_knn_graph(ROWS, 5)
    assert records(log, logging.INFO) == [f"build_knn_graph: {graph!r}, {len(graph.rounds)} rounds"]
    graph.with_rows(np.concatenate([ROWS, ROWS[:3] + 1]))
    graph.without_rows(ROWS, [4])
    assert [text.partition(":")[0] for text in records(log, logging.INFO)[1:]] == ["with_rows", "without_rows"]
    assert records(log, logging.WARNING) == []


def test_copies_are_told(log):
    nearwise.knn(ROWS[:3].astype(np.float64), ROWS, 2)
    assert records(log, logging.DEBUG) == ["queries: a copy of float64 (3, 16) of 192 bytes"]


def test_plans_say_what_was_done_before(log, tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    work = str(tmp_path / "work")
    plan = nearwise.plan_index(tmp_path / "rows.fbin", work, tmp_path / "index.nw", lists=10, memory_limit="64MiB")
    plan.run_task(plan.tasks[0].name)
    plan.run()
    tasks = len(plan.tasks)
    assert records(log, logging.INFO) == [f"plan in {work}: {tasks - 1} tasks done, 1 were done before"]


def test_plans_say_what_was_repaired(log, tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    work = tmp_path / "work"
    plan = nearwise.plan_index(tmp_path / "rows.fbin", work, tmp_path / "index.nw", lists=10, memory_limit="64MiB")
    for task in plan.tasks[:2]:
        plan.run_task(task.name)
    damaged = [path for path in work.iterdir() if path.name.startswith(plan.tasks[1].name)]
    assert damaged
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1  # of the same length: the task that reads it finds out
        path.write_bytes(content)
    plan.run()
    (text,) = records(log, logging.WARNING)
    assert text == f"plan in {work}: the output of {plan.tasks[1].name} was damaged or lost, and was made again"
