"""nearwise.bench: what it measures, what it recommends, and its page."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import nearwise
import numpy as np
import pytest
from nearwise._bench import choice, command, measure, methods, process, task, worker
from nearwise._verb import machine

ROWS = np.random.default_rng(4).standard_normal((2000, 16), dtype=np.float32)
QUERIES = np.random.default_rng(5).standard_normal((50, 16), dtype=np.float32)


def prepared(folder, rows=ROWS, queries=QUERIES, **changes):
    options = {"limit": None, "query_count": 1000, "k": 5, "metric": "sqeuclidean", "targets": (0.9,), "threads": 1}
    return task.prepare(str(folder), rows, queries, context=nearwise.Context(seed=3), **options | changes)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A run of all indexes of nearwise, and where it was saved."""
    folder = tmp_path_factory.mktemp("bench")
    made = nearwise.bench(ROWS, k=5, target_recalls=[0.9, 1], against=[], repeat=2, threads=1, title="some <vectors>")
    (folder / "report.json").write_text(made.json())
    return made


def by_name(report):
    return {method["name"]: method for method in report.fields["methods"]}


def test_every_index_is_measured(report):
    found = by_name(report)
    assert list(found) == ["exact", "ivf_flat", "ivf_pq", "graph"]
    for method in found.values():
        assert method["build_seconds"] > 0 and method["disk_bytes"] > 0
        for each in method["measurements"]:
            assert each["queries_per_second"] > 0 and len(each["batch_seconds"]) == 2
            assert 0 < each["single_p50_us"] <= each["single_p99_us"] and each["single_queries"] >= 20
    # The exact index is the vectors; the others keep them as well.
    assert min(method["disk_bytes"] for method in found.values()) >= 1600 * 16 * 4
    assert [each["recall"] for each in found["exact"]["measurements"]] == [1.0]
    assert max(each["recall"] for each in found["ivf_flat"]["measurements"]) == 1.0


def test_fields(report):
    fields = json.loads(report.json())
    assert fields["data"] == {"title": "some <vectors>", "rows": 1600, "of_rows": 2000, "dim": 16, "type": "f32",
                              "queries": 400, "held_out": True}
    assert fields["versions"] == {"nearwise": nearwise.__version__} and fields["threads"] == 1 and fields["k"] == 5
    assert {"cpu", "cpus", "memory_bytes", "system", "load_before"} == set(fields["machine"])
    assert os.uname().nodename not in report.json()
    assert len(fields["recommendations"]) == len(report.recommendations) == 4


def test_recalls_are_those_of_numpy(tmp_path):
    """Of searches of an inverted file, by brute force in double precision."""
    made = prepared(tmp_path)
    one = worker.Worker("ivf_flat", made)
    one.build()
    distances = ((QUERIES[:, None, :].astype(np.float64) - ROWS[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, :5]
    for probes in (1, 3, 1_000_000):
        setting = {"probes": min(probes, one.method.settings()[0][-1]["probes"])}
        found = one.method.search(one.queries, setting, 1)
        expected = np.mean([len(np.intersect1d(a, b)) / 5 for a, b in zip(found, nearest)])
        assert one.found(setting)[0] == pytest.approx(expected)
    assert expected == 1 and one.found({"probes": 1})[0] < 0.9


def test_ties_count_once(tmp_path):
    rows = np.repeat(ROWS[:20], 40, axis=0)  # 40 vectors at the distance of the nearest
    truth = prepared(tmp_path, rows, ROWS[:3]).truth()
    assert task.recall(np.arange(35, 40).reshape(1, 5).repeat(3, axis=0), truth, 5) == pytest.approx(1 / 3)
    assert task.recall(np.full((3, 5), 7), truth, 5) == pytest.approx(1 / 15)
    assert task.recall(np.full((3, 5), -1), truth, 5) == 0


def test_held_out_queries_are_not_in_the_base(tmp_path):
    made = prepared(tmp_path, queries=None, limit=500, query_count=100)
    base, queries = made.vectors("base").array, made.vectors("queries").array
    assert base.shape == (500, 16) and queries.shape == (100, 16) and made.held_out
    both = np.concatenate([base, queries])
    assert len(np.unique(both, axis=0)) == 600
    assert set(map(bytes, both)) <= set(map(bytes, ROWS))
    other = tmp_path / "same"
    other.mkdir()
    assert (prepared(other, queries=None, limit=500, query_count=100).vectors("base").array == base).all()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float16, "bfloat16"])
@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
def test_element_types(tmp_path, dtype, metric):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    rows = (ROWS[:300] * 20).astype(dtype)
    made = prepared(tmp_path, rows, rows[:7], metric=metric)
    assert (task.as_floats(made.vectors("base")) == rows.astype(np.float32)).all()
    one = worker.Worker("exact", made)
    one.build()
    assert one.found({})[0] == 1


def point(recall, seconds, setting=None):
    return {"recall": recall, "seconds": seconds, "setting": setting or {"beam": seconds}}


def test_frontier_and_finalists():
    points = [point(0.5, 1), point(0.8, 2), point(0.7, 3), point(0.92, 4), point(0.95, 5), point(0.99, 9), point(0.99, 8)]
    assert [each["seconds"] for each in measure.frontier(points)] == [1, 2, 4, 5, 8]
    chosen = measure.finalists(points, [0.9])
    assert {4, 5, 8} <= {each["seconds"] for each in chosen} and 3 not in {each["seconds"] for each in chosen}
    # What reaches no target is shown by its best.
    assert [each["recall"] for each in measure.finalists([point(0.1, 1), point(0.2, 2)], [0.9])] == [0.2]
    many = [point(0.5 + number / 100, number) for number in range(1, 50)]
    assert len(measure.finalists(many, [0.9, 0.95, 0.99])) == 7


def method(name, library, *measurements):
    keys = ("recall", "queries_per_second", "single_p50_us", "single_p99_us")
    return {"name": name, "library": library, "family": name, "label": name, "build_seconds": 1.0, "memory_bytes": 1,
            "disk_bytes": 1,
            "measurements": [{"setting": {"beam": 10}, **dict(zip(keys, each))} for each in measurements]}


def test_recommendations():
    found = [method("IvfFlat", "nearwise", (0.96, 28000, 90, 200), (0.91, 40000, 80, 190)),
             method("GraphIndex", "nearwise", (0.97, 15000, 50, 90)),
             method("HNSW", "Faiss", (0.94, 50000, 20, 30), (0.98, 20000, 60, 70))]
    made = choice.recommend(found, [0.9, 0.95, 0.99], 1000)
    assert [(each["queries"], each["target_recall"], each["method"]) for each in made] == [
        ("batch", 0.9, "HNSW"), ("batch", 0.95, "IvfFlat"), ("batch", 0.99, None),
        ("single", 0.9, "HNSW"), ("single", 0.95, "GraphIndex"), ("single", 0.99, None)]
    assert made[1]["text"] == ("For batches of 1,000 at recall 0.95: IvfFlat, 28,000 queries/s, with beam=10; "
                               "the fastest of the other libraries is HNSW, 20,000 queries/s.")
    assert made[0]["text"].endswith("the fastest of nearwise is IvfFlat, 40,000 queries/s.")
    assert made[2]["text"] == "For batches of 1,000 at recall 0.99: nothing that was measured reaches it."


def test_page(report, tmp_path):
    pytest.importorskip("matplotlib")
    numbers = report.write(tmp_path / "bench.html")
    assert numbers == tmp_path / "bench.json" and json.loads(numbers.read_text()) == report.fields
    assert sorted(os.listdir(tmp_path)) == ["bench.html", "bench.json"]
    page = (tmp_path / "bench.html").read_text()
    # Nothing from outside: URLs are names of XML, references lead into the page.
    urls = set(re.findall(r"\w+://[^\"'<> ]*", page))
    assert urls == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"(?:xlns|xmlns:?\w*)=\"([^\"]*)", page)) == urls
    assert all(target.startswith("#") for target in re.findall(r"(?:href|src)=\"([^\"]*)", page))
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", page))
    assert "<script" not in page and "@import" not in page and "<link" not in page
    assert "some &lt;vectors&gt;" in page and "some <vectors>" not in page
    assert page.count("<svg") == 3 and "prefers-color-scheme: dark" in page
    for text in report.recommendations:
        assert text in page
    used = set(re.findall(r"var\((--[\w-]+)\)", page))
    assert used <= set(re.findall(r"(--[\w-]+):", page)) and "--series-3" in used
    # Colors that are not variables would be invisible in the dark.
    drawn = "".join(re.findall(r"<svg.*?</svg>", page, re.S))
    assert set(re.findall(r"#[0-9a-f]{6}\b", drawn)) <= {"#000000"}


def test_page_of_nothing(report):
    pytest.importorskip("matplotlib")
    assert "<svg" not in nearwise.BenchReport(report.fields | {"methods": [], "recommendations": []}).html()


def test_libraries_that_are_missing(monkeypatch):
    monkeypatch.setattr(methods.Rival, "is_installed", property(lambda self: self.module == "usearch"))
    found = methods.select(["exact"], None)
    assert found.names == ("exact", "usearch_f32", "usearch_f16", "usearch_i8")
    assert {each["library"] for each in found.left_out} == {"faiss", "hnswlib", "scann", "pynndescent"}
    with pytest.raises(nearwise.Error, match="faiss is not installed: pip install faiss-cpu") as caught:
        nearwise.bench(ROWS, against=["usearch", "faiss"])
    assert caught.value.code == "unsupported"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"against": "annoy"}, "against: expected some of faiss, hnswlib"),
        ({"kinds": "flat"}, "kinds: expected some of exact, ivf_flat"),
        ({"kinds": [], "against": []}, "at least one index"),
        ({"target_recalls": [1.5]}, "target_recalls: expected above 0"),
        ({"target_recalls": []}, "target_recalls: expected at least one"),
        ({"metric": "hamming"}, "metric: expected one of"),
        ({"k": 3000}, "k: expected at most 1600"),
        ({"queries": QUERIES[:, :5]}, "queries: expected dimension 16"),
        ({"output": "bench.txt"}, "output: expected the name of an .html file"),
        ({"rows": ROWS[:0]}, "rows: expected a 2-D array"),
    ],
)
def test_wrong_arguments(arguments, words):
    with pytest.raises(nearwise.ArgumentError, match=words):
        nearwise.bench(**{"rows": ROWS, "against": []} | arguments)


def test_an_output_that_cannot_be_created_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "run", lambda *_: pytest.fail("it began to measure"))
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "page.json").mkdir()

    def refused(name, words):
        with pytest.raises(nearwise.Error, match=words) as caught:
            nearwise.bench(ROWS, against=[], output=tmp_path / name)
        assert caught.value.code == "cannot_create"

    refused("nowhere/page.html", "nowhere/page.html: No such file")
    refused("folder.html", "folder.html: Is a directory")
    refused("page.html", "page.json: Is a directory")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write to any folder
    refused("other.html", "other.html: Permission denied")


def test_what_fails_is_left_out_with_the_reason():
    with pytest.warns(RuntimeWarning, match="ivf_pq is left out: .*256"):
        made = nearwise.bench(ROWS[:250], kinds=["exact", "ivf_pq"], against=[], repeat=1, threads=1)
    assert list(by_name(made)) == ["exact"]
    assert [each["library"] for each in made.fields["left_out"]] == ["ivf_pq"] and "256" in made.remarks[0]


def test_a_process_that_ends_is_reported(tmp_path):
    made = prepared(tmp_path)
    with process.MethodProcess("exact", made) as one:
        one.ask("build")
        os.kill(one._process.pid, signal.SIGKILL)
        one._process.wait()  # so that the command meets a closed pipe, now and when it is closed
        with pytest.raises(process.MethodFailed, match="ended by signal 9"):
            one.ask("measure", setting={})


@pytest.mark.skipif(sys.platform != "linux", reason="limits of other libraries are those of Linux")
def test_memory_of_other_libraries_is_limited(tmp_path):
    code = (
        "from nearwise._bench.worker import limit_memory\nimport numpy\n"
        "limit_memory(50 << 20)\nnumpy.ones(10 << 20, numpy.uint8)\n"
        "try:\n    numpy.ones(80 << 20, numpy.uint8)\nexcept MemoryError:\n    print('refused')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path,
                         env=process.environment(prepared(tmp_path), False))
    assert run.stdout == "refused\n", run.stderr


def test_progress_ends_complete_and_errors_stop_it():
    steps = []
    nearwise.bench(ROWS[:400], kinds=["exact", "ivf_flat"], against=[], repeat=2, threads=1,
                   progress=lambda *step: steps.append(step))
    assert steps == sorted(steps) and steps[-1] == (20, 20) and len(steps) >= 6

    def stop(done, total):
        raise ArithmeticError("enough")

    with pytest.raises(ArithmeticError):
        nearwise.bench(ROWS[:400], kinds="exact", against=[], repeat=1, progress=stop)


def test_openblas_knows_the_cpu(tmp_path, monkeypatch):
    made = prepared(tmp_path)
    monkeypatch.setattr(process, "cpu_flags", lambda: frozenset(["avx2", "avx512vl"]))
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert process.environment(made, True)["OPENBLAS_CORETYPE"] == "SKYLAKEX"
    assert "OPENBLAS_CORETYPE" not in process.environment(made, False)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "ZEN")
    assert process.environment(made, True)["OPENBLAS_CORETYPE"] == "ZEN"


def test_machine():
    found = machine.describe()
    assert found["cpus"] >= 1 and found["cpu"]


def run_command(folder, *arguments):
    """The verb as a user runs it, in a process of its own."""
    return subprocess.run([sys.executable, "-m", "nearwise._bench.command", *map(str, arguments)], cwd=folder,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))},
                          capture_output=True, text=True, timeout=120)


def test_command(tmp_path):
    pytest.importorskip("matplotlib")
    nearwise.write_vectors(tmp_path / "base.fbin", ROWS)
    nearwise.write_vectors(tmp_path / "queries.npy", QUERIES)
    run = run_command(tmp_path, "base.fbin", "--queries", "queries.npy", "-k", 3, "--kinds", "exact", "--against", "",
                      "--target-recall", "0.95", "--repeat", 1, "--threads", 1, "-o", "page.html")
    assert run.returncode == 0 and run.stdout == "", run.stderr
    assert "nearwise: For batches of 50 at recall 0.95: nearwise Exact, " in run.stderr
    assert run.stderr.endswith("nearwise: wrote page.html and page.json\n")
    fields = json.loads((tmp_path / "page.json").read_text())
    assert fields["data"]["title"] == "base.fbin" and fields["k"] == 3 and not fields["data"]["held_out"]

    run = run_command(tmp_path, "base.fbin", "--kinds", "exact", "--against", "", "--repeat", 1, "--json", "--rows", 300)
    assert run.returncode == 0 and run.stderr == ""
    assert json.loads(run.stdout)["data"]["rows"] == 300 and (tmp_path / "nearwise-bench.html").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["missing.fbin"], 66, "missing.fbin"),
        (["base.fbin", "--against", "annoy"], 2, "against: expected some of"),
        (["base.fbin", "-k", "0"], 2, "a whole number of at least 1, got '0'"),
        (["base.fbin", "--target-recall", "2"], 2, "above 0 and at most 1, got '2'"),
        (["base.fbin", "-o", "page.pdf"], 2, "an .html file"),
        (["base.fbin", "-o", "nowhere/page.html"], 73, "No such file"),
        ([], 2, "DATA"),
    ],
)
def test_command_refuses(tmp_path, capsys, monkeypatch, arguments, code, words):
    monkeypatch.chdir(tmp_path)
    nearwise.write_vectors("base.fbin", ROWS[:20])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    try:
        ended = command.main(arguments)
    except SystemExit as error:
        ended = error.code
    said = capsys.readouterr()
    assert ended == code and words in said.err and said.err.startswith("nearwise: ") and said.err.count("\n") == 1


def test_command_ended_by_a_signal_leaves_no_process(tmp_path):
    nearwise.write_vectors(tmp_path / "base.fbin", ROWS)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "nearwise._bench.command", "base.fbin", "--repeat", "1000", "--kinds", "exact",
         "--against", "", "-o", "page.html"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), "TMPDIR": str(temporary)})
    until = time.monotonic() + 60
    while not list(temporary.glob("*/exact.log")) and time.monotonic() < until and running.poll() is None:
        time.sleep(0.05)
    running.terminate()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 143 and "interrupted" in errors, errors
    assert list(temporary.iterdir()) == [] and not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("library", sorted(methods.RIVALS))
def test_other_libraries(library, tmp_path):
    """Their methods find what exact search finds, and can be saved: where they are installed."""
    pytest.importorskip(methods.RIVALS[library].module)
    made = nearwise.bench(ROWS, k=5, kinds="exact", against=library, repeat=1, target_recalls=0.9, threads=1)
    found = by_name(made)
    left_out = {each["library"] for each in made.fields["left_out"]}
    assert set(methods.RIVALS[library].methods) - set(found) <= left_out & {"usearch_i8"}
    for name, each in found.items():
        assert max(one["recall"] for one in each["measurements"]) > 0.9, name
        assert each["disk_bytes"] > 1600 * 16, name
