"""What filters that exclude little cost: times relative to the same search without one, measured in turn.

Prints one JSON line for each case, exact search and PQ: a mask that allows everything, 100 random excluded ids per query,
and the 100 nearest ones. Behind these lie the 101st to 110th neighbour, so that PQ is compared with a search for 110, and the
recall of what it finds is measured.

    python filter_costs.py --base base.u8bin --queries query.u8bin --threads 2
"""

import argparse
import json
import statistics
import time

import nearwise
import numpy as np

K = 10
EXCLUDED = 100


def ratio(plain, filtered, repeats):
    """Seconds of the second relative to the first: median and range of rounds, and the median by CPU time.

    A round runs them in the order plain, filtered, filtered, plain, so that a machine that becomes slower or faster
    meanwhile does so for both.
    """
    walls, cpus = [], []
    for number in range(repeats + 1):
        wall, cpu = {plain: 0.0, filtered: 0.0}, {plain: 0.0, filtered: 0.0}
        for work in (plain, filtered, filtered, plain):
            began, cpu_began = time.perf_counter(), time.process_time()
            work()
            wall[work] += time.perf_counter() - began
            cpu[work] += time.process_time() - cpu_began
        if number > 0:  # the first round warms up
            walls.append(wall[filtered] / wall[plain])
            cpus.append(cpu[filtered] / cpu[plain])
    return {
        "ratio": round(statistics.median(walls), 3),
        "range": [round(min(walls), 3), round(max(walls), 3)],
        "cpu": round(statistics.median(cpus), 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", nargs="+", help="some of the cases")
    options = parser.parse_args()
    base = np.asarray(nearwise.read_vectors(options.base))
    queries = np.asarray(nearwise.read_vectors(options.queries))[: options.count]
    context = nearwise.Context(threads=options.threads)
    exact = nearwise.Exact(base, context=context)
    index = nearwise.IvfPq.build(base, target_recall=0.95, context=context)
    everything = nearwise.Filter(np.ones(len(base), bool))
    chance = np.random.default_rng(1)
    excluded = nearwise.Filter(exclude=chance.integers(len(base), size=(len(queries), EXCLUDED)))
    near = exact.search(queries, EXCLUDED + K).ids
    nearest = nearwise.Filter(exclude=near[:, :EXCLUDED])
    cases = {
        "all_true": (exact, everything, K),
        "all_true_pq": (index, everything, K),
        "excludes_exact": (exact, excluded, K),
        "excludes_pq": (index, excluded, K),
        "excludes_nearest_exact": (exact, nearest, K),
        "excludes_nearest_pq": (index, nearest, EXCLUDED + K),
        "excludes_nearest_pq_to_10": (index, nearest, K),
    }
    for name in options.only or cases:
        searched, made, plain = cases[name]
        measured = ratio(
            lambda searched=searched, plain=plain: searched.search(queries, plain),
            lambda searched=searched, made=made: searched.search(queries, K, filter=made),
            options.repeat,
        )
        if made is nearest:
            found = searched.search(queries, K, filter=made).ids
            hits = sum(np.isin(row, right).sum() for row, right in zip(found, near[:, EXCLUDED:], strict=True))
            measured["recall"] = round(float(hits) / found.size, 4)
        print(json.dumps({"case": name} | measured), flush=True)


if __name__ == "__main__":
    main()
