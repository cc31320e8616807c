"""Recall of a graph index on queries that it has not seen, with the beam that it was calibrated for.

    python graph_recall.py --base base.u8bin --queries query.u8bin --metric sqeuclidean --targets 0.9 0.95
    python graph_recall.py --rows 100000 --targets 0.9 0.95      # generated sets

Prints one JSON line for each set and target.
"""

import argparse
import json

import nearwise
import numpy as np

K = 10


def generated(rows, queries=1000):
    """(name, metric, base, queries) of sets that break careless graphs."""
    rng = np.random.default_rng(3)

    def split(values):
        values = values.astype(np.float32)
        return values[:-queries], values[-queries:]

    total = rows + queries
    centres = rng.standard_normal((50, 32)) * 100
    yield "islands", "sqeuclidean", *split(centres[rng.integers(0, 50, total)] + rng.standard_normal((total, 32)))
    copies = rng.standard_normal((total // 20, 24))
    yield "duplicates", "sqeuclidean", *split(copies[rng.integers(0, len(copies), total)])
    yield "one dimension", "sqeuclidean", *split(rng.standard_normal((total, 1)))
    yield "heavy tails", "sqeuclidean", *split(rng.standard_t(1.5, (total, 16)))
    lengths = np.exp(rng.standard_normal((total, 1)) / 2)
    yield "inner products", "inner_product", *split(rng.standard_normal((total, 32)) * lengths)
    factors = rng.standard_normal((12, 96))
    yield "low rank", "cosine", *split(rng.standard_normal((total, 12)) @ factors + rng.standard_normal((total, 96)) / 10)
    yield "shifted queries", "sqeuclidean", *split(
        np.concatenate([rng.standard_normal((rows, 16)), rng.standard_normal((queries, 16)) * 0.5 + 1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base")
    parser.add_argument("--queries")
    parser.add_argument("--metric", default="sqeuclidean")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.95])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.base:
        sets = [(options.base, options.metric, nearwise.read_vectors(options.base), nearwise.read_vectors(options.queries))]
    else:
        sets = generated(options.rows)
    for name, metric, base, queries in sets:
        context = nearwise.Context(threads=options.threads)
        exact = nearwise.knn(queries, base, K, metric=metric, context=context).distances[:, -1:]
        # Queries of another distribution than the vectors are calibrated with queries of their own.
        half = len(queries) // 2 if name == "shifted queries" else 0
        index = nearwise.GraphIndex.build(base, metric=metric, target_recall=options.targets[0], context=context)
        for target in options.targets:
            found = index.calibrate(queries[:half] if half else None, target_recall=target)
            distances = index.search(queries[half:], K, context=context).distances
            hits = distances >= exact[half:] if metric == "inner_product" else distances <= exact[half:]
            print(json.dumps({"set": str(name), "metric": metric, "target": target, "beam": found.beam,
                              "reached": found.reached, "recall": round(float(hits.mean()), 4)}), flush=True)


if __name__ == "__main__":
    main()
