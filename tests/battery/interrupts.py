"""Sends Ctrl-C at random moments of every long call and measures the time until KeyboardInterrupt arrives.

    python tests/battery/interrupts.py --moments 500

Each call runs once to its end first, for its duration; then it is interrupted at moments spread over it. Prints one
JSON line: percentiles of the latency in milliseconds, and the worst of every call.
"""

import argparse
import json
import random
import signal
import statistics
import tempfile
import time
from pathlib import Path

import nearwise
import numpy as np
from signals import Missed, latency

RANDOM = np.random.default_rng(1)
PLAN_MEMORY = "256MiB"


def normal(rows, dim):
    return RANDOM.standard_normal((rows, dim), dtype=np.float32)


def calls(folder, small):
    """name -> call"""
    # Large files, and calls that end within seconds: an average moment waits for half of one.
    scale = 1 if small else 4
    wide = normal(4_000 * scale, 768)
    rows = normal(50_000 if small else 100_000, 64)
    index = nearwise.IvfFlat.train(rows, lists=64)
    index.add(rows)
    large = nearwise.IvfFlat.train(wide, lists=8)
    for _ in range(4):
        large.add(wide)
    large_path, graph_path, rows_path = folder / "large.nw", folder / "graph.nw", folder / "rows.fbin"
    large.save(large_path)
    ids = RANDOM.integers(0, 2**40, (100_000 * scale, 64))
    neighbors = (ids, RANDOM.random(ids.shape, dtype=np.float32))
    nearwise.save(folder / "neighbors.nw", neighbors, metric="sqeuclidean")
    nearwise.write_neighbors(folder / "ids.npy", neighbors)
    # numpy alone takes a while to convert these.
    other_types = (ids.astype(">i8"), neighbors[1].astype(np.float64))
    wide_float64 = np.tile(wide, (2, 1)).astype(np.float64)
    graph = nearwise.build_knn_graph(rows[:20_000], 16)
    graph.save(graph_path)
    halves = [nearwise.build_knn_graph(half, 16) for half in (rows[:10_000], rows[10_000:20_000])]
    any_graph = random_graph(100_000 * scale, 32)
    graph_index = nearwise.GraphIndex.build(rows[:20_000], degree=16)
    wide_graph = nearwise.GraphIndex.build(wide, degree=16)
    wide_graph.save(folder / "wide_graph.nw")
    some_path, pairs_path = folder / "some.fbin", folder / "pairs.nw"
    nearwise.write_vectors(some_path, rows[:20_000])
    # About 1 % of all pairs.
    join = {"radius": 80.0, "metric": "sqeuclidean"}
    nearwise.plan_threshold_join(some_path, folder / "work", pairs_path, memory_limit=PLAN_MEMORY, **join).run()
    quantizer = nearwise.AdditiveQuantizer.train(rows[:2000], codebooks=4, rounds=1)
    return {
        "knn": lambda: nearwise.knn(rows, rows, 10),
        "range_search": lambda: nearwise.range_search(rows, rows, 1.0),
        "threshold_join": lambda: nearwise.threshold_join(rows, radius=1.0),
        "dedup": lambda: nearwise.dedup(rows, similarity=0.99),
        "exact_knn_graph": lambda: nearwise.exact_knn_graph(rows, 10),
        "train_kmeans": lambda: nearwise.train_kmeans(rows, 1000),
        "build_knn_graph": lambda: nearwise.build_knn_graph(rows, 20),
        "Rotation.pca, 768 dimensions": lambda: nearwise.Rotation.pca(wide, 64),
        "OptimizedProductQuantizer.train, 768 dimensions": lambda: nearwise.OptimizedProductQuantizer.train(
            wide, parts=96, bits=4, rounds=2
        ),
        "ProductQuantizer.train": lambda: nearwise.ProductQuantizer.train(rows, parts=16, bits=8),
        "AdditiveQuantizer.train": lambda: nearwise.AdditiveQuantizer.train(rows[:5000], codebooks=8, rounds=2),
        "AdditiveQuantizer.encode": lambda: quantizer.encode(rows),
        "IvfFlat.build": lambda: nearwise.IvfFlat.build(rows, lists=256),
        "IvfPq.build": lambda: nearwise.IvfPq.build(rows, lists=64, code_bytes=16),
        "Ivf.search": lambda: index.search(rows, 10, probes=64),
        "Ivf.calibrate": lambda: index.calibrate(rows, target_recall=0.9),
        "Ivf.save": lambda: large.save(folder / "again.nw"),
        "load, ivf": lambda: nearwise.load(large_path),
        "verify, ivf": lambda: nearwise.verify(large_path),
        "save, neighbors": lambda: nearwise.save(folder / "more.nw", neighbors, metric="sqeuclidean"),
        "load, neighbors": lambda: nearwise.load(folder / "neighbors.nw"),
        "KnnGraph.save": lambda: graph.save(folder / "graph2.nw"),
        "load, graph": lambda: nearwise.load(graph_path),
        "GraphIndex.build": lambda: nearwise.GraphIndex.build(rows[:50_000]),
        "GraphIndex.search": lambda: graph_index.search(rows, 10),
        "GraphIndex.add and remove": lambda: added_and_removed(graph_index, rows[20_000:25_000]),
        "GraphIndex.calibrate": lambda: graph_index.calibrate(target_recall=0.99),
        "GraphIndex.save": lambda: graph_index.save(folder / "graph_index.nw"),
        "write_vectors": lambda: nearwise.write_vectors(rows_path, wide),
        "knn, of float64": lambda: nearwise.knn(wide[:2], wide_float64, 10),
        "save, neighbors of other types": lambda: nearwise.save(folder / "m.nw", other_types, metric="sqeuclidean"),
        "read_neighbors": lambda: nearwise.read_neighbors(folder / "ids.npy"),
        "load, pairs": lambda: nearwise.load(pairs_path),
        "KnnGraph.connected_components": any_graph.connected_components,
        "KnnGraph.near_duplicates": lambda: any_graph.near_duplicates(0.01),
        "KnnGraph.mutual_neighbors": any_graph.mutual_neighbors,
        "KnnGraph.smoothest_path": lambda: any_graph.smoothest_path(0, 1),
        "KnnGraph.save_npz": lambda: any_graph.save_npz(folder / "graph.npz"),
        "KnnGraph.save_npz, mutual": lambda: any_graph.save_npz(folder / "graph.npz", mutual=True),
        "merge_knn_graphs": lambda: nearwise.merge_knn_graphs(rows[:20_000], *halves),
        "KnnGraph.with_rows": lambda: graph.with_rows(rows[:30_000]),
        "KnnGraph.without_rows": lambda: graph.without_rows(rows[:20_000], np.arange(0, 20_000, 3)),
        "IvfLsq.build": lambda: nearwise.IvfLsq.build(rows[:10_000], rounds=1),
        "Ivf.merge": lambda: large.empty_copy().merge(large),
        "GraphIndex.from_knn_graph": lambda: nearwise.GraphIndex.from_knn_graph(graph, rows[:20_000]),
        "GraphIndex.compact": lambda: compacted(graph_index, rows[20_000:25_000]),
        "GraphIndex.export_hnswlib": lambda: wide_graph.export_hnswlib(folder / "index.hnswlib"),
        "load, graph index": lambda: nearwise.load(folder / "wide_graph.nw"),
        "Plan.run, graph": planned("plan_graph", some_path),
        "Plan.run, index": planned("plan_index", some_path),
        "Plan.run, graph index": planned("plan_graph_index", some_path),
        "Plan.run, threshold join": planned("plan_threshold_join", some_path, **join),
        "Plan.run, deduplication": planned("plan_dedup", some_path, **join),
    }


def random_graph(rows, degree):
    """A graph of no vectors: any neighbors, in the class of those that `build_knn_graph` returns."""
    ids = RANDOM.integers(0, rows, (rows, degree))
    report = ("exact", (1.0, 1.0, 1.0, rows), True, [])
    neighbors = (ids, RANDOM.random(ids.shape, dtype=np.float32))
    return nearwise.KnnGraph((neighbors, "sqeuclidean", report), nearwise.Context())


def planned(function, path, **options):
    def call():
        with tempfile.TemporaryDirectory() as place:
            work, output = Path(place) / "work", Path(place) / "result.nw"
            getattr(nearwise, function)(path, work, output, memory_limit=PLAN_MEMORY, **options).run()

    return call


def added_and_removed(index, rows):
    ids = np.arange(10**6, 10**6 + len(rows))
    index.add(rows, ids, on_duplicate="replace")  # those of an interrupted call before
    index.remove(ids)


def compacted(index, rows):
    added_and_removed(index, rows)
    index.compact()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moments", type=int, default=500)
    parser.add_argument("--small", action="store_true", help="smaller data: shorter calls")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        table = calls(Path(folder), options.small)
        durations = {}
        for name, call in table.items():
            began = time.monotonic()
            call()
            durations[name] = time.monotonic() - began
        found = {name: [] for name in table}
        names = list(table)
        missed = 0
        while sum(map(len, found.values())) < options.moments and missed < 4 * options.moments:
            name = names[(missed + sum(map(len, found.values()))) % len(names)]
            try:
                found[name].append(latency(table[name], draw.uniform(0, durations[name])))
            except Missed:
                missed += 1
        left = sorted(path.name for path in Path(folder).iterdir() if path.name.startswith("."))
    everything = sorted(value for values in found.values() for value in values)
    percentiles = statistics.quantiles(everything, n=100, method="inclusive")
    print(
        json.dumps(
            {
                "moments": len(everything),
                "missed": missed,
                "p50_ms": round(1000 * percentiles[49], 1),
                "p99_ms": round(1000 * percentiles[98], 1),
                "max_ms": round(1000 * everything[-1], 1),
                "worst_ms": {name: round(1000 * max(values), 1) for name, values in found.items() if values},
                "seconds": {name: round(duration, 2) for name, duration in durations.items()},
                "temporary_files_left": left,
            }
        )
    )


if __name__ == "__main__":
    main()
