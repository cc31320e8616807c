"""The quick form of tests/battery on every kind of index, graph and quantizer, and whether the battery finds faults."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

BATTERY = Path(__file__).parents[2] / "tests" / "battery"
sys.path.insert(0, str(BATTERY))

import isolation  # noqa: E402  (found through the line above)
from adapters.adapter import Adapter  # noqa: E402
from cases import CASES  # noqa: E402
from outcomes import FAULTS, Outcome, right, worst  # noqa: E402
from plan_damage import PLANS  # noqa: E402
from runner import prepare, run_cases  # noqa: E402


def start(script, *arguments, flags=()):
    return subprocess.Popen(
        [sys.executable, *flags, BATTERY / script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def report_of(process):
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return json.loads(output.splitlines()[-1])


def assert_no_faults(kinds, least):
    for name, kind in kinds.items():
        assert {case: kind["cases"][case] for case in kind["faults"]} == {}, name
        assert sum(outcome != "-" for outcome, _, _ in kind["cases"].values()) >= least, name


def test_every_kind_withstands_bad_input_and_faults():
    halves = [start("run.py", "--quick", "--kinds", kinds) for kinds in ("nearwise Ivf*", "nearwise [!I]*")]
    kinds = {name: kind for half in halves for name, kind in report_of(half)["kinds"].items()}
    assert len(kinds) == 10
    assert_no_faults(kinds, 35)


def test_no_check_is_an_assert_statement():
    """Without them (python -O) arguments are refused as well."""
    cases = ",".join(case.name for case in CASES if not (case.is_alone or case.supervises))
    report = report_of(start("run.py", "--quick", "--cases", cases, flags=["-O"]))
    assert report["optimized"] and len(report["kinds"]) == 10
    assert_no_faults(report["kinds"], 30)


def test_damaged_files_and_killed_saves():
    damage = start("damage.py", "--flips", 32, "--truncations", 8, "--splices", 8)
    kills = report_of(start("kills.py", "--kills", 16))
    assert kills["kills"] == kills["old or new file"] == len(kills["kinds"]) == 16  # one of each kind of file
    assert kills["temporary files after the next save"] == 0
    found = report_of(damage)
    assert found["examples"] == []
    plans = {kind for kind in found["kinds"] if kind.startswith("plan of ")}
    assert plans == {f"{plan}, {files}" for plan in PLANS for files in ("work files", "manifest")}
    assert len(found["kinds"]) - len(plans) >= 10
    for kind, mutations in found["kinds"].items():
        # A file that is damaged is refused; a plan is repaired. Plans share the mutations.
        expected, share = ("right", len(PLANS)) if kind in plans else ("refused", 1)
        assert mutations["flip"] == {expected: 32 // share} and mutations["truncation"] == {expected: 8 // share}, kind
        assert mutations["splice"].keys() <= {expected, "refused"} and sum(mutations["splice"].values()) == 8 // share, kind


class Quiet(Exception):
    pass


def fails(error):
    def work():
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "outcome", "note"),
    [
        (right, Outcome.RIGHT, ""),
        (fails(ValueError("k: expected at least 1")), Outcome.REFUSED, "ValueError: k: expected at least 1"),
        (fails(MemoryError()), Outcome.REFUSED, "MemoryError: "),
        (fails(AssertionError()), Outcome.NO_MESSAGE, "AssertionError"),
        (fails(Quiet("what?")), Outcome.UNDOCUMENTED, "Quiet: what?"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), Outcome.CRASH, "SIGSEGV"),
        (lambda: os._exit(3), Outcome.CRASH, "exit status 3"),
        (lambda: time.sleep(100), Outcome.HANG, "more than 0.5 s"),
        (lambda: bytearray(2 << 30) and right(), Outcome.REFUSED, "MemoryError: "),
    ],
)
def test_the_end_of_a_child_has_a_name(work, outcome, note):
    limits = isolation.Limits(0.5, 1 << 30, is_documented=lambda error: not isinstance(error, Quiet))
    found = isolation.run(work, limits)
    assert (found.outcome, found.note) == (outcome, note)


def test_another_child_continues_after_a_crash():
    def work(number):
        if number == 1:
            os.abort()
        if number == 2:
            time.sleep(100)
        return right(str(os.getpid()))

    found = list(isolation.run_many(work, 5, isolation.Limits(0.5)))
    assert [finding.outcome for finding in found] == ["right", "crash", "hang", "right", "right"]
    assert found[0].note != found[3].note == found[4].note


def test_a_child_that_cannot_begin_is_a_crash():
    assert isolation.run(right, isolation.Limits(begin=fails(OSError("no library")))).outcome == Outcome.CRASH


def test_the_worst_of_several_findings():
    names = [Outcome.REFUSED, Outcome.RIGHT, Outcome.WRONG, Outcome.CRASH]
    findings = [isolation.Finding(name) for name in names]
    assert [worst(findings[:count]).outcome for count in (1, 2, 3, 4)] == names


class Careless(Adapter):
    """A library that checks nothing: wide queries are cut, files are plain arrays written in place."""

    name = "careless"
    package = module = "numpy"
    lacks = frozenset({"capacity", "cosine", "get", "ids", "map", "remove", "bulk"})

    def empty(self, dim=32, metric="sqeuclidean", capacity=0):
        return [np.zeros((0, dim), np.float32)]

    def add(self, index, vectors, ids=None):
        index[0] = np.concatenate([index[0], vectors])

    def size(self, index):
        return len(index[0])

    def search(self, index, queries, k):
        if k < 0:
            raise AssertionError
        dim = min(index[0].shape[1], queries.shape[1])
        base = index[0][:, :dim]
        distances = (base**2).sum(1) - 2 * queries[:, :dim] @ base.T
        ids = np.argsort(distances, 1)[:, : int(k)]
        return ids, np.take_along_axis(distances, ids, 1)

    def save(self, index, path):
        with open(path, "wb", buffering=0) as file:
            for row in index[0]:
                file.write(row.tobytes())

    def load(self, path, dim=32):
        return [np.frombuffer(Path(path).read_bytes(), np.float32).reshape(-1, dim)]


def test_faults_are_found(tmp_path):
    expected = {
        "query_of_nan": "marked",
        "k_negative": "no message",
        "k_fraction": "wrong",
        "too_few_dimensions": "wrong",
        "complex_numbers": "wrong",
        "bit_flips": "wrong",
        "file_size_limit": "lost",
        "killed_while_saving": "wrong",
        "one_vector": "right",
        "text_file": "refused",
    }
    adapter = Careless(tmp_path)
    adapter.quick = True
    prepare(adapter)
    found = dict(run_cases(adapter, [case for case in CASES if case.name in expected]))
    assert {case.name: str(finding.outcome) for case, finding in found.items()} == expected


def test_faults_and_other_outcomes_are_told_apart():
    harmless = {Outcome.RIGHT, Outcome.REFUSED, Outcome.MARKED, Outcome.NOT_APPLICABLE}
    assert set(Outcome) == harmless | set(FAULTS)
