"""Searches under a filter beside Faiss (IVF and HNSW with a bitmap selector) and hnswlib (a filter function), at equal recall.

    python filters.py --base base.u8bin --queries query.u8bin --threads 2

A random share of the vectors is allowed. Every library gets the cheapest setting of its own that reaches the recall at that
selectivity. Prints one JSON line for each library and selectivity.
"""

import argparse
import json
import time

import common
import faiss
import hnswlib
import nearwise
import numpy as np

K = 10


def recall(found, truth):
    return float(np.mean([np.isin(right, one).mean() for one, right in zip(found, truth, strict=True)]))


def best_rate(search, settings, truth, target, repeats):
    """(setting, recall, queries/s) of the first setting that reaches the target; the last one if none does."""
    for setting in settings:
        found = search(setting)
        reached = recall(found, truth)
        if reached >= target or setting == settings[-1]:
            seconds = []
            for _ in range(repeats):
                began = time.perf_counter()
                search(setting)
                seconds.append(time.perf_counter() - began)
            return setting, reached, len(truth) / float(np.median(seconds))
    raise AssertionError("no settings")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--target", type=float, default=0.95)
    parser.add_argument("--selectivities", type=float, nargs="+", default=[0.1, 0.01])
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    base = common.read_rows(options.base, options.rows, np.float32)
    queries = common.read_rows(options.queries, options.count, np.float32)
    lists = max(16, round(4 * len(base) ** 0.5))
    quantizer = faiss.IndexFlatL2(base.shape[1])
    ivf = faiss.IndexIVFFlat(quantizer, base.shape[1], lists)
    ivf.train(base[:: max(1, len(base) // (64 * lists))])
    ivf.add(base)
    graph = faiss.IndexHNSWFlat(base.shape[1], 16)
    graph.hnsw.efConstruction = 100
    graph.add(base)
    small = hnswlib.Index("l2", base.shape[1])
    small.init_index(len(base), M=16, ef_construction=100)
    small.set_num_threads(options.threads)
    small.add_items(base)
    context = nearwise.Context(threads=options.threads)
    ours = nearwise.IvfPq.build(base, target_recall=options.target, context=context)
    rng = np.random.default_rng(2)
    for selectivity in options.selectivities:
        mask = rng.random(len(base)) < selectivity
        truth = nearwise.knn(queries, base, K, filter=mask, context=context).ids
        selector = faiss.IDSelectorBitmap(np.packbits(mask, bitorder="little"))
        made = nearwise.Filter(mask)

        def search_ivf(probes, selector=selector):
            return ivf.search(queries, K, params=faiss.SearchParametersIVF(sel=selector, nprobe=probes))[1]

        def search_graph(breadth, selector=selector):
            return graph.search(queries, K, params=faiss.SearchParametersHNSW(sel=selector, efSearch=breadth))[1]

        def search_small(breadth, mask=mask):
            small.set_ef(breadth)
            try:
                return small.knn_query(queries, K, filter=lambda label: bool(mask[label]))[0]
            except RuntimeError:  # fewer than k found
                return np.full((len(queries), K), -1)

        probes = [value for value in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048) if value <= lists]
        breadths = [16, 32, 64, 128, 256, 512, 1024, 2048]
        for name, search, settings in (
            ("nearwise IvfPq", lambda _, made=made: ours.search(queries, K, filter=made).ids, [0]),
            ("Faiss IVFFlat, IDSelectorBitmap", search_ivf, probes),
            ("Faiss HNSW, IDSelectorBitmap", search_graph, breadths),
            ("hnswlib, filter function", search_small, breadths),
        ):
            setting, reached, rate = best_rate(search, settings, truth, options.target, options.repeat)
            print(json.dumps({"library": name, "selectivity": selectivity, "setting": setting,
                              "recall": round(reached, 4), "queries_per_second": round(rate)}), flush=True)


if __name__ == "__main__":
    main()
