"""Recall and speed of searches under filters of falling selectivity.

    python filters.py --base base.u8bin --queries query.u8bin --threads 2

Filters allow vectors at random, or those that lie furthest along a direction: the queries furthest along it are correlated with the
filter, those at the other end anti-correlated. Prints one JSON line for each filter. With --measure recall: that of a batch of
queries, of single queries, which probe lists where a batch is searched exactly, and of a batch without instructions beyond AVX2.
With --measure speed: the time of a search of the index relative to that of the exact search of the allowed vectors (packed
beforehand) and of the index without a filter, each pair measured in turn.
"""

import argparse
import json
import statistics
import time

import nearwise
import numpy as np

K = 10


def compared(works, repeats, least_seconds=0.5):
    """({name: median seconds}, median and range of the ratio of the first to the second).

    A round runs them forwards and backwards: both then find the caches as the other has left them, as often as their own.
    """
    first, second = works
    seconds, ratios = {name: [] for name in works}, []
    began = time.perf_counter()
    while len(ratios) <= repeats or time.perf_counter() - began < least_seconds:
        taken = dict.fromkeys(works, 0.0)
        for name in (first, second, second, first):
            start = time.perf_counter()
            works[name]()
            taken[name] += (time.perf_counter() - start) / 2
        for name, one in taken.items():
            seconds[name].append(one)
        ratios.append(taken[first] / taken[second])
    ratios = sorted(ratios[1:])  # the first round warms up
    quarter = len(ratios) // 4
    return (
        {name: statistics.median(each[1:]) for name, each in seconds.items()},
        {
            "ratio": round(statistics.median(ratios), 3),
            "quartiles": [round(ratios[quarter], 3), round(ratios[-1 - quarter], 3)],
        },
    )


def recall(found, truth):
    real = truth >= 0
    hits = sum(np.isin(row[right], one).sum() for one, row, right in zip(found, truth, real, strict=True))
    return float(hits) / max(1, int(real.sum()))


def masks(base, queries, selectivities, count, seed):
    """(kind, selectivity, mask, queries) of every filter."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(base.shape[1]).astype(np.float32)
    along = np.concatenate([part.astype(np.float32) @ direction for part in np.array_split(base, 20)])
    query_along = np.argsort(queries.astype(np.float32) @ direction)
    drawn = rng.random(len(base))
    for selectivity in selectivities:
        rows = max(1, round(selectivity * len(base)))
        random = np.zeros(len(base), bool)
        random[np.argpartition(drawn, rows - 1)[:rows]] = True
        far = np.zeros(len(base), bool)
        far[np.argpartition(-along, rows - 1)[:rows]] = True
        yield "random", selectivity, random, queries[:count]
        yield "correlated", selectivity, far, np.ascontiguousarray(queries[query_along[-count:]])
        yield "anti-correlated", selectivity, far, np.ascontiguousarray(queries[query_along[:count]])


def recalls(index, some, made, truth, options):
    """{how: recall, and whether all allowed vectors are compared}."""
    def report(found, right, explained):
        return {"recall": round(recall(found, right), 4), "exact": explained.exact, "probes": explained.probes}

    one_by_one = np.stack([index.search(query, K, filter=made).ids for query in some])
    avx2 = nearwise.Context(threads=options.threads, isa="avx2")
    return {
        "batch": report(index.search(some, K, filter=made).ids, truth, index.search(some, K, filter=made, explain=True)),
        "single": report(one_by_one, truth, index.search(some[0], K, filter=made, explain=True)),
        "avx2": report(
            index.search(some, K, filter=made, context=avx2).ids,
            truth,
            index.search(some, K, filter=made, context=avx2, explain=True),
        ),
    }


def speeds(index, base, some, made, mask, options):
    """Queries/s of three searches, and the ratios of the first to the others."""
    context = nearwise.Context(threads=options.threads)
    survivors = nearwise.Exact(np.ascontiguousarray(base[mask]), context=context)
    works = {
        "filtered": lambda: index.search(some, K, filter=made),
        "exact": lambda: survivors.search(some, K, pad=True),
        "unfiltered": lambda: index.search(some, K),
    }
    seconds, ratios = {}, {}
    for other in ("unfiltered", "exact"):
        pair = {name: works[name] for name in ("filtered", other)}
        found_seconds, ratios[f"to_{other}"] = compared(pair, options.repeat)
        seconds |= found_seconds
    return {"queries_per_second": {name: round(len(some) / value) for name, value in seconds.items()}} | ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--measure", choices=("recall", "speed"), required=True)
    parser.add_argument("--kind", default="IvfPq")
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=1000, help="queries of a search")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--selectivities", type=float, nargs="+", default=[1, 0.5, 0.1, 0.01, 0.001, 0.0001])
    options = parser.parse_args()
    base, queries = np.asarray(nearwise.read_vectors(options.base)), np.asarray(nearwise.read_vectors(options.queries))
    context = nearwise.Context(threads=options.threads)
    index = getattr(nearwise, options.kind).build(base, target_recall=options.target, context=context)
    for kind, selectivity, mask, some in masks(base, queries, options.selectivities, options.count, 1):
        made = nearwise.Filter(mask)
        report = {"filter": kind, "selectivity": selectivity}
        if options.measure == "recall":
            truth = nearwise.knn(some, base, K, filter=made, context=context).ids
            report["recalls"] = recalls(index, some, made, truth, options)
        else:
            plan = index.search(some, K, filter=made, explain=True)
            report |= {"exact_plan": plan.exact, "probes": plan.probes} | speeds(index, base, some, made, mask, options)
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
