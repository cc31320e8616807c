"""Batches of queries in a GraphIndex and in an IvfFlat, both calibrated for one recall, taking turns.

    python graph_batch.py --base base.u8bin --queries query.u8bin --target 0.99 --threads 2

Prints one JSON line for each index.
"""

import argparse
import json
import statistics
import time

import nearwise

K = 10


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
    seconds = {name: [] for name in made}
    recalls = {}
    for _ in range(options.repeat):
        for name, index in made.items():
            began = time.perf_counter()
            found = index.search(queries, K)
            seconds[name].append(time.perf_counter() - began)
            recalls[name] = float((found.distances <= farthest).mean())
    for name, times in seconds.items():
        print(json.dumps({"index": name, "recall": round(recalls[name], 4),
                          "queries_per_second": round(len(queries) / statistics.median(times)),
                          "best": round(len(queries) / min(times))}), flush=True)


if __name__ == "__main__":
    main()
