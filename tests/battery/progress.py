"""Watches the progress of every long call: is it ever complete before the end, and is the time left right?

    python tests/battery/progress.py

From a quarter of the time on, the time left that follows from the share done must be within a factor of 2 of what is
really left; what remains of less than 5 % of the call, or of 0.1 s, is not judged. Prints one JSON line.
"""

import argparse
import itertools
import json
import tempfile
import time
import warnings
from pathlib import Path

import nearwise
import numpy as np

RANDOM = np.random.default_rng(1)


def clustered(rows, dim):
    """Vectors with structure: recalls and k-means behave as on real data."""
    centers = RANDOM.standard_normal((200, dim), dtype=np.float32)
    noise = RANDOM.standard_normal((rows, dim), dtype=np.float32)
    return 2 * centers[RANDOM.integers(0, len(centers), rows)] + noise


def calls(folder, scale):
    """name -> call(progress)"""
    rows = clustered(int(100_000 * scale), 64)
    wide = clustered(int(12_000 * scale), 768)
    half = len(rows) // 2
    exact = nearwise.Exact(rows)
    left, right = nearwise.build_knn_graph(rows[:half], 16), nearwise.build_knn_graph(rows[half:], 16)
    product = nearwise.ProductQuantizer.train(rows[:5000], parts=16)
    additive = nearwise.AdditiveQuantizer.train(rows[:3000], codebooks=8, rounds=1)
    index = nearwise.IvfFlat.build(rows, lists=256)
    graph = nearwise.build_knn_graph(rows, 32)
    graph_index = nearwise.GraphIndex.build(rows[:half])
    graph_rows = folder / "rows.fbin"
    nearwise.write_vectors(graph_rows, rows)

    def planned(progress):
        with tempfile.TemporaryDirectory() as work:
            plan = nearwise.plan_graph(graph_rows, work, Path(work) / "graph.nw", 10, memory_limit="64MiB")
            plan.run(progress=progress)

    return {
        "knn": lambda progress: nearwise.knn(rows[: half // 4], rows, 10, progress=progress),
        "Exact.search": lambda progress: exact.search(rows[: half // 4], 10, progress=progress),
        "range_search": lambda progress: nearwise.range_search(rows[: half // 4], rows, 20.0, progress=progress),
        "threshold_join": lambda progress: nearwise.threshold_join(rows, radius=1.0, progress=progress),
        "dedup": lambda progress: nearwise.dedup(rows, similarity=0.99, progress=progress),
        "exact_knn_graph": lambda progress: nearwise.exact_knn_graph(rows, 10, progress=progress),
        "train_kmeans": lambda progress: nearwise.train_kmeans(rows, 2000, progress=progress),
        "train_kmeans, mini-batches": lambda progress: nearwise.train_kmeans(
            rows, 1000, batch_size=20_000, iterations=50, progress=progress
        ),
        "train_hierarchical_kmeans": lambda progress: nearwise.train_hierarchical_kmeans(rows, 5000, progress=progress),
        "ProductQuantizer.train": lambda progress: nearwise.ProductQuantizer.train(rows, parts=16, progress=progress),
        "ProductQuantizer.train, 768 dimensions": lambda progress: nearwise.ProductQuantizer.train(
            wide, parts=96, progress=progress
        ),
        "ProductQuantizer.encode": lambda progress: product.encode(np.tile(rows, (8, 1)), progress=progress),
        "OptimizedProductQuantizer.train": lambda progress: nearwise.OptimizedProductQuantizer.train(
            rows[: half // 2], parts=16, progress=progress
        ),
        "OptimizedProductQuantizer.train, 768 dimensions": lambda progress: nearwise.OptimizedProductQuantizer.train(
            wide, parts=96, bits=4, rounds=4, progress=progress
        ),
        "AdditiveQuantizer.train": lambda progress: nearwise.AdditiveQuantizer.train(
            rows[: half // 4], codebooks=8, rounds=10, progress=progress
        ),
        "AdditiveQuantizer.encode": lambda progress: additive.encode(rows[:half], progress=progress),
        "IvfFlat.build": lambda progress: nearwise.IvfFlat.build(rows, progress=progress),
        "IvfPq.build": lambda progress: nearwise.IvfPq.build(rows, code_bytes=16, progress=progress),
        "IvfPq.build, 768 dimensions": lambda progress: nearwise.IvfPq.build(wide, code_bytes=96, progress=progress),
        "IvfLsq.build": lambda progress: nearwise.IvfLsq.build(rows[:half], rounds=5, progress=progress),
        "Ivf.search": lambda progress: index.search(rows, 10, probes=64, progress=progress),
        "Ivf.calibrate": lambda progress: index.calibrate(rows, target_recall=0.95, progress=progress),
        "build_knn_graph": lambda progress: nearwise.build_knn_graph(rows, 16, progress=progress),
        "build_knn_graph, degree 50": lambda progress: nearwise.build_knn_graph(rows, 50, progress=progress),
        "build_knn_graph, recall 0.99": lambda progress: nearwise.build_knn_graph(
            rows, 16, target_recall=0.99, progress=progress
        ),
        "merge_knn_graphs": lambda progress: nearwise.merge_knn_graphs(rows, left, right, progress=progress),
        "GraphIndex.build": lambda progress: nearwise.GraphIndex.build(rows, progress=progress),
        "GraphIndex.build, 768 dimensions": lambda progress: nearwise.GraphIndex.build(wide, progress=progress),
        "GraphIndex.from_knn_graph": lambda progress: nearwise.GraphIndex.from_knn_graph(
            graph, rows, progress=progress
        ),
        "GraphIndex.add": lambda progress: graph_index.add(rows[half:], progress=progress),
        "GraphIndex.search": lambda progress: graph_index.search(rows, 100, progress=progress),
        "GraphIndex.calibrate": lambda progress: graph_index.calibrate(target_recall=0.99, progress=progress),
        "Plan.run": planned,
    }


def watch(call):
    reports = []
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(lambda done, total: reports.append((time.monotonic() - began, done / total if total else 1.0)))
    seconds = time.monotonic() - began
    shares = [share for _, share in reports]
    worst, worst_at = 1.0, 0.0
    for at, share in reports:
        left = seconds - at
        if at < seconds / 4 or left < max(0.05 * seconds, 0.1) or share == 0:
            continue
        expected = at / share - at
        factor = max(expected, 1e-9) / left
        if abs(np.log(factor)) > abs(np.log(worst)):
            worst, worst_at = factor, at / seconds
    # Before the last twentieth, or tenth of a second, nothing is complete.
    complete = [at / seconds for at, share in reports if share >= 0.995 and seconds - at > max(0.05 * seconds, 0.1)]
    silent = max(np.diff([0.0, *(at for at, _ in reports), seconds]))
    return {
        "seconds": round(seconds, 2),
        "reports": len(reports),
        "falls": sum(later < earlier for earlier, later in itertools.pairwise(shares)),
        "complete_at": round(min(complete), 2) if complete else None,
        "time_left_factor": round(float(worst), 2),
        "at": round(worst_at, 2),
        "longest_silence": round(float(silent), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, for shorter or longer calls")
    parser.add_argument("--only", default="", help="calls whose names contain this")
    parser.add_argument("--verbose", action="store_true", help="a line for each call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for name, call in calls(Path(folder), options.scale).items():
            if options.only not in name:
                continue
            found[name] = watch(call)
            if options.verbose:
                print(name, found[name], flush=True)
    wrong = [
        name
        for name, seen in found.items()
        if seen["falls"] or seen["complete_at"] is not None or not 0.5 <= seen["time_left_factor"] <= 2
    ]
    print(json.dumps({"calls": len(found), "wrong": wrong, "found": found}))


if __name__ == "__main__":
    main()
