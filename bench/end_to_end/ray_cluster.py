#!/usr/bin/env python3
"""Work on a Ray cluster of several nodes on this machine. Run it by `tools/isolated`.

    search    an index in shards with replicas, relative to direct calls; then a replica is killed during a batch
    overhead  the tasks of a graph by Ray workers, relative to a pool of processes
    kills     the tasks of a graph while a worker and then a node are killed

Answers and files must be those of one process (`identical`). Prints one line of JSON.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import json
import multiprocessing
import os
import pickle
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import nearwise
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "cluster"))


K = 100
SHARDS, REPLICAS = 4, 2
WORKERS = 2


def timed(call, *arguments):
    start = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - start, answer


def make_shards(base, options, folder):
    """An index of all rows, the same in shards, and the files of the shards."""
    whole = nearwise.IvfPq.train(base, code_bytes=16)
    whole.add(base)
    bounds = [len(base) * shard // SHARDS for shard in range(SHARDS + 1)]
    paths = []
    for first, last in zip(bounds, bounds[1:]):
        shard = whole.empty_copy()
        shard.add(base[first:last], np.arange(first, last))
        paths.append(Path(folder, f"shard{first}.nw"))
        shard.save(paths[-1])
    return whole, [nearwise.load_ivf(path) for path in paths], paths


def same(left, right):
    return bool((left.ids == right.ids).all() and (left.distances == right.distances).all())


def measure_search(options, folder):
    base = nearwise.read_vectors(options.base)
    queries = np.resize(nearwise.read_vectors(options.query_file), (options.queries, base.shape[1]))
    whole, shards, paths = make_shards(base, options, folder)
    probes = max(1, whole.lists // 32)

    def direct():
        return nearwise.merge_neighbors([shard.search(queries, K, probes=probes) for shard in shards], K)

    nodes = Nodes(2, cpus=SHARDS * REPLICAS)
    search = nearwise.cluster.ShardedIvf(paths, replicas=REPLICAS)

    def on_cluster(**more):
        return search.search(queries, K, probes=probes, **more)

    expected = whole.search(queries, K, probes=probes)
    identical = same(direct(), expected) and same(on_cluster(), expected)  # also warms up
    seconds = {"direct": [], "cluster": [], "direct_again": []}
    for _ in range(options.repeat):
        for name in seconds:
            taken, found = timed(on_cluster if name == "cluster" else direct)
            seconds[name].append(taken)
            identical = identical and same(found, expected)
    victims = [search.process_ids()[0, 0]]

    def kill_after_first_block(_done, _total):
        if victims:
            os.kill(victims.pop(), signal.SIGKILL)

    after_kill = on_cluster(block_queries=max(1, options.queries // 20), progress=kill_after_first_block)
    left = sum(len(search.living(shard)) for shard in range(SHARDS))
    nodes.end()
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return {"rows": len(base), "queries": options.queries, "k": K, "probes": probes, "seconds": seconds,
            "identical": identical, "overhead": medians["cluster"] / medians["direct"] - 1,
            "noise": medians["direct_again"] / medians["direct"] - 1, "replicas_left_after_kill": left,
            "identical_after_kill": same(after_kill, expected)}


class Builds:
    """The same graph, built again and again in new folders."""

    def __init__(self, options, folder):
        self._options, self._folder, self._count = options, Path(folder), 0
        self._base = self._folder / Path(options.base).name
        nearwise.write_vectors(self._base, nearwise.read_vectors(options.base)[: options.rows])

    def plan(self):
        self._count += 1
        place = self._folder / str(self._count)
        return nearwise.plan_graph(self._base, place / "work", place / "graph.nw", 10, memory_limit=self._options.memory,
                                   threads=1)

    def digest(self):
        """Of the graph of the last build."""
        return hashlib.sha256((self._folder / str(self._count) / "graph.nw").read_bytes()).hexdigest()

    def timed(self, run):
        seconds, _ = timed(run, self.plan())
        return seconds, self.digest()


@functools.lru_cache(maxsize=4)
def opened(plan):
    return pickle.loads(plan)


def run_task(plan, task):
    return opened(plan).run_task(task)


def run_in_pool(pool, plan):
    """As nearwise.cluster.run does it, without Ray."""
    waiting, running, done, pickled = {task.name: task for task in plan.tasks}, {}, set(), pickle.dumps(plan)
    while waiting or running:
        for task in list(waiting.values()):
            if done.issuperset(task.after):
                del waiting[task.name]
                if plan.is_done(task.name):
                    done.add(task.name)
                else:
                    running[pool.submit(run_task, pickled, task.name)] = task.name
        if not running:
            continue
        for future in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
            future.result()
            done.add(running.pop(future))


def measure_overhead(options, folder):
    builds, nodes = Builds(options, folder), Nodes(WORKERS, cpus=1)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        _, expected = builds.timed(lambda plan: plan.run())
        runs = {"pool": functools.partial(run_in_pool, pool), "cluster": nearwise.cluster.run,
                "pool_again": functools.partial(run_in_pool, pool)}
        rounds = [[builds.timed(run) for run in runs.values()] for _ in range(options.repeat + 1)]
    nodes.end()
    digests = {expected} | {digest for each in rounds for _, digest in each}
    times = [[seconds for seconds, _ in each] for each in rounds[1:]]  # the first round starts processes
    # Each build relative to the mean of those before and after it: the machine's speed changes more than Ray
    # costs.
    ratios = sorted(2 * cluster / (before + after) for before, cluster, after in times)
    return {"seconds": dict(zip(runs, zip(*times))), "ratios": ratios, "overhead": statistics.median(ratios) - 1,
            "pool_against_itself": sorted(after / before for before, _, after in times), "identical": len(digests) == 1}


def middle(plan, kind):
    """The name of a task of that kind in the first pass."""
    names = [task.name for task in plan.tasks if task.name.startswith(f"{kind}-0-")]
    return names[len(names) // 2]


def measure_kills(options, folder):
    builds = Builds(options, folder)
    _, expected = builds.timed(lambda plan: plan.run())
    nodes, plan, killed, ended = Nodes(3, cpus=1), builds.plan(), [], []
    with tempfile.TemporaryDirectory() as marks:
        halting = Halting(plan, marks, before=middle(plan, "assign"), after=middle(plan, "build"))

        def interfere():
            process, _ = wait_for(lambda: halting.halted(halting.before), seconds=600)
            os.kill(process, signal.SIGKILL)
            killed.append("worker")
            _, node = wait_for(lambda: halting.halted(halting.after), seconds=600)
            nodes.kill(node)
            killed.append("node")

        thread = threading.Thread(target=interfere, daemon=True)
        thread.start()
        seconds, _ = timed(lambda: nearwise.cluster.run(halting, on_task=lambda *end: ended.append(end)))
        thread.join(60)
    nodes.end()
    return {"seconds": seconds, "killed": killed, "tasks": len(plan.tasks), "ended": len(ended),
            "identical": builds.digest() == expected}


def main():
    measures = {"search": measure_search, "overhead": measure_overhead, "kills": measure_kills}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=measures)
    parser.add_argument("--base", required=True)
    parser.add_argument("--query-file")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=200_000, help="of graphs: the first rows of the base")
    parser.add_argument("--memory", default="96MiB", help="limit of graph builds")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measures[options.what](options, folder)))


if __name__ == "__main__":
    # Here and not above: processes of the pool import this file and need nothing of Ray. ray_nodes comes
    # first: it sets the environment that Ray reads.
    from ray_nodes import Nodes, wait_for

    import nearwise.cluster
    from halting import Halting

    main()
