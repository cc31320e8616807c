"""The process around inverted files: threads, forks, Ctrl-C, progress, memory that comes back."""

import contextlib
import threading

import nearwise
import numpy as np
import pytest
from checks import frees_what_it_takes, in_threads, refuses, reports_of, runs_in_a_child, stops_by_progress
from samples import filled
from test_process import is_interrupted


def test_threads_search_while_rows_come_and_go(rows):
    index = filled(nearwise.IvfFlat, rows, lists=16)
    other = index.empty_copy()
    other.add(rows[:10], np.arange(10_000, 10_010))
    stop = threading.Event()

    def search(part):
        queries = rows[part * 100 : part * 100 + 100]
        while not stop.is_set():
            found = index.search(queries, 1, probes=16)
            assert (found.distances == 0).all() and len(index) >= 2000

    join = in_threads(search, (0,), (1,), (2,))
    for _ in range(20):
        index.add(rows[:200], np.arange(5000, 5200))
        index.remove(np.arange(5000, 5200))
        index.merge(other)
        index.remove(np.arange(10_000, 10_005))
        index.update(np.arange(10_005, 10_010), rows[:5])
        index.remove(np.arange(10_005, 10_010))
    stop.set()
    join()
    assert len(index) == 2000


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq])
def test_searches_see_each_change_as_a_whole_or_not_at_all(rows, kind):
    index = filled(kind, rows, lists=8)
    ids = np.arange(5000, 5300)
    changes = [
        lambda: index.add(rows[:300], ids),
        lambda: index.update(ids, rows[300:600]),
        lambda: index.remove(ids),
    ]
    filter = nearwise.Filter(np.concatenate([np.arange(1000), ids]))
    queries = rows[:600:3]
    asks = [
        lambda: index.search(queries, 3, probes=8).ids,
        lambda: index.search(queries, 3, probes=8, filter=filter).ids,
        lambda: index.search(queries, 3, probes=8, exclude=np.tile(ids[:5], (len(queries), 1))).ids,
        lambda: index.ids(),
    ]
    expected = [set() for _ in asks]
    for change in changes:
        change()
        for number, ask in enumerate(asks):
            expected[number].add(ask().tobytes())
    assert [len(answers) for answers in expected] == [3, 3, 3, 2]
    seen = [set() for _ in asks]
    stop = threading.Event()

    def search(first):
        while not stop.is_set():
            for number, ask in list(enumerate(asks))[first:]:
                answer = ask().tobytes()
                assert answer in expected[number]
                seen[number].add(answer)

    join = in_threads(search, (0,), (1,), (2,))
    for _ in range(200):
        for change in changes:
            change()
        if seen == expected:
            break
    stop.set()
    join()
    assert seen == expected


def test_an_update_of_a_missing_id_changes_nothing(flat, rows):
    index = flat.empty_copy()
    index.add(rows[:3])
    refuses(ValueError, "update: id 9 is not in the index", index.update, [1, 9], rows[5:7])
    refuses(ValueError, "update: there must be one id per row, got 2 for 1", index.update, [1, 2], rows[5:6])
    assert (index.get([0, 1, 2]) == rows[:3]).all() and 9 not in index


def test_two_indexes_merged_into_each_other(flat, rows):
    left, right = flat.empty_copy(), flat.empty_copy()
    left.add(rows[:3])
    right.add(rows[:3], range(10, 13))

    def merge(into, other):
        # The first to merge has all ids; the other is refused from then on.
        with contextlib.suppress(ValueError):
            for _ in range(5):
                into.merge(other)

    in_threads(merge, (left, right), (right, left))(20)
    assert sorted((len(left), len(right))) == [3, 6]


@pytest.mark.parametrize("limit", [None, "64MiB"])
def test_a_forked_child_searches_and_adds(rows, limit):
    index = filled(nearwise.IvfFlat, rows, lists=8, memory_limit=limit)
    found = index.search(rows[:9], 5)

    def searches_and_adds():
        same = (index.search(rows[:9], 5).ids == found.ids).all()
        index.add(rows)
        return same and len(index) == 4000

    runs_in_a_child(searches_and_adds)


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq])
def test_a_child_forked_during_changes_searches(rows, kind):
    index = filled(kind, rows, lists=8)
    more = np.arange(10_000, 10_500)
    stop = threading.Event()

    def found():
        return index.search(rows[:600], 3, probes=8).ids

    def change():
        while not stop.is_set():
            index.add(rows[:500], more)
            found()
            index.remove(more)

    without = found()
    index.add(rows[:500], more)
    expected = {2000: without, 2500: found()}
    index.remove(more)

    def search_and_change():
        # A change that was going on is there as a whole or not at all.
        same = (found() == expected[len(index)]).all()
        index.add(rows[:2])
        return same

    join = in_threads(change, ())
    try:
        for _ in range(20):
            runs_in_a_child(search_and_change)
    finally:
        stop.set()
        join()


def test_it_and_its_results_are_freed(rows):
    many = np.tile(rows, (20, 1))  # 4 MB

    def use():
        index = nearwise.IvfFlat.train(rows, lists=4)
        index.add(many)
        assert index.empty_copy().search(rows[:10], 3).ids.shape == (10, 3)

    frees_what_it_takes(use, times=15)


def test_progress(rows):
    reports = reports_of(nearwise.IvfPq.train, rows, lists=8, code_bytes=6)
    assert reports and all(0 <= done <= total for done, total in reports)
    index = nearwise.IvfPq.train(rows, lists=8, code_bytes=6)
    reports = reports_of(index.add, rows)
    assert reports and reports[-1][0] == reports[-1][1]
    reports = reports_of(index.search, rows[:70], 3)
    assert reports[-1] == (70, 70) and all(total == 70 for _, total in reports)
    other = index.empty_copy()
    other.add(rows[:90], range(5000, 5090))
    assert reports_of(index.merge, other)[-1] == (90, 90)
    assert reports_of(index.remove, [1, 2])[-1] == (2, 2) and len(index) == 2088


def test_progress_that_raises_stops_it():
    rows = np.random.default_rng(0).standard_normal((60_000, 128), dtype=np.float32)
    stops_by_progress(nearwise.IvfFlat.train, rows, lists=2000, iterations=1000, training_rows=10**9)


@pytest.mark.parametrize(
    "call",
    [
        "nearwise.IvfFlat.train(rows, lists=5000, training_rows=10**9)",
        "index.add(rows)",
        "index.search(rows, 10, probes=2000)",
    ],
)
def test_ctrl_c_is_answered(call):
    prepare = f"""
        # Adding takes long with many lists: a signal at its very end would find the rows added.
        lists = 10_000 if "add" in {call!r} else 2000
        index = nearwise.IvfFlat.train(rows[: 2 * lists], lists=lists, iterations=1)
        index.add(rows[:30_000] if "search" in {call!r} else rows[:10])
        size = len(index)
"""
    # The index goes on as before.
    after = "len(index) == size, index.search(rows[:3], 1, probes=2000).ids.tolist()"
    assert is_interrupted(prepare.strip(), call, after) == "True [[0], [1], [2]]"
