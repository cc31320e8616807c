"""Watches the progress of every long call: is it ever complete before the end, and is the time left right?

    python tests/battery/progress.py --program build/release/cli/nearwise

From a quarter of the time on, the time left that follows from the share done must be within a factor of 2 of what is
really left; what remains of less than 5 % of the call, or of 0.1 s, is not judged. Of commands, which run on a
pseudo-terminal, the bar may not be full before it is cleared for the last time, nor shrink. Prints one JSON line.
"""

import argparse
import itertools
import json
import os
import pty
import re
import subprocess
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

    def planned(plan, **options):
        def run(progress):
            with tempfile.TemporaryDirectory() as work:
                plan(graph_rows, work, Path(work) / "result.nw", **options).run(progress=progress)

        return run

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
        "plan_graph": planned(nearwise.plan_graph, degree=10, memory_limit="64MiB"),
        "plan_graph, pairs": planned(nearwise.plan_graph, degree=10, method="pairs", memory_limit="64MiB"),
        "plan_index": planned(nearwise.plan_index, memory_limit="256MiB"),
        "plan_graph_index": planned(nearwise.plan_graph_index, memory_limit="256MiB"),
        "plan_threshold_join": planned(nearwise.plan_threshold_join, radius=1.0, memory_limit="64MiB"),
        "plan_threshold_join, partitions": planned(
            nearwise.plan_threshold_join, radius=1.0, method="partitions", memory_limit="64MiB"
        ),
        "plan_dedup": planned(nearwise.plan_dedup, similarity=0.99, memory_limit="64MiB"),
    }


def commands(folder):
    """name -> arguments of the program, which works on the vectors that calls() has written"""
    rows = folder / "rows.fbin"
    small = ["--memory-limit", "64MiB", "--work"]
    large = ["--memory-limit", "256MiB", "--work"]
    return {
        "nearwise knn": ["knn", rows, rows, "-k", 10, "-o", "found.nw"],
        "nearwise join": ["join", rows, "--radius", 1, "-o", "pairs.nw"],
        "nearwise join --work": ["join", rows, "--radius", 1, *small, "join", "-o", "planned-pairs.nw"],
        "nearwise dedup": ["dedup", rows, "--similarity", 0.99, "-o", "kept.npy"],
        "nearwise dedup --work": ["dedup", rows, "--similarity", 0.99, *small, "dedup", "-o", "planned-kept.npy"],
        "nearwise kmeans": ["kmeans", rows, "--clusters", 2000, "-o", "centroids.fbin"],
        "nearwise quantizer train --kind opq": ["quantizer", "train", rows, "--kind", "opq", "-o", "opq.nw"],
        "nearwise quantizer train --kind lsq": ["quantizer", "train", rows, "--kind", "lsq", "-o", "lsq.nw"],
        "nearwise index build": ["index", "build", rows, "-o", "pq.nw"],
        "nearwise index build --work": ["index", "build", rows, *large, "index", "-o", "planned-pq.nw"],
        "nearwise index build --kind graph": ["index", "build", rows, "--kind", "graph", "-o", "graph-index.nw"],
        "nearwise index build --kind graph --work": [
            "index", "build", rows, "--kind", "graph", *large, "graph-index", "-o", "planned-graph-index.nw",
        ],
        "nearwise graph build": ["graph", "build", rows, "--degree", 50, "-o", "graph.nw"],
        "nearwise graph build --work": ["graph", "build", rows, *small, "graph", "-o", "planned-graph.nw"],
    }  # fmt: skip


def complete_at(reports, seconds, full):
    """When a report was complete, as a share of the time; None: only in the last twentieth, or tenth of a second."""
    complete = [at / seconds for at, share in reports if share >= full and seconds - at > max(0.05 * seconds, 0.1)]
    return round(min(complete), 2) if complete else None


BAR = re.compile(rb"\x1b\[K[a-z ]+? (?:\[([#-]+)\] )? *(\d+) %")


def watch_command(program, arguments, folder):
    """Runs a command on a terminal. Its bar appears after a second, and stops at 99 %."""
    ours, theirs = pty.openpty()
    began = time.monotonic()
    process = subprocess.Popen(
        [program, *map(str, arguments)], cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    reports, output, end = [], b"", None  # end: of the last bar
    while True:
        try:
            text = os.read(ours, 1 << 16)
        except OSError:  # the program has ended
            break
        at = time.monotonic() - began
        output += text
        bars = BAR.findall(text)
        reports += [(at, 1.0 if drawn and b"-" not in drawn else int(percent) / 100) for drawn, percent in bars]
        if BAR.match(text[max(0, text.rfind(b"\x1b[K")) :]):
            end = None
        elif bars or end is None:
            end = at
    os.close(ours)
    seconds = time.monotonic() - began
    if process.wait() != 0:
        raise RuntimeError(f"{arguments}: exit status {process.returncode}: {output.decode(errors='replace')}")
    shares = [share for _, share in reports]
    return {
        "seconds": round(seconds, 2),
        "reports": len(reports),
        "falls": sum(later < earlier for earlier, later in itertools.pairwise(shares)),
        "complete_at": complete_at(reports, end or seconds, 0.99),
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
    silent = max(np.diff([0.0, *(at for at, _ in reports), seconds]))
    return {
        "seconds": round(seconds, 2),
        "reports": len(reports),
        "falls": sum(later < earlier for earlier, later in itertools.pairwise(shares)),
        "complete_at": complete_at(reports, seconds, 0.995),
        "time_left_factor": round(float(worst), 2),
        "at": round(worst_at, 2),
        "longest_silence": round(float(silent), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="size of the data, for shorter or longer calls")
    parser.add_argument("--only", default="", help="calls whose names contain this")
    parser.add_argument("--program", type=Path, help="the command line, whose long commands are watched too")
    parser.add_argument("--verbose", action="store_true", help="a line for each call")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        watched = {name: lambda call=call: watch(call) for name, call in calls(Path(folder), options.scale).items()}
        if options.program:
            program = options.program.resolve()
            for name, arguments in commands(Path(folder)).items():
                watched[name] = lambda arguments=arguments: watch_command(program, arguments, folder)
        for name, run in watched.items():
            if options.only not in name:
                continue
            found[name] = run()
            if options.verbose:
                print(name, found[name], flush=True)
    wrong = [
        name
        for name, seen in found.items()
        if seen["falls"] or seen["complete_at"] is not None or not 0.5 <= seen.get("time_left_factor", 1) <= 2
    ]
    print(json.dumps({"calls": len(found), "wrong": wrong, "found": found}))


if __name__ == "__main__":
    main()
