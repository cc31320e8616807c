"""All pairs of vectors within a radius: equal to other ways to find them, and time relative to the exact k-NN graph.

    python threshold_join.py --base base.u8bin --threads 2

The radius has about --pairs pairs for each vector. Prints one JSON line for each of: oracle (all distances of a subset in
numpy, float64, which is exact for integers), range_search (of all vectors), speed.
"""

import argparse
import json
import statistics
import time

import nearwise
import numpy as np

K = 10  # of the k-NN graph


def radius_with(base, pairs, context):
    """The squared distance within which a sample of the vectors has 2 * pairs others on average."""
    sample = np.ascontiguousarray(base[:: max(1, len(base) // 1000)])
    distances = nearwise.knn(sample, base, min(len(base), 64 * pairs), context=context).distances[:, 1:]
    return float(np.sort(distances, axis=None)[2 * pairs * len(sample)])


def oracle(rows, radius):
    values = rows.astype(np.float64)
    squares = (values**2).sum(axis=1)
    found = []
    for first in range(0, len(rows), 2000):
        part = slice(first, first + 2000)
        distances = squares[part, None] + squares[None, first:] - 2 * values[part] @ values[first:].T
        queries, others = np.nonzero(distances <= radius)
        later = others > queries
        found.append(np.stack([queries[later], others[later]], axis=1) + first)
    return np.concatenate(found)


def seconds_of(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--subset", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    base = np.ascontiguousarray(nearwise.read_vectors(options.base)[: options.rows])
    context = nearwise.Context(threads=options.threads)
    radius = radius_with(base, options.pairs, context)

    subset = base[: options.subset]
    expected = oracle(subset, radius)
    given = nearwise.threshold_join(subset, radius=radius, context=context).pairs()
    print(json.dumps({"case": "oracle", "rows": len(subset), "pairs": len(given), "equal": np.array_equal(expected, given)}), flush=True)

    pairs = nearwise.threshold_join(base, radius=radius, context=context).pairs()
    both = nearwise.range_search(base, base, radius, context=context).pairs()
    later = both[both[:, 1] > both[:, 0]]
    equal = np.array_equal(later[np.lexsort((later[:, 1], later[:, 0]))], pairs)
    print(json.dumps({"case": "range_search", "rows": len(base), "pairs": len(pairs), "radius": radius, "equal": equal}), flush=True)

    seconds = {"threshold_join": [], "exact_knn_graph": []}
    works = {
        "threshold_join": lambda: nearwise.threshold_join(base, radius=radius, context=context),
        "exact_knn_graph": lambda: nearwise.exact_knn_graph(base, K, context=context),
    }
    for number in range(options.repeat):
        for name in sorted(works, reverse=number % 2 == 1):
            seconds[name].append(seconds_of(works[name]))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ratio = medians["threshold_join"] / medians["exact_knn_graph"]
    print(json.dumps({"case": "speed", "ratio": round(ratio, 3), "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
