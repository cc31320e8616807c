"""Threads, forks, signals, and files that change while they are mapped."""

import hashlib
import os
import shutil
import time

import isolation
import numpy as np
from limits import limits_of
from outcomes import Finding, Outcome, right, right_if, wrong
from signals import Busy, Missed, latency
from vectors import DIM, QUERIES, ROWS, K, normal

from cases.registry import Cases

CASES = Cases()


@CASES.add(supervises=True)
def ctrl_c(adapter):
    """Ctrl-C in a call of many seconds"""

    def interrupt():
        try:
            seconds = latency(adapter.long_call(), 0.5 if adapter.quick else 2)
        except Missed:
            return Finding(Outcome.IGNORED, "the call ended by itself")
        return Finding(Outcome.RIGHT if seconds < 2 else Outcome.IGNORED, f"KeyboardInterrupt after {seconds:.2f} s")

    found = isolation.run(interrupt, limits_of(adapter, 60))
    return Finding(Outcome.IGNORED, found.note) if found.outcome == Outcome.HANG else found


@CASES.add(seconds=60, is_alone=True)
def fork_after_search(adapter):
    """search in a child forked after a search"""
    index = adapter.built()
    many = np.tile(QUERIES, (20, 1))
    expected = np.array(adapter.search(index, many, K)[0])

    def search():
        return right_if(np.array_equal(adapter.search(index, many, K)[0], expected), "the child's answers")

    found = isolation.run(search, isolation.Limits(seconds=25, is_documented=adapter.is_documented))
    return Finding(found.outcome, found.note)


@CASES.add("extend", "queries", seconds=240, is_alone=True)
def search_while_adding(adapter):
    """search on one thread, additions on another"""
    vectors = normal(4000 if adapter.quick else 20_000, DIM, seed=2)
    index = adapter.empty(capacity=len(vectors))
    adapter.add(index, vectors[:1000])
    first = np.array(adapter.search(index, vectors[:64], 1)[1])
    wrong_answers = []

    def search():
        ids, distances = (np.asarray(array) for array in adapter.search(index, vectors[:64], 1))
        # What is found can only come nearer; approximate searches may miss some of it.
        is_near = (distances <= first + 1e-3).mean() > 0.85
        if not is_near or ids.min() < 0 or ids.max() >= len(vectors):
            wrong_answers.append(ids)

    with Busy(search) as busy:
        for begin in range(1000, len(vectors), 100):
            adapter.add(index, vectors[begin : begin + 100])
            time.sleep(0.001)  # locks are not fair: searches wait for additions
    if busy.error:
        raise busy.error
    is_right = not wrong_answers and adapter.size(index) == len(vectors)
    return right_if(is_right, f"{busy.calls} searches, {len(wrong_answers)} wrong")


@CASES.add("map", supervises=True)
def two_processes_map_one_file(adapter):
    """two processes search one mapped file"""

    def search(_):
        index = adapter.map(adapter.base_path)
        return right(hashlib.sha256(np.asarray(adapter.search(index, QUERIES, K)[0]).tobytes()).hexdigest())

    # A child goes on with its next search while the findings of the other one are awaited.
    pairs = zip(*(isolation.run_many(search, 10, limits_of(adapter)) for _ in range(2)))
    findings = [finding for pair in pairs for finding in pair]
    faults = [finding for finding in findings if finding.outcome != Outcome.RIGHT]
    return faults[0] if faults else right_if(len({finding.note for finding in findings}) == 1, "the same answers")


def copied(adapter):
    path = adapter.folder / f"copy-{os.getpid()}"
    shutil.copy(adapter.base_path, path)
    return path


@CASES.add("map", is_alone=True)
def mapped_file_is_truncated(adapter):
    """a mapped file is cut off by another process"""
    path = copied(adapter)
    index = adapter.map(path)
    os.truncate(path, 4096)
    before = np.asarray(adapter.search(adapter.load(adapter.base_path), QUERIES, K)[0])
    after = np.asarray(adapter.search(index, QUERIES, K)[0])
    return right_if(np.array_equal(before, after), "answered from memory")


@CASES.add("map", is_alone=True)
def saved_over_its_own_file(adapter):
    """a mapped index is saved over its own file"""
    path = copied(adapter)
    index = adapter.map(path)
    before = np.array(adapter.search(index, QUERIES, K)[0])
    adapter.save(index, path)
    same = all(
        np.array_equal(before, adapter.search(each, QUERIES, K)[0]) for each in (index, adapter.load(path))
    )
    return right_if(same, "the same answers")


@CASES.add("save", supervises=True, is_quick=False)
def same_file_with_more_threads(adapter):
    """files built with 1, 2 and again 2 threads are the same bytes"""
    digests = []
    for number, threads in enumerate((1, 2, 2)):
        path = adapter.folder / f"threads-{number}"

        def build(threads=threads, path=path):
            adapter.threads = threads
            adapter.load_library()
            index = adapter.empty()
            adapter.add(index, ROWS)
            adapter.save(index, path)
            return right()

        built = isolation.run(build, limits_of(adapter, 300))
        if built.outcome != Outcome.RIGHT:
            return built
        digests.append(hashlib.sha256(path.read_bytes()).hexdigest()[:8])
    return right(digests[0]) if len(set(digests)) == 1 else wrong(", ".join(digests))
