"""Fixtures of the command line's tests. They run the real program, named by NEARWISE_BIN."""
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import formats

TIMEOUT_SECONDS = 60


def program():
    path = os.environ.get("NEARWISE_BIN")
    if not path:
        pytest.exit("set NEARWISE_BIN to the program to test", returncode=2)
    return str(Path(path).resolve())


def environment(**changes):
    """Nothing of the caller's that changes what the program does."""
    env = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    env.update(changes)
    return env


def without_progress(stderr):
    """The bytes of stderr without progress lines, which work of more than a second prints: on a busy machine any does."""
    return re.sub(rb"(?m)^nearwise: [a-z ]+? +\d+ %  .*\n", b"", stderr)


def interrupt(process, number=signal.SIGINT):
    """Sends the signal; returns the exit code of a process that ends soon. `tools/prove trust --only interrupts` measures
    how soon; a machine that is busy with other tests is given more time."""
    process.send_signal(number)
    process.wait(timeout=5)
    return process.returncode


class Result:
    def __init__(self, completed):
        self.code = completed.returncode
        self.out = completed.stdout
        self.err = completed.stderr

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.out}\nstderr: {self.err}"


@pytest.fixture
def nearwise(tmp_path):
    """nearwise("knn", path, ..., expect=0) runs the program in tmp_path and checks the exit code."""

    def run(*arguments, expect=0, env=None, cwd=tmp_path, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        completed = subprocess.run([program(), *map(str, arguments)], text=True, timeout=TIMEOUT_SECONDS, cwd=cwd,
                                   env=environment(**(env or {})), **options)
        result = Result(completed)
        assert result.code == expect, result
        return result

    return run


@pytest.fixture
def start(tmp_path):
    """Starts the program without waiting; whatever is left at the end of the test is killed."""
    started = []

    def run(*arguments, ignore=None, env=None, **options):
        def set_signals():
            # A test runner in the background of a script has SIGINT ignored, under nohup SIGHUP; children
            # inherit that.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if ignore == number else signal.SIG_DFL)

        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([program(), *map(str, arguments)], cwd=tmp_path, env=environment(**(env or {})),
                                   preexec_fn=set_signals, **options)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def small(tmp_path):
    """200 base rows and 20 queries of dimension 16, f32, as base.fbin and queries.fbin in tmp_path."""
    random = np.random.default_rng(7)
    base = random.standard_normal((200, 16), dtype=np.float32)
    queries = random.standard_normal((20, 16), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", base)
    formats.write_vectors(tmp_path / "queries.fbin", queries)
    return base, queries


@pytest.fixture(scope="session")
def long_work(tmp_path_factory):
    """Arguments of a knn that no machine finishes within a test. Little memory makes for small blocks, and so for
    frequent progress."""
    path = tmp_path_factory.mktemp("long") / "base.fbin"
    rows = np.random.default_rng(1).standard_normal((1000, 128), dtype=np.float32)
    formats.write_vectors(path, np.tile(rows, (200, 1)) + np.arange(200_000, dtype=np.float32)[:, None] / 1e5)
    yield ["knn", str(path), str(path), "--limit-queries", "200000", "--threads", "1",
           "--memory-limit", "24MiB"]
    path.unlink()  # 100 MB, and pytest keeps the folders of three runs
