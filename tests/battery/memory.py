"""Runs operations within memory limits and compares the process's anonymous memory with them.

    python tests/battery/memory.py --runs 40

Every run is a process of its own. It asks for a limit of 1 byte, takes the limit that the refusal names, or up to four
times as much, and must then succeed. The parent reads RssAnon of the process: its peak may exceed the memory before the
call by the limit and 5 %. Inputs are mapped files. Prints one JSON line.
"""

import argparse
import json
import multiprocessing
import random
import re
import tempfile
import time
from pathlib import Path

import numpy as np

MIB = 2**20
# Operations that consist of two calls: the second may need more than the first knew.
TWO_CALLS = dict.fromkeys(
    ("Exact", "GraphIndex", "IvfPq", "ProductQuantizer", "OptimizedProductQuantizer", "AdditiveQuantizer"), 2
)
SIZES = ((200_000, 32), (60_000, 128), (20_000, 384), (10_000, 768))


def rss_anon(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found.group(1)) * 1024 if found else 0


def operations(nearwise, rows, folder, draw):
    """name -> call(memory_limit)"""
    few = rows[: max(300, len(rows) // draw.choice((4, 16, 64)))]
    k = draw.choice((1, 10, 100))
    lists = draw.choice((16, 64))
    degree = draw.choice((8, 16, 32))
    path = folder / "rows.npy"

    def planned(limit):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            nearwise.plan_graph(path, work, Path(work) / "graph.nw", degree, memory_limit=limit).run()

    def planned_index(limit):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            nearwise.plan_index(path, work, Path(work) / "index.nw", lists=lists, memory_limit=limit).run()

    def planned_graph_index(limit):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            output = Path(work) / "index.nw"
            nearwise.plan_graph_index(path, work, output, degree=degree // 16 * 16 or 16, memory_limit=limit).run()

    def planned_dedup(limit):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            output = Path(work) / "dedup.nw"
            nearwise.plan_dedup(path, work, output, radius=0.1 * rows.shape[1], memory_limit=limit).run()

    def planned_dedup_by_partitions(limit):
        with tempfile.TemporaryDirectory(dir=folder) as work:
            options = {"radius": 0.01 * rows.shape[1], "method": "partitions", "memory_limit": limit}
            nearwise.plan_dedup(path, work, Path(work) / "dedup.nw", **options).run()

    def searched(limit):
        index = nearwise.IvfPq.build(rows, lists=lists, code_bytes=8, iterations=2, memory_limit=limit)
        return index.search(few, k)

    def searched_graph(limit):
        index = nearwise.GraphIndex.build(rows, degree=degree // 16 * 16 or 16, memory_limit=limit)
        return index.search(few, k)

    return {
        "knn": lambda limit: nearwise.knn(few, rows, k, memory_limit=limit),
        "Exact": lambda limit: nearwise.Exact(rows, memory_limit=limit).search(few, k),
        "range_search": lambda limit: nearwise.range_search(few[:300], rows, 0.1 * rows.shape[1], memory_limit=limit),
        "threshold_join": lambda limit: nearwise.threshold_join(few, radius=0.1 * rows.shape[1], memory_limit=limit),
        "dedup": lambda limit: nearwise.dedup(few, similarity=0.999, memory_limit=limit),
        "exact_knn_graph": lambda limit: nearwise.exact_knn_graph(few, degree, memory_limit=limit),
        "train_kmeans": lambda limit: nearwise.train_kmeans(rows, lists, iterations=3, memory_limit=limit),
        "train_hierarchical_kmeans": lambda limit: nearwise.train_hierarchical_kmeans(
            rows, 200, iterations=3, memory_limit=limit
        ),
        "assign": lambda limit: nearwise.assign(rows, np.array(rows[:200]), memory_limit=limit),
        "ProductQuantizer": lambda limit: nearwise.ProductQuantizer.train(
            rows, parts=8, iterations=3, memory_limit=limit
        ).encode(rows),
        "OptimizedProductQuantizer": lambda limit: nearwise.OptimizedProductQuantizer.train(
            few, parts=8, bits=4, iterations=3, rounds=2, memory_limit=limit
        ).encode(few),
        "AdditiveQuantizer": lambda limit: nearwise.AdditiveQuantizer.train(
            few, codebooks=4, rounds=1, memory_limit=limit
        ).encode(few),
        "IvfFlat.build": lambda limit: nearwise.IvfFlat.build(rows, lists=lists, iterations=2, memory_limit=limit),
        "IvfPq": searched,
        "IvfLsq.build": lambda limit: nearwise.IvfLsq.build(
            few, lists=16, code_bytes=4, rounds=1, iterations=2, memory_limit=limit
        ),
        "build_knn_graph": lambda limit: nearwise.build_knn_graph(rows, degree, memory_limit=limit),
        "GraphIndex": searched_graph,
        "plan_graph": planned,
        "plan_index": planned_index,
        "plan_graph_index": planned_graph_index,
        "plan_dedup": planned_dedup,
        "plan_dedup by partitions": planned_dedup_by_partitions,
    }


def serve(connection, name, seed, folder):
    """In the child: waits for the parent's word before the call, so that it can read the memory before."""
    import nearwise

    draw = random.Random(seed)
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    call = operations(nearwise, rows, folder, draw)[name]
    # Loads what every call needs.
    nearwise.knn(np.zeros((50, 8), np.float32), np.zeros((500, 8), np.float32), 2)
    refusals = []
    limit = 1
    for _ in range(4):
        began = time.monotonic()
        try:
            call(limit)
            break
        except nearwise.Error as error:
            seconds = time.monotonic() - began
            named = re.search(r"([\d.]+) (\w+) would suffice", str(error))
            refusals.append({"limit": limit, "seconds": round(seconds, 3), "message": str(error)})
            if named is None:
                connection.send({"refusals": refusals})
                return
            unit = {"B": 1, "KiB": 2**10, "MiB": MIB, "GiB": 2**30}[named.group(2)]
            limit = int(float(named.group(1)) * unit * (draw.choice((1, 1.5, 4)) if limit == 1 else 1))
    connection.send({"ready": limit, "refusals": refusals})
    connection.recv()
    call(limit)
    connection.send({"peak": None})


def run(name, size, seed, folder):
    rows, dim = size
    np.save(folder / "rows.npy", np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32))
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, name, seed, folder))
    process.start()
    theirs.close()
    report = {"operation": name, "rows": rows, "dim": dim}
    try:
        first = mine.recv()
        report["refusals"] = first["refusals"]
        if "ready" not in first:
            return report | {"holds": False}
        limit = first["ready"]
        time.sleep(0.05)
        before = peak = rss_anon(process.pid)
        mine.send("go")
        while not mine.poll(0.001):
            peak = max(peak, rss_anon(process.pid))
        mine.recv()
    except EOFError:
        return report | {"holds": False, "died": True}
    finally:
        process.join()
    more = peak - before
    # One more refusal than calls means that a limit that was named did not suffice.
    holds = more <= 1.05 * limit and len(first["refusals"]) <= TWO_CALLS.get(name, 1)
    return report | {"limit_mib": round(limit / MIB, 1), "used_mib": round(more / MIB, 1), "holds": holds}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose names contain this")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    names = [name for name in operations(None, np.empty((1000, 1)), Path(), draw) if options.only in name]
    reports = []
    for number in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            report = run(names[number % len(names)], draw.choice(SIZES), options.seed + number, Path(folder))
        reports.append(report)
        if options.verbose:
            print(json.dumps(report), flush=True)
    failed = [report for report in reports if not report["holds"]]
    worst = max((report["used_mib"] / report["limit_mib"] for report in reports if "used_mib" in report), default=None)
    held = len(reports) - len(failed)
    print(json.dumps({"runs": len(reports), "held": held, "worst_share": worst, "failed": failed}))


if __name__ == "__main__":
    main()
