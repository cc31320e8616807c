"""The process around inverted files: threads, forks, Ctrl-C, progress, memory that comes back."""

import os
import signal
import threading
import time

import nearwise
import numpy as np
import pytest
from test_process import finish, python


def test_threads_search_while_rows_come_and_go(rows):
    index = nearwise.IvfFlat.train(rows, lists=16)
    index.add(rows)
    other = index.empty_copy()
    other.add(rows[:10], np.arange(10_000, 10_010))
    wrong = []
    stop = threading.Event()

    def search(part):
        queries = rows[part * 100 : part * 100 + 100]
        while not stop.is_set():
            try:
                found = index.search(queries, 1, probes=16)
                assert (found.distances == 0).all() and len(index) >= 2000
            except BaseException as error:
                wrong.append(error)
                return

    threads = [threading.Thread(target=search, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for round in range(20):
        index.add(rows[:200], np.arange(5000, 5200))
        index.remove(np.arange(5000, 5200))
        index.merge(other)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(index) == 2200


def test_two_indexes_merged_into_each_other(flat, rows):
    left, right = flat.empty_copy(), flat.empty_copy()
    left.add(rows[:3])
    right.add(rows[:3])

    def merge(into, other):
        for _ in range(5):
            into.merge(other)

    threads = [threading.Thread(target=merge, args=pair, daemon=True) for pair in ((left, right), (right, left))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(left) > 3 and len(right) > 3


@pytest.mark.parametrize("limit", [None, "64MiB"])
def test_a_forked_child_searches_and_adds(rows, limit):
    index = nearwise.IvfFlat.train(rows, lists=8, memory_limit=limit)
    index.add(rows)
    found = index.search(rows[:9], 5)
    child = os.fork()
    if child == 0:
        try:
            same = (index.search(rows[:9], 5).ids == found.ids).all()
            index.add(rows)
            os._exit(0 if same and len(index) == 4000 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_it_and_its_results_are_freed(rows):
    resource = pytest.importorskip("resource")
    many = np.tile(rows, (20, 1))  # 4 MB

    def use():
        index = nearwise.IvfFlat.train(rows, lists=4)
        index.add(many)
        assert index.empty_copy().search(rows[:10], 3).ids.shape == (10, 3)

    for _ in range(3):
        use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(15):
        use()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def test_progress(rows):
    reports = []

    def report(done, total):
        reports.append((done, total))

    index = nearwise.IvfPq.train(rows, lists=8, code_bytes=6, progress=report)
    assert reports and all(0 <= done <= total for done, total in reports)
    reports.clear()
    index.add(rows, progress=report)
    assert reports and reports[-1][0] == reports[-1][1]
    reports.clear()
    index.search(rows[:70], 3, progress=report)
    assert reports[-1] == (70, 70) and all(total == 70 for _, total in reports)
    other = index.empty_copy()
    other.add(rows[:90])
    reports.clear()
    index.merge(other, progress=report)
    assert reports[-1] == (90, 90)
    reports.clear()
    assert index.remove([1, 2], progress=report) == 4
    assert reports[-1] == (2090, 2090)


def test_progress_that_raises_stops_it():
    rows = np.random.default_rng(0).standard_normal((60_000, 128), dtype=np.float32)

    class Enough(Exception):
        pass

    def enough(done, total):
        raise Enough

    began = time.monotonic()
    with pytest.raises(Enough):
        nearwise.IvfFlat.train(rows, lists=2000, iterations=1000, training_rows=10**9, progress=enough)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "call",
    [
        "nearwise.IvfFlat.train(rows, lists=5000, training_rows=10**9)",
        "index.add(rows)",
        "index.search(rows, 10, probes=2000)",
    ],
)
def test_ctrl_c_is_answered(call):
    process = python(
        f"""
        # Adding takes long with many lists: a signal at its very end would find the rows added.
        lists = 10_000 if "add" in {call!r} else 2000
        index = nearwise.IvfFlat.train(rows[: 2 * lists], lists=lists, iterations=1)
        index.add(rows[:30_000] if "search" in {call!r} else rows[:10])
        size = len(index)
        print("ready", flush=True)
        try:
            {call}
            print("done")
        except KeyboardInterrupt:
            print(time.monotonic())
        # The index goes on as before.
        print(len(index) == size, index.search(rows[:3], 1, probes=2000).ids.tolist())
        """
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = finish(process, 30)
    stopped, after = output.splitlines()
    assert stopped != "done", "it was over before the signal: make it longer"
    assert float(stopped) - sent < 0.5
    assert after == "True [[0], [1], [2]]"
