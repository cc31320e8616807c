"""The process around a search: Ctrl-C, progress, threads, forks, the end of the interpreter, python -O."""

import io
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import nearwise
import numpy as np
import pytest
from checks import in_threads, lets_other_threads_run, stops_by_progress
from nearwise._progress import ProgressBar

# Many seconds of work on any machine, in little memory.
LONG_SEARCH = """
import nearwise, numpy as np, os, signal, sys, threading, time
rows = np.random.default_rng(0).standard_normal((120_000, 512), dtype=np.float32)
def search(**options):
    return nearwise.knn(rows, rows, 10, **options)
"""


def answer_ctrl_c():
    # A test runner in the background of a script has SIGINT ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def python(code, *arguments, **options):
    return subprocess.Popen(
        [sys.executable, *arguments, "-c", LONG_SEARCH + textwrap.dedent(code)],
        preexec_fn=answer_ctrl_c,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process, seconds):
    try:
        return process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        pytest.fail(f"not over after {seconds} s: {process.communicate()}")


def is_interrupted(prepare, call, after):
    """Ctrl-C during `call` is answered soon, and what `after` prints is returned."""
    process = python(
        f"""
        {prepare}
        print("ready", flush=True)
        try:
            {call}
            print("done")
        except KeyboardInterrupt:
            print(time.monotonic())
        print({after})
        """
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.7)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    stopped, printed = finish(process, 30)[0].splitlines()
    assert stopped != "done", "it was over before the signal: make it longer"
    # `tools/prove trust --only interrupts` measures it; a machine busy with other tests is given more time.
    assert float(stopped) - sent < 5
    return printed


@pytest.mark.parametrize(
    "call",
    [
        "search()",
        "search(progress=True)",
        "nearwise.exact_knn_graph(rows, 10, threads=1)",
        "nearwise.range_search(rows, rows, 0)",
        "prepared.search(rows, 10)",
        "nearwise.train_kmeans(rows, 5000, tolerance=0)",
        "nearwise.assign(rows, rows)",
    ],
)
def test_ctrl_c_is_answered(call):
    # The process goes on as before.
    after = "nearwise.knn(rows[:3], rows[:9], 1).ids.tolist()"
    assert is_interrupted("prepared = nearwise.Exact(rows)", call, after) == "[[0], [1], [2]]"


def test_a_handler_of_another_signal_runs_during_a_search():
    process = python(
        """
        def stop(*_):
            raise SystemExit(7)
        signal.signal(signal.SIGTERM, stop)
        print("ready", flush=True)
        search()
        """
    )
    process.stdout.readline()
    time.sleep(0.3)
    process.terminate()
    finish(process, 20)
    assert process.returncode == 7


def test_a_daemon_thread_does_not_hold_up_the_end():
    process = python(
        """
        threading.Thread(target=search, daemon=True).start()
        time.sleep(0.3)
        """
    )
    began = time.monotonic()
    _, errors = finish(process, 20)
    assert process.returncode == 0 and errors == ""
    assert time.monotonic() - began < 15


def test_progress_is_reported_on_the_calling_thread(base):
    rows = np.tile(base, (100, 1))
    reports = []
    found = nearwise.knn(rows, rows, 3, progress=lambda done, total: reports.append((done, total, threading.get_ident())))
    assert found.ids.shape == (30_000, 3)
    done, totals, threads = zip(*reports)
    assert list(done) == sorted(done) and done[-1] == totals[-1]
    assert len(set(totals)) == 1 and set(threads) == {threading.get_ident()}


def test_progress_that_raises_stops_the_search():
    rows = np.random.default_rng(0).standard_normal((120_000, 512), dtype=np.float32)
    stops_by_progress(nearwise.knn, rows, rows, 10, seconds=5)


def test_progress_may_search_itself(queries, base):
    inner = []
    rows = np.tile(base, (60, 1))
    nearwise.knn(rows, rows, 3, progress=lambda *_: inner.append(nearwise.knn(queries, base, 1)))
    assert inner and inner[0].ids.shape == (20, 1)


class TestProgressBar:
    def bar(self, tty):
        stream = io.StringIO()
        stream.isatty = lambda: tty
        self.now = 100.0
        return stream, ProgressBar("knn", stream, lambda: self.now)

    def test_silent_in_the_first_second(self):
        stream, bar = self.bar(tty=True)
        self.now += 0.9
        bar(50, 100)
        bar.close()
        assert stream.getvalue() == ""

    def test_one_line_drawn_over_and_removed(self):
        stream, bar = self.bar(tty=True)
        self.now += 2
        bar(4_000_000, 10_000_000)
        assert stream.getvalue() == "\rknn [############..................]  40%  3 s left"
        self.now += 0.05
        bar(4_100_000, 10_000_000)  # too soon
        self.now += 2
        bar(10_000_000, 10_000_000)
        bar.close()
        assert stream.getvalue().count("\rknn") == 2 and stream.getvalue().endswith("\r")

    def test_occasional_lines_in_a_log(self):
        stream, bar = self.bar(tty=False)
        for _ in range(300):
            self.now += 0.1
            bar(1, 2)
        bar.close()
        assert 2 <= stream.getvalue().count("\n") <= 4 and "\r" not in stream.getvalue()

    def test_no_total_and_no_rate(self):
        stream, bar = self.bar(tty=False)
        self.now += 2
        bar(0, 0)
        assert " 99%" in stream.getvalue()  # complete only when it is closed

    def test_no_stderr(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", None)
        bar = ProgressBar("knn")
        bar(1, 2)
        bar.close()


def test_two_threads_at_once(queries, base):
    rows = np.tile(base, (20, 1))
    expected = nearwise.knn(rows, rows, 5)
    answers = []

    def search():
        for _ in range(3):
            answers.append(nearwise.knn(rows, rows, 5))

    in_threads(search, (), ())()
    assert len(answers) == 6
    for answer in answers:
        np.testing.assert_array_equal(answer.ids, expected.ids)


def test_other_python_threads_run_meanwhile():
    rows = np.random.default_rng(0).standard_normal((20_000, 128), dtype=np.float32)
    lets_other_threads_run(nearwise.knn, rows, rows, 10, threads=1)


FORK = """
small = rows[:1000]
expected = nearwise.knn(small, small, 5).ids
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a hang is death by signal
        same = (nearwise.knn(small, small, 5).ids == expected).all()
        os._exit(0 if same else 1)
    # The parent goes on at the same time.
    assert (nearwise.knn(small, small, 5).ids == expected).all()
    assert os.waitpid(child, 0)[1] == 0, "child"
print("ok")
"""


def test_a_forked_child_can_search():
    process = python(FORK)
    output, errors = finish(process, 100)
    assert output == "ok\n", errors


def test_multiprocessing_with_fork():
    process = python(
        """
        import multiprocessing
        def ids(first):
            return nearwise.knn(rows[first:first + 50], rows[:500], 1).ids[:, 0].tolist()
        if __name__ == "__main__":
            ids(0)
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(ids, [0, 50, 100]) == [list(range(f, f + 50)) for f in (0, 50, 100)])
        """
    )
    output, errors = finish(process, 60)
    assert output == "True\n", errors


def test_errors_under_python_O():
    """No check is an assert statement that -O removes."""
    tests = Path(__file__).parent / "test_errors.py"
    result = subprocess.run(
        [sys.executable, "-O", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert result.returncode == 0, result.stdout
    assert "passed" in result.stdout
