"""A filter of a billion bits on an index of a million vectors with sparse ids.

    python filter_billion.py --bits 1000000000 --rows 1000000

Searches under a mask by id and under the list of the ids that it allows must give the same answers, all of them allowed.
Prints one JSON line: seconds to make the filter and of the first and a later search, and memory.
"""

import argparse
import json
import resource
import time

import nearwise
import numpy as np

DIM, K, QUERIES = 16, 10, 1000


def timed(work):
    began = time.perf_counter()
    result = work()
    return result, round(time.perf_counter() - began, 4)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bits", type=int, default=10**9)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    base = rng.integers(0, 256, (options.rows, DIM), dtype=np.uint8)
    # One id in a stretch of `apart`, anywhere in it.
    apart = options.bits // options.rows
    ids = np.arange(options.rows) * apart + rng.integers(0, apart, options.rows)
    context = nearwise.Context(threads=options.threads)
    index = nearwise.IvfFlat.train(base, lists=256, iterations=3, context=context)
    index.add(base, ids)
    reports = []
    for share in (0.5, 0.01):
        mask = np.zeros(options.bits, bool)
        mask[rng.integers(0, options.bits, options.bits // 100)] = True  # ids that the index does not hold
        mask[ids] = rng.random(options.rows) < share
        allowed = ids[mask[ids]]
        before = peak_mb()
        made, seconds = timed(lambda mask=mask: nearwise.Filter(mask))
        queries = base[:QUERIES]
        found, first = timed(lambda made=made: index.search(queries, K, filter=made))
        again, later = timed(lambda made=made: index.search(queries, K, filter=made))
        listed = index.search(queries, K, filter=allowed)
        reports.append(
            {
                "allowed": len(allowed),
                "equal": all(
                    (found.ids == other.ids).all() and (found.distances == other.distances).all()
                    for other in (again, listed)
                ),
                "all_allowed": bool(mask[found.ids].all()),
                "filter_seconds": seconds,
                "first_search_seconds": first,
                "search_seconds": later,
                "filter_mb": peak_mb() - before,
            }
        )
    print(json.dumps({"bits": options.bits, "rows": options.rows, "filters": reports}))


if __name__ == "__main__":
    main()
