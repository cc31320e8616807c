"""Batches of queries in a GraphIndex and in an IvfFlat, taking turns.

    python graph_batch.py --base base.u8bin --queries query.u8bin --target 0.99 --threads 2

Each gets the narrowest of a series of beams, or the fewest of a series of probes, that reaches the recall. Prints one JSON line for
each index.
"""

import argparse
import json
import statistics
import time

import nearwise

K = 10
# Steps of 5 %.
SETTINGS = sorted({round(10 * 1.05**step) for step in range(100)})


def recall(index, name, setting, queries, farthest, context):
    return float((search(index, name, setting, queries, context).distances <= farthest).mean())


def search(index, name, setting, queries, context):
    options = {"beam": setting} if name == "GraphIndex" else {"probes": min(setting, index.lists)}
    return index.search(queries, K, context=context, **options)


def cheapest(index, name, queries, farthest, target, context):
    """(setting, recall)"""
    low, high = 0, len(SETTINGS) - 1
    while low < high:
        middle = (low + high) // 2
        enough = recall(index, name, SETTINGS[middle], queries, farthest, context) >= target
        low, high = (low, middle) if enough else (middle + 1, high)
    return SETTINGS[low], recall(index, name, SETTINGS[low], queries, farthest, context)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--target", type=float, default=0.99)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    base = nearwise.read_vectors(options.base)[: options.rows]
    queries = nearwise.read_vectors(options.queries)
    context = nearwise.Context(threads=options.threads)
    farthest = nearwise.knn(queries, base, K, context=context).distances[:, -1:]
    made = {kind.__name__: kind.build(base, target_recall=options.target, context=context)
            for kind in (nearwise.GraphIndex, nearwise.IvfFlat)}
    calibrated = {"GraphIndex": made["GraphIndex"].beam, "IvfFlat": made["IvfFlat"].probes}
    settings = {name: cheapest(index, name, queries, farthest, options.target, context) for name, index in made.items()}
    seconds = {name: [] for name in made}
    for _ in range(options.repeat):
        for name, index in made.items():
            began = time.perf_counter()
            search(index, name, settings[name][0], queries, context)
            seconds[name].append(time.perf_counter() - began)
    for name, times in seconds.items():
        print(json.dumps({"index": name, "setting": settings[name][0], "recall": round(settings[name][1], 4),
                          "calibrated": calibrated[name],
                          "queries_per_second": round(len(queries) / statistics.median(times)),
                          "best": round(len(queries) / min(times))}), flush=True)


if __name__ == "__main__":
    main()
