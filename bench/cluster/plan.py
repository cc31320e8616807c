#!/usr/bin/env python3
"""A graph's plan on a Ray cluster of this machine: against a pool of processes, or while a worker and a node are killed.

Every build must end with the bytes that one process makes. Prints one line of JSON. For `tools/isolated`.
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

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "tests" / "cluster"))

import nearwise  # noqa: E402


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "kills"])
    parser.add_argument("--base", required=True)
    parser.add_argument("--rows", type=int, default=200_000, help="of the base, from its beginning")
    parser.add_argument("--memory", default="96MiB")
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    return parser.parse_args()


def run_task(plan, task):
    return opened(plan).run_task(task)


@functools.lru_cache(maxsize=4)
def opened(plan):
    return pickle.loads(plan)


def run_in_pool(pool, plan):
    """As nearwise.cluster.run does it, without anything of Ray."""
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
        ended, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
        for future in ended:
            future.result()
            done.add(running.pop(future))


class Builds:
    """The same build, again and again in new folders."""

    def __init__(self, options, folder):
        self._options, self._folder, self._count = options, Path(folder), 0
        self._base = self._folder / Path(options.base).name
        nearwise.write_vectors(self._base, nearwise.read_vectors(options.base)[: options.rows])

    def plan(self):
        self._count += 1
        place = self._folder / str(self._count)
        return nearwise.plan_graph(self._base, place / "work", place / "graph.nw", self._options.degree,
                                   memory_limit=self._options.memory, threads=1)

    def digest(self):
        """Of the last build's graph."""
        return hashlib.sha256((self._folder / str(self._count) / "graph.nw").read_bytes()).hexdigest()

    def timed(self, run):
        plan = self.plan()
        start = time.perf_counter()
        run(plan)
        return time.perf_counter() - start, self.digest()


def measure_overhead(builds, options):
    nodes = Nodes(options.workers, cpus=1)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, mp_context=context) as pool:
        # A first round of each: processes start, and files come into the page cache.
        _, expected = builds.timed(lambda plan: plan.run())
        seconds, digests = {"pool": [], "cluster": [], "pool_again": []}, {expected}
        runs = {"pool": lambda plan: run_in_pool(pool, plan), "cluster": lambda plan: nearwise.cluster.run(plan)}
        runs["pool_again"] = runs["pool"]
        for round_number in range(options.repeat + 1):
            for name, run in runs.items():
                taken, digest = builds.timed(run)
                digests.add(digest)
                if round_number > 0:
                    seconds[name].append(taken)
    nodes.end()
    # Each beside those before and after it: the machine's speed changes by more than Ray costs, but not so fast.
    rounds = list(zip(seconds["pool"], seconds["cluster"], seconds["pool_again"]))
    ratios = sorted(2 * cluster / (before + after) for before, cluster, after in rounds)
    noise = sorted(after / before for before, _, after in rounds)
    return {"seconds": seconds, "ratios": ratios, "pool_against_itself": noise,
            "overhead": statistics.median(ratios) - 1, "identical": len(digests) == 1}


def middle(plan, kind):
    """The name of a task of that kind in the first pass."""
    names = [task.name for task in plan.tasks if task.name.startswith(f"{kind}-0-")]
    return names[len(names) // 2]


def measure_kills(builds, _):
    _, expected = builds.timed(lambda plan: plan.run())
    nodes = Nodes(3, cpus=1)
    plan = builds.plan()
    killed = []
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
        start, ended = time.perf_counter(), []
        nearwise.cluster.run(halting, on_task=lambda *end: ended.append(end))
        seconds = time.perf_counter() - start
        thread.join(60)
    nodes.end()
    return {"seconds": seconds, "killed": killed, "tasks": len(plan.tasks), "ended": len(ended),
            "identical": builds.digest() == expected}


def main():
    options = parse()
    with tempfile.TemporaryDirectory() as folder:
        measure = measure_overhead if options.what == "overhead" else measure_kills
        print(json.dumps(measure(Builds(options, folder), options)))


if __name__ == "__main__":
    # Here, and not above: the pool's processes import this file, and need nothing of Ray. The order matters, too: the
    # first sets the environment that Ray reads.
    from ray_nodes import Nodes, wait_for

    from halting import Halting
    import nearwise.cluster

    main()
