"""What filters that exclude little cost: times relative to the same search without one, measured in turn.

Prints one JSON line for each case, exact search and PQ: a mask that allows everything, 100 random excluded ids per query,
and the 100 nearest ones.

    python filter_costs.py --base base.u8bin --queries query.u8bin --threads 2
"""

import argparse
import json
import statistics
import time

import nearwise
import numpy as np

K = 10


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
    excluded = nearwise.Filter(exclude=chance.integers(len(base), size=(len(queries), 100)))
    # The hardest to leave out: the scan must then admit candidates as far as the 110th neighbour.
    nearest = nearwise.Filter(exclude=exact.search(queries, 100).ids)
    cases = {
        "all_true": (exact, everything),
        "all_true_pq": (index, everything),
        "excludes_exact": (exact, excluded),
        "excludes_pq": (index, excluded),
        "excludes_nearest_exact": (exact, nearest),
        "excludes_nearest_pq": (index, nearest),
    }
    for name in options.only or cases:
        searched, made = cases[name]
        measured = ratio(
            lambda searched=searched: searched.search(queries, K),
            lambda searched=searched, made=made: searched.search(queries, K, filter=made),
            options.repeat,
        )
        print(json.dumps({"case": name} | measured), flush=True)


if __name__ == "__main__":
    main()
