"""Forks a process while its other threads work, and counts the children that answer.

    python tests/battery/forks.py --children 1000

Every child answers the same question as the parent did before, then changes what it inherited and ends as usual. One
that takes more than 30 s is killed and counts as hanging. Prints one JSON line.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections import Counter

import nearwise
import numpy as np

SECONDS = 30
ROWS = np.random.default_rng(1).standard_normal((4000, 32), dtype=np.float32)


class Busy:
    """Calls work() again and again on another thread."""

    def __init__(self, work):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.calls = 0

    def _run(self, work):
        while not self._stop.is_set():
            work()
            self.calls += 1

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def searching():
    prepared = nearwise.Exact(ROWS)
    expected = prepared.search(ROWS[:50], 5).ids
    return lambda: prepared.search(ROWS, 5), lambda: (prepared.search(ROWS[:50], 5).ids == expected).all()


def changing(kind, **options):
    index = kind.train(ROWS, lists=16, **options)
    index.add(ROWS)
    more = np.arange(10_000, 10_000 + len(ROWS))

    def found():
        return index.search(ROWS[:50], 5, probes=16).ids

    def change():
        index.add(ROWS, more)
        found()
        index.remove(more)

    expected = {len(ROWS): found()}
    index.add(ROWS, more)
    expected[len(index)] = found()
    index.remove(more)

    def answers():
        same = (found() == expected[len(index)]).all()
        index.add(ROWS[:3])
        return same

    return change, answers


def building():
    expected = nearwise.train_kmeans(ROWS, 20, seed=3).centroids
    return (
        lambda: nearwise.build_knn_graph(ROWS, 8),
        lambda: (nearwise.train_kmeans(ROWS, 20, seed=3).centroids == expected).all(),
    )


CASES = {
    "exact search": searching,
    "changes of IvfFlat": lambda: changing(nearwise.IvfFlat),
    "changes of IvfPq": lambda: changing(nearwise.IvfPq, code_bytes=8),
    "graph build": building,
}


def outcome_of_child(answers):
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        status = 1
        try:
            status = 0 if answers() else 2
        finally:
            # Half of the children run the handlers of a normal end, which may hang as well.
            os._exit(status) if os.getpid() % 2 else sys.exit(status)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "hangs" if os.WTERMSIG(status) == signal.SIGALRM else "killed"
    return {0: "answers", 2: "answers wrongly"}.get(os.WEXITSTATUS(status), "fails")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--children", type=int, default=1000)
    children = parser.parse_args().children
    outcomes = Counter()
    cases = {}
    began = time.monotonic()
    for number, (name, make) in enumerate(CASES.items()):
        count = children * (number + 1) // len(CASES) - children * number // len(CASES)
        work, answers = make()
        with Busy(work) as busy:
            while busy.calls == 0:
                time.sleep(0.01)
            found = Counter(outcome_of_child(answers) for _ in range(count))
        outcomes += found
        cases[name] = dict(found)
    print(json.dumps({"children": children, "outcomes": dict(outcomes), "cases": cases,
                      "seconds": round(time.monotonic() - began, 1)}))


if __name__ == "__main__":
    main()
