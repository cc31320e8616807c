"""The parts of tools/prove that judge: they must see what is wrong."""
import array
import json
import struct
import sys

import pytest

from proofs import big_ann, cuda, exact, figures, processes, sgemm, subjects

BASE = [(0, 0), (1, 0), (0, 1), (3, 3), (1, 0), (9, 9)]
QUERY = (0, 0)


def write_bytes(path, rows):
    path.write_bytes(struct.pack("<II", len(rows), len(rows[0])) + b"".join(map(bytes, rows)))
    return path


def neighbors(ids, distances):
    return 1, len(ids), array.array("i", ids), array.array("f", distances)


@pytest.fixture
def compare(tmp_path):
    base = big_ann.ByteVectors(write_bytes(tmp_path / "base.u8bin", BASE))
    queries = big_ann.ByteVectors(write_bytes(tmp_path / "query.u8bin", [QUERY]))
    return lambda found, truth: big_ann.compare(neighbors(*found), neighbors(*truth), base, queries)


TRUTH = ([0, 1, 2], [0, 1, 1])


@pytest.mark.parametrize(("truth", "ids_in_ties"), [
    (TRUTH, 0),
    (([0, 2, 1], [0, 1, 1]), 0),  # the truth may order a tie otherwise
    (([0, 2, 4], [0, 1, 1]), 1),  # or choose otherwise at the last rank
])
def test_right_answers_have_no_faults(compare, truth, ids_in_ties):
    result = compare(TRUTH, truth)
    assert result["faults"] == {"distance": 0, "order": 0, "id": 0}
    assert result["ids_that_differ_in_ties"] == ids_in_ties


@pytest.mark.parametrize(("found", "fault"), [
    (([0, 1, 2], [0, 1, 2]), "distance"),
    (([0, 2, 1], [0, 1, 1]), "order"),  # the lower id comes first
    (([0, 1, 1], [0, 1, 1]), "order"),  # nobody comes twice
    (([0, 1, 4], [0, 1, 1]), "id"),  # ties, but a lower id does too
    (([0, 1, 3], [0, 1, 1]), "id"),  # is not at that distance
    (([1, 2, 4], [0, 1, 1]), "id"),
])
def test_wrong_answers_are_seen(compare, found, fault):
    assert compare(found, TRUTH)["faults"][fault] > 0


def test_another_shape_is_seen(compare):
    assert "shape" in compare(([0, 1], [0, 1]), TRUTH)


def test_neighbors_are_read_as_written(tmp_path):
    path = tmp_path / "gt.bin"
    path.write_bytes(struct.pack("<II", 2, 2) + struct.pack("<4i", 1, 2, 3, 4) + struct.pack("<4f", 0, 1, 2, 3.5))
    queries, k, ids, distances = big_ann.read_neighbors(path)
    assert (queries, k, list(ids), list(distances)) == (2, 2, [1, 2, 3, 4], [0, 1, 2, 3.5])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError):
        big_ann.read_neighbors(path)


def test_memory_of_a_process_is_seen():
    # 100 MiB, touched, for longer than a sample takes on a busy machine.
    program = "import time; data = b'x' * (100 << 20); time.sleep(0.5)"
    run = processes.run([sys.executable, "-c", program], sample_seconds=0.01)
    assert run.peak_anonymous_bytes > 100 << 20
    assert run.peak_resident_bytes >= run.peak_anonymous_bytes
    assert run.samples > 2


def test_a_failing_process_is_an_exception_with_its_words():
    with pytest.raises(RuntimeError, match="exit status 3.*\n.*no such thing"):
        processes.run([sys.executable, "-c", "import sys; print('no such thing'); sys.exit(3)"])


@pytest.fixture
def test_program(tmp_path):
    """A stand-in for a GoogleTest program that reports `tests`."""

    def make(tests):
        report = {"testsuites": [{"name": "Suite", "testsuite": tests}]}
        path = tmp_path / "program"
        path.write_text(f"#!{sys.executable}\nimport sys\n"
                        f"open(sys.argv[2].split(':', 1)[1], 'w').write({json.dumps(report)!r})\n")
        path.chmod(0o755)
        return path

    return make


def test_recorded_numbers_are_added_up(test_program, tmp_path):
    test = {"name": "A", "status": "RUN", "result": "COMPLETED", "line": 3, "generated_cases": "1200"}
    run = processes.run_tests(test_program([test, test | {"name": "B"}]), "*", tmp_path)
    assert run.passed
    assert run.properties == {"generated_cases": 2400}


@pytest.mark.parametrize("tests", [
    [],
    [{"name": "A", "status": "NOTRUN", "result": "SUPPRESSED"}],
    [{"name": "A", "status": "RUN", "result": "SKIPPED"}],
    [{"name": "A", "status": "RUN", "result": "COMPLETED", "failures": [{"failure": "x"}]}],
])
def test_nothing_run_skipped_or_failed_is_no_success(test_program, tmp_path, tests):
    assert not processes.run_tests(test_program(tests), "*", tmp_path).passed


def test_a_crash_before_the_report_is_an_exception(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="ended with 1"):
        processes.run_tests(program, "*", tmp_path)


def test_one_figure_that_breaks_does_not_hide_the_others(capsys):
    def broken(session):
        """Breaks."""
        raise OSError("no disk")

    def fine(session):
        """Holds."""
        return figures.Result(1, ">= 1", True)

    results = figures.measure([broken, fine], quick=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result.holds for result in results] == [False, True]
    assert lines[0]["circumstances"]["quick"] is True
    assert lines[1]["figure"] == "broken" and "no disk" in lines[1]["error"]
    assert lines[2] == {"figure": "fine", "value": 1, "bar": ">= 1", "holds": True, "details": {}}


def session_with(quick):
    return figures.Session(quick, None)


def report_with(speedups):
    return {"by_k": [{"k": k, "speedup": speedup} for k, speedup in speedups.items()]}


@pytest.mark.parametrize(("found", "holds"), [
    ({10: 8.0, 100: 6.0}, True),
    ({10: 7.99, 100: 9.0}, False),  # one k does not make up for another
    ({10: 9.0, 100: 5.9}, False),
])
def test_every_k_must_reach_its_bar(found, holds):
    result = exact.speedup_result(session_with(quick=False), report_with(found), {10: 8, 100: 6})
    assert result.holds is holds
    assert result.bar == ">= 8 at k = 10, >= 6 at k = 100"


def test_a_rehearsal_says_that_speeds_are_not_judged():
    result = exact.speedup_result(session_with(quick=True), report_with({10: 0.1}), {10: 8})
    assert result.holds and result.details["judged"] is False and "--quick" in result.bar


def test_the_fastest_blas_is_the_rival(monkeypatch):
    rates = {"slow": 50.0, "fast": 90.0}
    asked = []

    def run(session, blas, arguments):
        asked.append((blas, "65536" in map(str, arguments)))
        return {"blas": blas, "sgemm_gflops": rates[blas]}

    monkeypatch.setattr(sgemm, "choices", lambda session: ["slow", "fast"])
    monkeypatch.setattr(sgemm, "run", run)
    report = sgemm.compare(session_with(quick=False), "--k", "10")
    assert report["blas"] == "fast" and report["sgemm_gflops_on_a_slice"] == rates
    assert asked == [("slow", True), ("fast", True), ("fast", False)]


def test_tables_are_appended(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "NUMBERS", tmp_path / "numbers.md")
    result = figures.Result(0.5, "<= 1", True, figure="speed")
    figures.write_docs("foundation", [result])
    figures.write_docs("foundation", [result])
    text = (tmp_path / "numbers.md").read_text()
    assert text.count("# Numbers") == 1
    assert text.count("| speed | 0.5 | <= 1 | yes |") == 2


def test_every_subject_has_figures_that_say_what_they_claim(tool):
    assert {"foundation", "exact"} <= set(subjects())
    assert not {"sgemm", "figures"} & set(subjects())
    for subject in subjects():
        result = tool("prove", subject, "--list")
        assert result.returncode == 0
        figures_listed = result.stdout.splitlines()
        assert figures_listed and all(len(line.split(": ", 1)[1]) > 10 for line in figures_listed)


def test_mistakes_are_refused(tool):
    assert tool("prove", "nothing").returncode == 2
    assert tool("prove", "foundation", "--only", "nothing").returncode == 1
    assert tool("prove", "foundation", "--quick", "--write-docs").returncode == 1


CTEST = """
  1/4 Test  #7: cuda.seed1.Lists.AreSorted/3  # GetParam() = 3 .........   Passed    0.02 sec
  2/4 Test #11: seeded_bug.no_syncwarp ................................***Failed    0.50 sec
  3/4 Test #12: cuda.seed1.Memory.IsPoisoned ..........................***Skipped   0.10 sec
  4/4 Test #13: cuda.seed2.Lists.Hang ................................***Timeout 300.00 sec
"""


def test_outcomes_of_ctest_are_told_apart():
    passed, failed = cuda.outcomes(CTEST)
    assert passed == ["cuda.seed1.Lists.AreSorted/3  # GetParam() = 3"]
    assert failed == ["seeded_bug.no_syncwarp", "cuda.seed2.Lists.Hang"]
