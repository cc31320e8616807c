"""Latency of single queries in graph indexes of growing size: one thread, recall 0.95 of the 10 nearest.

    python graph_growth.py --base base.u8bin --queries query.u8bin --sizes 100000 300000 1000000

A size is the first rows of the file. Each index gets the narrowest beam that reaches the recall; a query's time is its minimum over
the repetitions. Prints one JSON line for each size.
"""

import argparse
import json
import time

import nearwise
import numpy as np

K = 10
BEAMS = (10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 58, 70, 84, 100, 120, 144, 172, 206, 248, 300, 400)


def narrowest_beam(index, queries, farthest, target):
    for beam in BEAMS:
        recall = float((index.search(queries, K, beam=beam).distances <= farthest).mean())
        if recall >= target:
            break
    return beam, recall


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of builds; searches have one")
    options = parser.parse_args()
    base = nearwise.read_vectors(options.base)
    queries = np.ascontiguousarray(nearwise.read_vectors(options.queries)[: options.count])
    one_thread = nearwise.Context(threads=1)
    for size in options.sizes:
        rows = base[:size]
        farthest = nearwise.knn(queries, rows, K, threads=options.threads).distances[:, -1:]
        index = nearwise.GraphIndex.build(rows, target_recall=None, threads=options.threads)
        beam, recall = narrowest_beam(index, queries, farthest, options.target)
        best = np.full(len(queries), np.inf)
        for _ in range(options.repeat):
            for number in range(len(queries)):
                began = time.perf_counter_ns()
                index.search(queries[number : number + 1], K, beam=beam, context=one_thread)
                best[number] = min(best[number], (time.perf_counter_ns() - began) / 1000)
        print(json.dumps({"rows": size, "beam": beam, "recall": round(recall, 4),
                          "p50_us": round(float(np.median(best)), 1), "p99_us": round(float(np.quantile(best, 0.99)), 1),
                          "bytes_per_vector": index.bytes_per_vector}), flush=True)


if __name__ == "__main__":
    main()
