#!/usr/bin/env python3
"""k-means of a file by blocks on a Ray cluster of this machine, against the same blocks without one.

The direct calls take the same blocks one after the other, with as many threads as there are workers. Prints one line of
JSON. For `tools/isolated`.
"""
import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "cluster"))

from ray_nodes import Nodes  # noqa: E402  (found through the line above)

import nearwise  # noqa: E402
import nearwise.cluster  # noqa: E402
import numpy as np  # noqa: E402
from nearwise.cluster import _kmeans  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--clusters", type=int, default=1024)
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--block-rows", type=int, default=2**17)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


def timed(call):
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def main():
    options = parse()
    rows = nearwise.read_vectors(options.base)
    start = nearwise.seed_kmeans(rows, options.clusters, seeding="random")
    file = _kmeans._File(os.path.abspath(options.base), *rows.shape, options.block_rows, "sqeuclidean", 0, 0)

    def one_after_the_other(work, on_task):
        work = work.with_threads(options.workers)
        for task in work.tasks:
            on_task(task.name, work.run_task(task.name))

    def direct():
        return _kmeans.Training(file, one_after_the_other).run(start, options.iterations, 0)

    def on_cluster():
        return nearwise.cluster.train_kmeans(options.base, options.clusters, iterations=options.iterations, tolerance=0,
                                             initial=start, block_rows=options.block_rows)

    nodes = Nodes(options.workers, cpus=1)
    calls = {"direct": direct, "cluster": on_cluster, "direct_again": direct}
    expected = direct()
    seconds, identical = {name: [] for name in calls}, True
    on_cluster()  # processes start
    for _ in range(options.repeat):
        for name, call in calls.items():
            taken, found = timed(call)
            seconds[name].append(taken)
            identical = identical and all(np.array_equal(left, right) for left, right in zip(found, expected))
    nodes.end()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(json.dumps({
        "rows": len(rows), "clusters": options.clusters, "iterations": options.iterations, "medians": medians,
        "seconds": seconds, "overhead": medians["cluster"] / medians["direct"] - 1,
        "noise": medians["direct_again"] / medians["direct"] - 1, "identical": identical}))


if __name__ == "__main__":
    main()
