#!/usr/bin/env python3
"""Search on a Ray cluster of this machine against the same calls without one: 4 parts x 2 replicas, 10,000 queries.

The direct calls search the same parts one after the other, with as many threads as there are CPUs, and join the answers
as the cluster does. Then a replica is killed in the middle of a batch. Prints one line of JSON. For `tools/isolated`.
"""
import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "cluster"))

from ray_nodes import Nodes  # noqa: E402  (found through the line above)

import nearwise  # noqa: E402
import nearwise.cluster  # noqa: E402
import numpy as np  # noqa: E402

NODES = 2


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--query-file", required=True)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--k", type=int, default=100)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--lists", type=int, default=0)
    parser.add_argument("--block-queries", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=5)
    return parser.parse_args()


def make_parts(base, options, folder):
    """An index of all rows, the same in parts, and the parts' files."""
    whole = nearwise.IvfPq.train(base, lists=options.lists, code_bytes=16)
    whole.add(base)
    bounds = [len(base) * part // options.shards for part in range(options.shards + 1)]
    paths = []
    for first, last in zip(bounds, bounds[1:]):
        part = whole.empty_copy()
        part.add(base[first:last], np.arange(first, last))
        paths.append(Path(folder, f"part{first}.nw"))
        part.save(paths[-1])
    return whole, [nearwise.load_ivf(path) for path in paths], paths


def same(left, right):
    return bool((left.ids == right.ids).all() and (left.distances == right.distances).all())


def timed(call, *arguments):
    start = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - start, answer


def kill_in_the_middle(search, ask):
    """Answers of `ask`, while a process dies after the first block."""
    victims = [search.process_ids()[0, 0]]

    def report(done, total):
        if victims:
            os.kill(victims.pop(), signal.SIGKILL)

    return ask(report)


def main():
    options = parse()
    base = nearwise.read_vectors(options.base)
    queries = np.resize(nearwise.read_vectors(options.query_file), (options.queries, base.shape[1]))
    with tempfile.TemporaryDirectory() as folder:
        whole, parts, paths = make_parts(base, options, folder)
        probes = max(1, whole.lists // 32)

        def direct():
            return nearwise.merge_neighbors([part.search(queries, options.k, probes=probes) for part in parts], options.k)

        nodes = Nodes(NODES, cpus=options.shards * options.replicas)
        search = nearwise.cluster.ShardedIvf(paths, replicas=options.replicas)

        def on_cluster(**extra):
            return search.search(queries, options.k, probes=probes, **{"block_queries": options.block_queries, **extra})

        expected = whole.search(queries, options.k, probes=probes)
        identical = same(direct(), expected) and same(on_cluster(), expected)  # also the first, slower round
        seconds = {"direct": [], "direct_again": [], "cluster": [], "whole": []}
        for _ in range(options.repeat):
            for name, call in (("direct", direct), ("cluster", on_cluster), ("direct_again", direct)):
                taken, found = timed(call)
                seconds[name].append(taken)
                identical = identical and same(found, expected)
            seconds["whole"].append(timed(lambda: whole.search(queries, options.k, probes=probes))[0])
        after_kill = kill_in_the_middle(
            search, lambda report: on_cluster(block_queries=max(1, options.queries // 20), progress=report))
        left = sum(len(search.living(shard)) for shard in range(options.shards))
        nodes.end()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(json.dumps({
        "rows": len(base), "queries": options.queries, "k": options.k, "shards": options.shards, "probes": probes,
        "replicas": options.replicas, "medians": medians, "seconds": seconds, "identical": identical,
        "overhead": medians["cluster"] / medians["direct"] - 1,
        "noise": medians["direct_again"] / medians["direct"] - 1,
        "replicas_left_after_kill": left, "identical_after_kill": same(after_kill, expected)}))


if __name__ == "__main__":
    main()
