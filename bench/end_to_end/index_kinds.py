"""Every kind of index on one file: time to build, bytes, recall, speed of a batch, latency of single queries.

    python index_kinds.py --base base.u8bin --queries query.u8bin --metric sqeuclidean --target 0.95

Prints one JSON line for each kind. Searches name nothing but k = 10. Latencies are of one query at a time on one thread; batches are
all queries in a call on all threads.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import nearwise
import numpy as np

K = 10
KINDS = {
    "Exact": lambda rows, settings: nearwise.Exact(rows, metric=settings["metric"], threads=settings["threads"]),
    "GraphIndex": lambda rows, settings: nearwise.GraphIndex.build(rows, **settings),
    "IvfFlat": lambda rows, settings: nearwise.IvfFlat.build(rows, **settings),
    "IvfPq": lambda rows, settings: nearwise.IvfPq.build(rows, **settings),
    'IvfPq, vectors="u8"': lambda rows, settings: nearwise.IvfPq.build(rows, vectors="u8", **settings),
    'IvfPq, vectors="none"': lambda rows, settings: nearwise.IvfPq.build(rows, vectors="none", **settings),
}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", default="sqeuclidean")
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--single", type=int, default=300, help="queries asked one by one")
    return parser.parse_args()


def saved_bytes(index):
    """Of the index with all it needs for a search. `Exact` is not saved: it is the vectors."""
    if isinstance(index, nearwise.Exact):
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index.nw")
        index.save(path)
        return path.stat().st_size


def recall(found, truth):
    return sum(len(set(a) & set(b)) for a, b in zip(found.tolist(), truth.tolist())) / truth.size


def timed(action):
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def main():
    options = parse()
    rows, queries = nearwise.read_vectors(options.base), np.array(nearwise.read_vectors(options.queries))
    truth = nearwise.knn(queries, rows, K, metric=options.metric).ids
    for name, make in KINDS.items():
        if '"u8"' in name and rows.itemsize == 1:
            continue  # bytes are kept as they are
        settings = {"metric": options.metric, "threads": options.threads}
        if name != "Exact":
            settings["target_recall"] = options.target
        build_seconds, index = timed(lambda: make(rows, settings))
        index.search(queries[:100], K)  # the first search of an index prepares it
        batch_seconds, found = min((timed(lambda: index.search(queries, K)) for _ in range(3)), key=lambda each: each[0])
        one = nearwise.Context(threads=1)
        single = [timed(lambda: index.search(query, K, context=one))[0] for query in queries[:options.single]]
        size = saved_bytes(index)
        print(json.dumps({
            "kind": name, "rows": len(rows), "dim": rows.shape[1], "build_seconds": round(build_seconds, 2),
            "bytes_per_vector": round(size / len(rows), 1) if size else rows.shape[1] * rows.itemsize,
            "recall": round(recall(found.ids, truth), 4), "batch_queries_per_second": round(len(queries) / batch_seconds),
            "p50_us": round(1e6 * float(np.median(single)), 1), "p99_us": round(1e6 * float(np.quantile(single, 0.99)), 1),
            "cpus": os.cpu_count()}), flush=True)
        del index


if __name__ == "__main__":
    main()
