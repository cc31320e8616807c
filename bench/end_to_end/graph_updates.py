"""Half of the vectors of a graph index replaced in steps: its recall beside that of a new index of the same vectors.

    python graph_updates.py --base base.u8bin --queries query.u8bin --rows 200000

Each step removes random vectors and adds as many others. Both indexes are searched with the same beams. Prints one JSON line
for each beam.
"""

import argparse
import json
import time

import nearwise
import numpy as np

K = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    rows, context = options.rows, nearwise.Context(threads=options.threads)
    pool = nearwise.read_vectors(options.base)[: rows + rows // 2]
    queries = nearwise.read_vectors(options.queries)[:1000]
    rng = np.random.default_rng(5)

    started = time.perf_counter()
    index = nearwise.GraphIndex.build(pool[:rows], target_recall=None, context=context)
    build_seconds = time.perf_counter() - started
    seconds = {"add": 0.0, "remove": 0.0}
    for added in np.array_split(np.arange(rows, len(pool)), options.steps):
        removed = rng.choice(index.ids()[index.ids() < rows], len(added), replace=False)
        started = time.perf_counter()
        index.remove(removed)
        seconds["remove"] += time.perf_counter() - started
        started = time.perf_counter()
        index.add(pool[added], ids=added)
        seconds["add"] += time.perf_counter() - started

    ids = index.ids()
    rest = np.ascontiguousarray(pool[ids])
    fresh = nearwise.GraphIndex.build(rest, ids=ids, target_recall=None, context=context)
    farthest = nearwise.knn(queries, rest, K, context=context).distances[:, -1:]
    for beam in (16, 32, 64, 128):
        recall = {name: float((one.search(queries, K, beam=beam).distances <= farthest).mean())
                  for name, one in (("changed", index), ("new", fresh))}
        print(json.dumps({"beam": beam, "rows": rows, "steps": options.steps, "recall": recall,
                          "build_seconds": round(build_seconds, 2),
                          "add_us": round(seconds["add"] / (rows // 2) * 1e6, 1),
                          "remove_us": round(seconds["remove"] / (rows // 2) * 1e6, 1)}), flush=True)


if __name__ == "__main__":
    main()
