"""The parts of tools/prove that judge results: they must detect faults."""
import array
import json
import struct
import sys

import pytest

from figures import cuda, exact, face, house, subjects, trust
from harness import big_ann, charts, checksums, pairs, processes, reliability, results, session, sgemm

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
    (([0, 1, 1], [0, 1, 1]), "order"),  # no id twice
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


def test_memory_of_a_process_is_sampled():
    # 100 MiB, touched, for longer than a sample takes on a busy machine.
    program = "import time; data = b'x' * (100 << 20); time.sleep(0.5)"
    run = processes.run([sys.executable, "-c", program], sample_seconds=0.01)
    assert run.peak_anonymous_bytes > 100 << 20
    assert run.peak_resident_bytes >= run.peak_anonymous_bytes
    assert run.samples > 2


def test_a_failing_process_is_an_exception_with_its_output():
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
    def broken(_):
        """Breaks."""
        raise OSError("no disk")

    def fine(_):
        """Holds."""
        return session.Result(1, ">= 1", True)

    measured = session.measure([broken, fine], quick=True)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [result.holds for result in measured] == [False, True]
    assert lines[0]["quick"] is True and {"machine", "date", "versions"} <= set(lines[0])
    assert lines[1]["figure"] == "broken" and "no disk" in lines[1]["error"]
    assert lines[2] == {"figure": "fine", "value": 1, "bar": ">= 1", "holds": True, "details": {}}


def session_with(quick):
    return session.Session(quick, None)


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


def test_speeds_are_not_judged_under_quick():
    result = exact.speedup_result(session_with(quick=True), report_with({10: 0.1}), {10: 8})
    assert result.holds and result.details["judged"] is False and "--quick" in result.bar


def test_the_fastest_blas_is_compared_with(monkeypatch):
    rates = {"slow": 50.0, "fast": 90.0}
    asked = []

    def run(_, blas, *arguments):
        asked.append((blas, "65536" in map(str, arguments)))
        return {"blas": blas, "sgemm_gflops": rates[blas]}

    monkeypatch.setattr(sgemm, "choices", lambda _, instructions: ["slow", "fast"])
    monkeypatch.setattr(sgemm, "run", run)
    report = sgemm.compare(session_with(quick=False), "--k", "10")
    assert report["blas"] == "fast" and report["sgemm_gflops_on_a_slice"] == rates
    assert asked == [("slow", True), ("fast", True), ("fast", False)]


def test_results_are_recorded_in_the_order_of_the_figures(tmp_path):
    def result(figure, value, error=""):
        return session.Result(value, "<= 1", True, figure=figure, error=error)

    results.record("exact", [result("one_query", 1), result("sift_u8", 2)], "tools/prove exact", tmp_path)
    results.record("exact", [result("sift_u8", 3), result("one_query", None, "no disk")], "tools/prove exact", tmp_path)
    recorded = results.load("exact", tmp_path)
    assert [(name, record["value"]) for name, record in recorded.items()] == [("sift_u8", 3), ("one_query", 1)]
    assert recorded["sift_u8"]["command"] == "tools/prove exact --only sift_u8"
    assert set(recorded["sift_u8"]) == {"figure", "value", "bar", "holds", "details", "machine", "date", "versions",
                                        "command"}


@pytest.mark.parametrize(("value", "text"), [
    (True, "yes"), (None, "-"), (12345, "12,345"), (0.5, "0.5"), ("as is", "as is"), ([0.1, 0.2], "0.1 / 0.2"),
    ({"k=10": 12.1, "k=100": 9.0}, "12.1 (k=10), 9 (k=100)"),
    ({"recall 0.9": {"p50": 0.5}, "recall 0.95": {"p50": 1}}, "recall 0.9: 0.5 (p50); recall 0.95: 1 (p50)")])
def test_values_are_shown_as_text(value, text):
    assert results.shown(value) == text


def test_documents_are_written_from_the_recorded_results():
    stale = [path for path, content in results.documents().items() if (results.DOCS / path).read_text() != content]
    assert not stale, f"run `tools/prove --write-docs`: docs/{stale} differ from bench/results"


def kind_with(*outcomes):
    """A report of the battery on one kind, with cases a, b, ..."""
    cases = {name: [outcome, f"note of {name}", 0.1] for name, outcome in zip("abc", outcomes)}
    return {"version": "1.2", "cases": cases, "faults": [name for name in cases if cases[name][0] in reliability.FAULTS]}


BATTERY = {"nearwise knn": kind_with("right", "refused", "-"), "nearwise Exact": kind_with("refused", "refused", "-"),
           "other": kind_with("right", "crash", "no message")}


def test_a_summary_of_the_battery_keeps_the_messages_of_faults():
    found = reliability.summary(BATTERY)
    assert found["other"] == {"version": "1.2", "outcomes": {"a": "right", "b": "crash", "c": "no message"},
                              "notes": {"b": "note of b", "c": "note of c"}}
    assert [reliability.applied(kind) for kind in found.values()] == [2, 2, 3]
    assert reliability.counts(found)["other"] == {"right": 1, "crash": 1, "no message": 1}


def test_the_tables_of_the_battery_replace_the_earlier_ones():
    details = {"claims": {"a": "an a", "b": "a b", "c": "a c"}, "kinds": reliability.summary(BATTERY)}
    record = {"machine": "a machine", "date": "today", "versions": {"nearwise": "abc"}, "command": "tools/prove",
              "details": details}
    page = reliability.page(f"before {reliability.BEGIN} old {reliability.END} after", record)
    assert page.startswith("before ") and page.endswith(" after") and " old " not in page
    assert reliability.page(page, record) == page == reliability.page(page, None)
    assert "| an a | refused, right | right |" in page and "| a b | refused | **crash** |" in page
    assert "| a c | - | **no message** |" in page and "| case | nearwise, exact search | other |" in page
    assert "| other | 1.2 | 3 | 1 |  |  |  |  |  | 1 |  |  | 1 |" in page


def test_every_recorded_result_belongs_to_a_figure():
    for path in results.RESULTS.glob("*.jsonl"):
        names = {figure.__name__ for figure in results.figures_of(path.stem)}
        assert path.stem in results.SUBJECTS and set(results.load(path.stem)) <= names


def test_a_chart_places_its_points():
    parts = charts.panel(10, 20, 100, 50, [[(0, 0, ""), (1, 1, "top")]], [(0, "left"), (1, "right")], [(0, "0"), (1, "1")])
    assert any('points="10.0,70.0 110.0,20.0"' in part for part in parts)
    assert sum(">top<" in part for part in parts) == 1


def test_every_subject_has_figures_with_claims(tool):
    assert {"foundation", "exact", "house"} <= set(subjects())
    for subject in subjects():
        listed = tool("prove", subject, "--list")
        assert listed.returncode == 0, listed.stderr
        lines = listed.stdout.splitlines()
        assert lines and all(len(line.split(": ", 1)[1]) > 10 for line in lines)


def test_patterns_choose_figures(tool):
    listed = tool("prove", "exact", "--list", "--only", "sift_*", "--only", "one_query").stdout
    assert [line.split(":")[0] for line in listed.splitlines()] == ["sift_u8", "sift_f32", "one_query"]


def test_mistakes_are_refused(tool):
    assert tool("prove").returncode == 2
    assert tool("prove", "nothing").returncode == 2
    assert tool("prove", "foundation", "--only", "nothing").returncode == 1
    assert tool("prove", "foundation", "--quick", "--record").returncode == 2


CTEST = """
  1/4 Test  #7: cuda.seed1.Lists.AreSorted/3  # GetParam() = 3 .........   Passed    0.02 sec
  2/4 Test #11: seeded_bug.no_syncwarp ................................***Failed    0.50 sec
  3/4 Test #12: cuda.seed1.Memory.IsPoisoned ..........................***Skipped   0.10 sec
  4/4 Test #13: cuda.seed2.Lists.Hang ................................***Timeout 300.00 sec
"""


def test_outcomes_of_ctest_are_distinguished():
    passed, failed = cuda.outcomes(CTEST)
    assert passed == ["cuda.seed1.Lists.AreSorted/3  # GetParam() = 3"]
    assert failed == ["seeded_bug.no_syncwarp", "cuda.seed2.Lists.Hang"]


def test_clustered_rows_are_a_valid_file(tmp_path):
    path = house.clustered_rows(tmp_path / "rows.u8bin", 50, clusters=3, dim=8)
    rows = big_ann.ByteVectors(path)
    assert (rows.rows, rows.dim, path.stat().st_size) == (50, 8, 8 + 50 * 8)
    assert len({rows[row] for row in range(50)}) == 50


def fake_build(folder, seconds):
    """A build folder whose program `bench` takes a given time, by its own account."""
    program = folder / "bench" / "end_to_end" / "bench"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{{\"seconds\": {seconds}}}'\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("seconds", "holds"), [(1.02, True), (1.04, False)])
def test_a_slower_build_does_not_hold(tmp_path, monkeypatch, seconds, holds):
    compared = session.Session(False, tmp_path, fake_build(tmp_path / "old", 1))
    fake_build(tmp_path / "build" / "release", seconds)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(compared, "build", lambda *_: None)
    result = house.speed(compared, 1.03, lambda report: report["seconds"], "bench")
    assert (result.value, result.holds) == (seconds, holds)
    assert len(result.details["old_seconds"]) == 25


def test_speed_needs_a_baseline(tmp_path):
    with pytest.raises(RuntimeError, match="--baseline"):
        house.speed_kmeans(session.Session(True, tmp_path))


def test_pairs_are_compared_by_their_medians():
    found = [(1.0, 1.1), (2.0, 2.0), (1.0, 9.0)]
    assert pairs.medians(found) == (1, 2) and pairs.ratio(found) == 2
    assert checksums.share([(4, 3), (4, 3)]) == 0.25
    low, high = pairs.interval(found, pairs.ratio)
    assert low <= 2 <= high and low < high


@pytest.mark.parametrize(("opq", "holds"), [(1.1, True), (1.11, False)])
def test_slower_training_of_opq_does_not_hold(tmp_path, monkeypatch, opq, holds):
    def rounds(_, count, program, *arguments):
        old = dict.fromkeys(("pca_seconds", "opq_seconds", "opq_cpu_seconds", "opq_error", "eigh_seconds", "svd_seconds"), 1)
        is_judged = arguments[1] != 1536
        return [(old, old | {"pca_seconds": 3, "opq_seconds": opq if is_judged else 2})] * count

    monkeypatch.setattr(house, "rounds", rounds)
    result = house.decompositions(session.Session(False, tmp_path))
    assert result.holds is holds
    assert result.value["d=768"] == {"pca": 3, "opq": opq} and result.value["d=1536"]["opq"] == 2


def test_a_program_in_python_gets_the_package_of_the_build(tmp_path, monkeypatch):
    for name, value in (("old", 1), ("new", 2)):
        (tmp_path / name / "python").mkdir(parents=True)
        (tmp_path / name / "python" / "nearwise.py").write_text(f"value = {value}")
    (tmp_path / "bench" / "end_to_end").mkdir(parents=True)
    (tmp_path / "bench" / "end_to_end" / "program.py").write_text(
        "import json, nearwise, sys\nprint(json.dumps([nearwise.value, sys.argv[1:]]))")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "CACHE", tmp_path)
    assert house.run_in(tmp_path / "old", "program.py", ["--dim", 8]) == [1, ["--dim", "8", "--threads", "2"]]
    assert house.run_in(tmp_path / "new", "program.py", []) == [2, ["--threads", "2"]]


def costs_with(cached, disk, build):
    return {"flat": {"cache": {"share": cached}, "disk": {"share": disk}}}, {"index": {"share": build}}


@pytest.mark.parametrize(("shares", "holds"), [
    ((0.1, 0.05, 0.03), True), ((0.11, 0.05, 0.03), False), ((0.1, 0.11, 0.03), False), ((0.1, 0.05, 0.04), False)])
def test_expensive_checksums_do_not_hold(tmp_path, monkeypatch, shares, holds):
    loads, builds = costs_with(*shares)
    monkeypatch.setattr(checksums, "load_costs", lambda *_: loads)
    monkeypatch.setattr(checksums, "build_costs", lambda *_: builds)
    result = trust.checksum_cost(session.Session(False, tmp_path))
    assert result.holds is holds
    assert result.value == {"load from page cache": {"flat": shares[0]}, "load from disk": {"flat": shares[1]},
                            "build": {"index": shares[2]}}


class AnsweringFiles:
    def __init__(self, error):
        self.error = error

    def ask(self, **_):
        if self.error:
            raise RuntimeError(self.error)
        return {"seconds": 1}


def test_a_file_without_checksums_must_be_refused_for_that():
    checksums.check_refused(AnsweringFiles("Error: header: checksum 01 expected, 02 found"), "a.nw")
    with pytest.raises(RuntimeError, match="not in effect"):
        checksums.check_refused(AnsweringFiles(None), "a.nw")
    with pytest.raises(RuntimeError, match="no such file"):
        checksums.check_refused(AnsweringFiles("Error: no such file"), "a.nw")


def test_a_slow_import_and_a_loaded_cuda_are_seen():
    quick, slow = [0.1, 0.12, 0.9], [0.1, 0.16, 0.17]
    assert face.judge_import({"nearwise": quick, "numpy": [0.05]}, "7f00-7f01 /usr/lib/libc.so.6\n")[:2] == (0.12, True)
    assert face.judge_import({"nearwise": slow, "numpy": [0.05]}, "")[:2] == (0.16, False)
    median, holds, details = face.judge_import({"nearwise": quick, "numpy": [0.05]}, "7f00-7f01 /usr/lib/libcudart.so.13\n")
    assert not holds and details["cuda_loaded"] == ["libcudart.so"]


def test_copies_are_seen_by_address_and_by_bytes():
    same = {"kind": "same", "address": 64, "taken_address": 64, "copied_bytes": 0}
    reports = [same, same | {"kind": "moved", "taken_address": 128}, same | {"kind": "told", "copied_bytes": 4},
               {"kind": "absent", "missing": ["torch"]}]
    assert face.judge_copies(reports) == (["moved", "told"], ["absent"])


def test_failed_checks_of_estimators_are_seen():
    reports = [{"estimator": "KMeans", "checks": 40, "failed": []}, {"estimator": "Neighbors", "checks": 40, "failed": ["check_dict: no"]}]
    assert face.judge_estimators(reports) == ["Neighbors: check_dict: no"]
