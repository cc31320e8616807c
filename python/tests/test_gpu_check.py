"""nearwise gpu-check: a row for every operation of a device, and a complete report whatever goes wrong."""

import json
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

import nearwise
import numpy as np
import pytest
from device_memory import devices, is_emulated, needs_device
from nearwise import _core
from nearwise._gpu_check import command, estimates, graphs, process, report, timings
from nearwise._gpu_check.case import QUICK, Case, difference, vectors
from nearwise._gpu_check.cases import CASES, SECTIONS

FAULTY = Path(__file__).with_name("faulty_gpu_check.py")
FIELDS = {"format", "result", "exit_code", "summary", "nearwise", "shapes", "device", "limit_seconds", "machine",
          "environment", "estimates_of", "cases", "operations", "timings", "rivals", "left_out"}

needs_emulation = pytest.mark.skipif(not is_emulated(), reason="only the emulated device fails on request")


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """check(arguments) -> (exit code, report, text)"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run(*arguments, worker=process.WORKER):
        code = command.main([*arguments, "--report", "out.json"], worker)
        found = json.loads(Path("out.json").read_text())
        text = capsys.readouterr().out
        assert set(found) == FIELDS and found["exit_code"] == code and [path.name for path in tmp_path.iterdir()] == ["out.json"]
        assert f"(exit code {code})" in text and text == report.text_of(found)
        assert str(Path.home()) not in json.dumps(found) and not re.search(rf"\b{re.escape(platform.node())}\b", json.dumps(found))
        return code, found, text

    return run


def outcomes_of(found, sections=SECTIONS):
    """{case: outcome}; every case of the sections has one."""
    rows = {case["name"]: case["outcome"] for case in found["cases"]}
    assert list(rows) == [case.name for case in CASES if case.section in sections] and len(rows) == len(found["cases"])
    assert {row["operation"] for row in found["operations"]} == set(found["environment"]["devices"][0]["operations"])
    return rows


@needs_device
class TestOnADevice:
    def test_every_operation_has_a_case(self):
        """A new operation of the backend needs a row of python/nearwise/_gpu_check/cases.py."""
        wanted = {operation for case in CASES for operation in case.operations}
        assert wanted == set(_core.cuda()["devices"][0]["operations"])

    def test_quick_gives_a_row_for_every_operation(self, check):
        code, found, text = check("--quick")
        assert code == 0, text
        assert set(outcomes_of(found).values()) == {"equal"} and found["result"] == "equal"
        assert {row["outcome"] for row in found["operations"]} == {"equal"}
        ran = {case["name"]: case["ran"] for case in found["cases"]}
        missing = {(case.name, operation) for case in CASES for operation in case.operations if not ran[case.name].get(operation)}
        assert missing == set(), "cases that do not run what they are there for"
        count = len(found["operations"])
        assert f"operations  {count} of {count} give the CPU's bytes" in text and found["timings"] == []

    def test_a_device_that_is_not_there(self, check):
        code, found, _ = check("--device", "cuda:99")
        assert code == 69 and "there is no cuda:99; devices here: cuda:0" in found["environment"]["problem"]

    def test_the_device_is_described(self):
        found = _core.cuda()
        assert found["driver_version"] // 1000 >= found["runtime_version"] // 1000 and found["problem"] == ""
        device = found["devices"][0]
        assert device["compute_capability"] >= 75 and device["code_version"] >= 75 and device["multiprocessors"] > 0
        assert 0 < device["free_bytes"] <= device["memory_bytes"] and device["has_memory_pools"]

    def test_copies_on_the_device(self):
        array = vectors(1, 300, 70)
        shared = _core.copy_to_device(array=array, device="cuda:0")
        there = _core.DeviceArray(shared.__dlpack__())
        assert (there.shape, there.dtype, there.device) == (array.shape, "float32", "cuda:0")
        del there
        np.testing.assert_array_equal(nearwise.select_k(shared, 3).values, nearwise.select_k(array, 3).values)


@needs_emulation
class TestFailures:
    """Each by the means by which it happens: of the device's environment, or a worker whose table is wrapped."""

    def worker(self, fault, case):
        return sys.executable, str(FAULTY), fault, case

    def test_a_driver_that_is_too_old(self, check, monkeypatch):
        monkeypatch.setenv("CUDA_EMULATION_DRIVER_VERSION", "11080")
        code, found, text = check("--quick")
        assert code == 69 and found["result"] == "no_device" and found["cases"] == found["operations"] == []
        assert found["environment"]["driver_version"] == 11080
        assert "the driver is too old: it supports CUDA 11.8, this build needs 13" in text

    def test_searches_name_a_driver_that_is_too_old(self):
        code = "import nearwise, numpy; nearwise.knn(numpy.eye(3), numpy.eye(3), 1, device='cuda:0')"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                             env=process.environment() | {"CUDA_EMULATION_DRIVER_VERSION": "11080"})
        assert "device cuda:0 is not available: the driver is too old: it supports CUDA 11.8" in run.stderr

    def test_a_device_without_memory(self, check, monkeypatch):
        monkeypatch.setenv("CUDA_EMULATION_MEMORY_MB", "0")
        code, found, text = check("--quick")
        assert code == 71 and set(outcomes_of(found).values()) == {"out_of_memory"}, text
        assert {row["outcome"] for row in found["operations"]} == {"out_of_memory"}
        assert text.endswith("out of memory (exit code 71)\n")

    def test_a_wrong_byte(self, check):
        """Also: some sections, another device."""
        where = ("--only", "arrays,selection", "--device", devices()[-1])
        code, found, text = check(*where, worker=self.worker("wrong_byte", "selection"))
        assert code == 1 and outcomes_of(found, ("arrays", "selection")) == {"selection": "wrong", "shared_arrays": "equal"}
        assert found["cases"][0]["difference"]["elements"] == 1
        rows = {row["operation"]: row["outcome"] for row in found["operations"]}
        assert rows["select_k"] == "wrong" and rows["wait_for_stream"] == "equal" and rows["search_graph"] == "not_run"
        assert "selection          quick  wrong  k = 1: ids at [0, 0], 1 of 4 differ: " in text

    def test_a_hang(self, check):
        where = ("--only", "arrays,selection", "--limit", "10")
        code, found, text = check(*where, worker=self.worker("hang", "selection"))
        outcomes = {"selection": "timed_out", "shared_arrays": "equal"}
        assert code == 124 and outcomes_of(found, ("arrays", "selection")) == outcomes
        assert "no answer in 10 s" in text


@pytest.mark.skipif(bool(devices()), reason="there is a CUDA device")
def test_a_machine_without_a_device(check):
    code, found, text = check()
    assert code == 69 and found["result"] == "no_device" and found["environment"]["problem"] in text


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--only", "exact,knn"], 2, "--only must be some of exact, selection"),
        (["--device", "cpu"], 2, "--device must be cuda:N, got 'cpu'"),
        (["--limit", "0"], 2, "a whole number of at least 1, got '0'"),
        (["--quick", "--full"], 2, "not allowed with argument --quick"),
        (["--report", "nowhere/out.json"], 73, "nowhere/out.json: No such file"),
        (["--report", "."], 73, ".: Is a directory"),
        (["--report", ""], 73, "No such file"),
        (["base.fbin"], 2, "gpu-check: unrecognized arguments: base.fbin (see 'nearwise gpu-check --help')"),
    ],
)
def test_refuses(tmp_path, capsys, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    try:
        ended = command.main(arguments)
    except SystemExit as error:
        ended = error.code
    said = capsys.readouterr().err
    assert ended == code and words in said and said.startswith("nearwise: ") and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_report_that_cannot_be_written_has_its_exit_code(tmp_path, capsys, monkeypatch):
    """Before the work where the folder is known, and after it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr(command, "_check", lambda *_: {"exit_code": 0})
    monkeypatch.setattr(command.os, "replace", lambda *_: Path("nowhere/file").stat())
    assert command.main(["--report", "out.json"]) == 73
    assert "out.json: No such file" in capsys.readouterr().err
    monkeypatch.setattr(command, "_check", lambda *_: pytest.fail("it began to work"))
    monkeypatch.setattr(command.os, "access", lambda *_: False)
    assert command.main(["--report", "out.json"]) == 73
    assert "out.json: Permission denied" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


# A worker that answers its steps by what they say.
SCRIPT = """
import json, os, sys, time
for step in sys.argv[1:]:
    if step == "hang": time.sleep(60)
    if step == "crash": print("no more", file=sys.stderr); os._exit(3)
    print(json.dumps({"outcome": step}), flush=True)
    if step == "failed": break
if "leak" in sys.argv: sys.exit(1)
"""


def answers_of(*steps, limit=60):
    found = process.answers([sys.executable, "-c", SCRIPT], [], steps, limit)
    return [(step, answer["outcome"], answer.get("message")) for step, answer in found]


def test_steps_continue_after_one_that_ends_its_process():
    assert answers_of("done", "crash", "equal", "failed", "done") == [
        ("done", "done", None), ("crash", "failed", "its process ended with status 3: no more"), ("equal", "equal", None),
        ("failed", "failed", None), ("done", "done", None)]
    assert answers_of("hang", "done", limit=2) == [("hang", "timed_out", "no answer in 2 s"), ("done", "done", None)]
    assert answers_of("leak") == [("leak", "leak", None), ("end", "failed", "its process ended with status 1")]


def test_the_case_of_nn_descent_ends_with_its_lists():
    """Not with exact search, which would hide a wrong iteration."""
    told = graphs.nn_descent(QUICK, "cpu")["descent: report"]
    assert told.startswith("('nn_descent'") and "round=1" in told


def test_differences():
    left = {"ids": np.arange(6).reshape(2, 3), "error": 0.5, "report": "a"}
    assert difference(left, {"ids": np.arange(6).reshape(2, 3), "error": 0.5, "report": "a"}) is None
    right = {"ids": np.array([[0, 1, 2], [3, 7, 8]]), "error": 0.5, "report": "a"}
    assert difference(left, right) == {"answer": "ids", "elements": 2, "of": 6, "first": [1, 1], "cpu": "4", "device": "7"}
    assert difference({"zero": np.float32(0)}, {"zero": np.float32(-0.0)})["elements"] == 1
    assert difference(left, {**left, "ids": left["ids"].astype(np.int32)})["device"] == "int32 (2, 3)"
    assert difference(left, {"ids": left["ids"]})["answer"] == "names"
    assert difference({"report": "a"}, {"report": "b"})["cpu"] == "a"


def test_rows_of_operations():
    cases = [Case("one", "s", ("a", "b"), None), Case("two", "s", ("b", "c"), None)]
    results = [{"name": "one", "outcome": "equal", "ran": {"a": 2, "c": 1}}, {"name": "two", "outcome": "timed_out"}]
    rows = {row["operation"]: (row["outcome"], row["calls"]) for row in report.operation_rows("abcd", cases, results)}
    assert rows == {"a": ("equal", {"one": 2}), "b": ("timed_out", {"one": 0, "two": 0}), "c": ("timed_out", {"two": 0}),
                    "d": ("not_run", {})}


def fields(**changes):
    return {"environment": {"outcome": "done", "problem": ""}, "cases": [], "operations": [], "timings": [], "rivals": [],
            "nearwise": "1", "shapes": "full", "device": "cuda:0"} | changes


def test_the_worst_outcome_decides():
    def result(*outcomes, rows=(), is_partial=False):
        found = fields(cases=[{"outcome": each} for each in outcomes], operations=[{"outcome": each} for each in rows])
        return report.assemble(found, is_partial)["exit_code"]

    assert result("equal", "equal") == 0
    assert result("equal", "timed_out") == 124
    assert result("timed_out", "out_of_memory") == 71
    assert result("out_of_memory", "failed") == 70
    assert result("failed", "wrong") == 1
    assert result("equal", rows=["equal", "not_run"]) == 70
    assert result("equal", rows=["equal", "not_run"], is_partial=True) == 0
    codes = [code for code, _ in report.RESULTS.values()]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("is_time", [False, True])
def test_a_timing_is_a_median_next_to_its_estimate(monkeypatch, is_time):
    monkeypatch.setattr(timings, "_LEAST_SECONDS", 0)
    calls = []
    timing = timings.Timing("t", "GB/s", lambda shapes, device: (lambda: calls.append(device), 6.0, "work"),
                            lambda gpu: None if gpu is None else 4.0, is_time)
    found = timings.measure(timing, QUICK, "cpu", "T4")
    median = statistics.median(found["seconds"])
    assert found["value"] == (median / 6 if is_time else 6 / median) and found["ratio"] == found["value"] / 4
    assert calls == ["cpu"] * (2 + len(found["seconds"])) and found["of"] == "work"
    assert timings.measure(timing, QUICK, "cpu", None)["ratio"] is None


def test_text_of_timings():
    timed = {"name": "list_scan", "outcome": "done", "value": 60.0, "unit": "10^9 vectors/s", "estimate": 120.0, "ratio": 0.5,
             "of": "codes", "note": "all of it"}
    failed = {"name": "graph_build", "outcome": "timed_out", "message": "no answer in 5 s"}
    rivals = [{"name": "faiss", "outcome": "done", "left_out": "not installed"},
              {"name": "cuvs", "outcome": "done", "version": "26.1", "value": 5.0, "unit": "queries/s", "of": "rows"}]
    text = report.text_of(report.assemble(fields(timings=[timed, failed], rivals=rivals), False))
    assert "list_scan          60 10^9 vectors/s, estimate 120, ratio 0.50  (codes; all of it)\n" in text
    assert "graph_build        timed_out  no answer in 5 s\n" in text
    assert "faiss              left out: not installed\n" in text and "cuvs               5 queries/s  (26.1; rows)\n" in text


def test_estimates_are_of_a_gpu():
    models = {"Tesla T4": "T4", "NVIDIA A100-SXM4-80GB": "A100 SXM", "NVIDIA A100-SXM4-40GB": None, "NVIDIA H100 80GB HBM3": "H100 SXM",
              "NVIDIA H100 PCIe": None, "NVIDIA B200": "B200", "NVIDIA GeForce RTX 4090": "RTX 4090",
              "NVIDIA GeForce RTX 4090 Laptop GPU": None, "emulated device": None}
    assert {model: estimates.gpu_of(model) for model in models} == models
    assert estimates.selection("H100 SXM", 1000) == pytest.approx(0.63 * 3350) and estimates.selection(None, 10) is None
    assert estimates.additive("T4", 7) is None and estimates.list_scan("B200", 16) == 165


def test_texts_name_no_home():
    assert report.without_home({"a": [f"{Path.home()}/x", 1]}) == {"a": ["~/x", 1]}
