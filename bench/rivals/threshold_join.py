"""All pairs within a radius beside Faiss's range_search of a part of the vectors, by the time of one vector.

    python threshold_join.py --base base.u8bin --threads 2

The radius has about five pairs for each vector. Faiss compares every vector with all others, the join each pair once; a caller
of Faiss needs all of it. Prints one JSON line.
"""

import argparse
import json

import common
import faiss
import nearwise
import numpy as np

PAIRS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--count", type=int, default=5000, help="queries of Faiss")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    base = np.ascontiguousarray(common.read_rows(options.base, options.rows))
    floats = base.astype(np.float32)
    sample = base[:: max(1, len(base) // 1000)]
    distances = nearwise.knn(sample, base, min(len(base), 64 * PAIRS), threads=options.threads).distances[:, 1:]
    radius = float(np.sort(distances, axis=None)[2 * PAIRS * len(sample)])
    index = faiss.IndexFlatL2(base.shape[1])
    index.add(floats)
    queries = floats[: options.count]
    # Faiss finds distances below the radius; they are integers.
    (limits, _, _), seconds, _ = common.timed(lambda: index.range_search(queries, radius + 0.5))
    pairs, own_seconds, _ = common.timed(lambda: nearwise.threshold_join(base, radius=radius, threads=options.threads))
    ratio = (seconds / len(queries)) / (own_seconds / len(base))
    report = {
        "ratio": round(ratio, 1),
        "faiss_us_per_vector": round(1e6 * seconds / len(queries), 1),
        "us_per_vector": round(1e6 * own_seconds / len(base), 1),
        "faiss_results_per_vector": round(float(limits[-1]) / len(queries), 2),
        "pairs_per_vector": round(len(pairs.ids) / len(base), 2),
    }
    print(json.dumps(report | common.faiss_facts()), flush=True)


if __name__ == "__main__":
    main()
