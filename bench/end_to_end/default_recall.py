"""Builds every kind of index for target recalls, and searches it for unseen queries with no other argument.

    python default_recall.py --base base.u8bin --queries query.u8bin --metric sqeuclidean --targets 0.9 0.95

Prints one JSON line for each index: its recall of 10 neighbours, and whether it warned that it misses the target.
"""

import argparse
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
    options = parser.parse_args()
    base, queries = nearwise.read_vectors(options.base), nearwise.read_vectors(options.queries)[:5000]
    truth = nearwise.knn(queries, base, 10, metric=options.metric).ids
    for kind in options.kinds:
        for target in options.targets:
            began = time.monotonic()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                index = getattr(nearwise, kind).build(base, target_recall=target, metric=options.metric)
                built = time.monotonic()
                found = index.search(queries, 10).ids
            hits = sum(np.isin(row, right).sum() for row, right in zip(found, truth, strict=True))
            print(
                json.dumps(
                    {
                        "kind": kind,
                        "target": target,
                        "recall": round(float(hits) / truth.size, 4),
                        "warned": any(issubclass(one.category, nearwise.RecallWarning) for one in caught),
                        "calibrated": round(index.calibration.recall.value, 4),
                        "probes": index.probes,
                        "candidates": index.candidates,
                        "build_seconds": round(built - began, 2),
                        "queries_per_second": round(len(queries) / (time.monotonic() - built)),
                    }
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
