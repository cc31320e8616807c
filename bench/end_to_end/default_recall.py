"""Builds every kind of index for target recalls, and searches it for unseen queries with no other argument.

    python default_recall.py --base base.u8bin --queries query.u8bin --metric sqeuclidean --targets 0.9 0.95

An index is trained and filled once and calibrated for each target, which is what `build` does for one; the first target is that of
`build`. Prints one JSON line for each index and number of neighbours: the recall, and whether a warning said that it misses the target.
"""

import argparse
import copy
import json
import time
import warnings

import nearwise
import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", default="sqeuclidean")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.9])
    parser.add_argument("--kinds", nargs="+", default=["IvfFlat", "IvfPq", "IvfLsq"])
    parser.add_argument("--neighbors", type=int, nargs="+", default=[1, 10, 100])
    options = parser.parse_args()
    base, queries = nearwise.read_vectors(options.base), nearwise.read_vectors(options.queries)[:5000]
    every = nearwise.knn(queries, base, max(options.neighbors), metric=options.metric).ids
    for kind in options.kinds:
        for number, target in enumerate(options.targets):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                began = time.monotonic()
                if number == 0:
                    index = built = getattr(nearwise, kind).build(base, target_recall=target, metric=options.metric)
                else:
                    index = copy.copy(built)
                    index.calibrate(base, target_recall=target)
                build_seconds = time.monotonic() - began
                for k in options.neighbors:
                    began = time.monotonic()
                    found = index.search(queries, k).ids
                    seconds = time.monotonic() - began
                    hits = sum(np.isin(row, right[:k]).sum() for row, right in zip(found, every, strict=True))
                    report = {
                        "kind": kind,
                        "target": target,
                        "k": k,
                        "recall": round(float(hits) / found.size, 4),
                        "warned": any(issubclass(one.category, nearwise.RecallWarning) for one in caught),
                        "calibrated": round(index.calibration.recall.value, 4),
                        "probes": index.probes,
                        "candidates": index.candidates,
                        "seconds": round(build_seconds, 2),
                        "queries_per_second": round(len(queries) / seconds),
                    }
                    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
