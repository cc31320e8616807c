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
import time
from collections import Counter

import nearwise
import numpy as np
from signals import Busy

SECONDS = 30
ROWS = np.random.default_rng(1).standard_normal((4000, 32), dtype=np.float32)


def searching():
    prepared = nearwise.Exact(ROWS)
    expected = prepared.search(ROWS[:50], 5).ids
    return lambda: prepared.search(ROWS, 5), lambda: np.array_equal(prepared.search(ROWS[:50], 5).ids, expected)


def changing(index, **every_vector):
    """every_vector: options of a search that finds all of them."""
    more = np.arange(10_000, 10_000 + len(ROWS))

    def found():
        return index.search(ROWS[:50], 5, **every_vector).ids

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
        lambda: np.array_equal(nearwise.train_kmeans(ROWS, 20, seed=3).centroids, expected),
    )


CASES = {
    "exact search": searching,
    "changes of IvfFlat": lambda: changing(nearwise.IvfFlat.build(ROWS, lists=16), probes=16),
    "changes of IvfPq": lambda: changing(nearwise.IvfPq.build(ROWS, lists=16, code_bytes=8), probes=16),
    "changes of GraphIndex": lambda: changing(nearwise.GraphIndex.build(ROWS, degree=16), beam=3 * len(ROWS)),
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
            while busy.calls == 0 and busy.error is None:
                time.sleep(0.01)
            found = Counter(outcome_of_child(answers) for _ in range(count))
        if busy.error:
            raise busy.error
        outcomes += found
        cases[name] = dict(found)
    print(json.dumps({"children": children, "outcomes": dict(outcomes), "cases": cases,
                      "seconds": round(time.monotonic() - began, 1)}))


if __name__ == "__main__":
    main()
