"""What filters that exclude little cost: times relative to the same search without one, measured in turn.

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
    """Median seconds of the second relative to the first."""
    seconds = {plain: [], filtered: []}
    for number in range(repeats + 1):
        for work in (plain, filtered) if number % 2 else (filtered, plain):
            began = time.perf_counter()
            work()
            if number > 0:  # the first round warms up
                seconds[work].append(time.perf_counter() - began)
    return round(statistics.median(seconds[filtered]) / statistics.median(seconds[plain]), 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    base = np.asarray(nearwise.read_vectors(options.base))
    queries = np.asarray(nearwise.read_vectors(options.queries))[: options.count]
    context = nearwise.Context(threads=options.threads)
    exact = nearwise.Exact(base, context=context)
    index = nearwise.IvfPq.build(base, target_recall=0.95, context=context)
    everything = nearwise.Filter(np.ones(len(base), bool))
    # The nearest ones: the hardest to leave out.
    excluded = nearwise.Filter(exclude=exact.search(queries, 100).ids)
    print(
        json.dumps(
            {
                "all_true": ratio(
                    lambda: exact.search(queries, K), lambda: exact.search(queries, K, filter=everything), options.repeat
                ),
                "excludes_exact": ratio(
                    lambda: exact.search(queries, K), lambda: exact.search(queries, K, filter=excluded), options.repeat
                ),
                "excludes_pq": ratio(
                    lambda: index.search(queries, K), lambda: index.search(queries, K, filter=excluded), options.repeat
                ),
            }
        )
    )


if __name__ == "__main__":
    main()
