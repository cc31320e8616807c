"""Graph indexes beside hnswlib, Faiss HNSW (also SQ8), usearch, SVS and ScaNN: latency of single queries at equal recall, one thread.

    python graph_search.py --base base.u8bin --queries query.u8bin --metric sqeuclidean

Every library builds on all threads with several settings of its own. At each target recall it gets the cheapest search setting that
reaches it, and the queries are asked one by one, all libraries taking turns; a query's time is its minimum over the
repetitions. Prints one JSON line for each library and target.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import common
import faiss
import hnswlib
import nearwise
import numpy as np
import scann
import svs
import usearch.index

K = 10
TARGETS = (0.95, 0.99)
BREADTHS = (10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 58, 70, 84, 100, 120, 144, 172, 206, 248, 300, 400, 600, 1000)


class Ours:
    settings = BREADTHS

    def __init__(self, metric, isa):
        self.metric = metric
        self.context = nearwise.Context(threads=1, isa=isa)

    def build(self, base, threads):
        self.index = nearwise.GraphIndex.build(base, metric=self.metric, threads=threads)

    def search(self, queries, beam):
        return self.index.search(queries, K, beam=beam, context=self.context).ids


class Hnswlib:
    settings = BREADTHS

    def __init__(self, metric, dim, links):
        self.index = hnswlib.Index("l2" if metric == "sqeuclidean" else "cosine", dim)
        self.links = links

    def build(self, base, threads):
        self.index.init_index(len(base), M=self.links, ef_construction=200)
        self.index.set_num_threads(threads)
        self.index.add_items(base)

    def save(self, folder):
        self.index.save_index(str(folder / "index"))

    def load(self, folder):
        self.index.load_index(str(folder / "index"))
        self.index.set_num_threads(1)

    def search(self, queries, breadth):
        self.index.set_ef(breadth)
        return self.index.knn_query(queries, K)[0]


class FaissHnsw:
    settings = BREADTHS

    def __init__(self, metric, dim, links, bytes_codes=False):
        self.unit = metric == "cosine"
        self.bytes_codes = bytes_codes
        self.index = (
            faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, links) if bytes_codes else faiss.IndexHNSWFlat(dim, links)
        )

    def build(self, base, threads):
        faiss.omp_set_num_threads(threads)
        rows = common.unit(base) if self.unit else base
        self.index.hnsw.efConstruction = 200
        if self.bytes_codes:
            self.index.train(rows)
        self.index.add(rows)

    def save(self, folder):
        faiss.write_index(self.index, str(folder / "index"))

    def load(self, folder):
        self.index = faiss.read_index(str(folder / "index"))
        faiss.omp_set_num_threads(1)

    def search(self, queries, breadth):
        self.index.hnsw.efSearch = breadth
        return self.index.search(common.unit(queries) if self.unit else queries, K)[1]


class Usearch:
    settings = BREADTHS

    def __init__(self, metric, dim, dtype):
        self.index = usearch.index.Index(ndim=dim, metric="l2sq" if metric == "sqeuclidean" else "cos", dtype=dtype,
                                         connectivity=16, expansion_add=200)

    def build(self, base, threads):
        self.index.add(np.arange(len(base)), base, threads=threads)

    def save(self, folder):
        self.index.save(str(folder / "index"))

    def load(self, folder):
        self.index.load(str(folder / "index"))

    def search(self, queries, breadth):
        self.index.expansion_search = breadth
        return self.index.search(queries, K, threads=1).keys


class Svs:
    """Its own graph of degree 64, LVQ with 4 + 8 bits."""

    settings = BREADTHS

    def __init__(self, metric):
        self.unit = metric == "cosine"

    def build(self, base, threads):
        rows = common.unit(base) if self.unit else base
        parameters = svs.VamanaBuildParameters(graph_max_degree=64, window_size=128, alpha=1.2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.fvecs")
            svs.write_vecs(np.ascontiguousarray(rows, np.float32), path)
            vectors = svs.VectorDataLoader(path, svs.DataType.float32, dims=rows.shape[1])
            codes = svs.LVQLoader(vectors, primary=4, residual=8)
            self.index = svs.Vamana.build(parameters, codes, svs.DistanceType.L2, num_threads=threads)

    def save(self, folder):
        self.index.save(str(folder / "config"), str(folder / "graph"), str(folder / "codes"))

    def load(self, folder):
        self.index = svs.Vamana(str(folder / "config"), svs.GraphLoader(str(folder / "graph")), svs.LVQLoader(str(folder / "codes")),
                                svs.DistanceType.L2, num_threads=1)

    def search(self, queries, breadth):
        self.index.search_window_size = breadth
        return self.index.search(common.unit(queries) if self.unit else queries, K)[0]


class Scann:
    """A tree of sqrt(n) leaves, anisotropic 4-bit codes, the best evaluated by their vectors."""

    settings = tuple((leaves, evaluated) for leaves in (4, 6, 9, 13, 20, 30, 45, 67, 100, 150, 225) for evaluated in (40, 100, 250))

    def __init__(self, metric):
        self.unit = metric == "cosine"

    def build(self, base, threads):
        rows = common.unit(base) if self.unit else base
        leaves = int(len(rows) ** 0.5)
        builder = scann.scann_ops_pybind.builder(rows, K, "dot_product" if self.unit else "squared_l2")
        builder = builder.tree(num_leaves=leaves, num_leaves_to_search=min(leaves, 100), training_sample_size=250_000)
        builder = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(100).set_n_training_threads(threads)
        self.index = builder.build()

    def save(self, folder):
        self.index.serialize(str(folder))

    def load(self, folder):
        self.index = scann.scann_ops_pybind.load_searcher(str(folder))

    def search(self, queries, setting):
        leaves, evaluated = setting
        queries = common.unit(queries) if self.unit else queries
        if len(queries) > 1:
            return self.index.search_batched(queries, K, evaluated, leaves)[0]
        return self.index.search(queries[0], K, evaluated, leaves)[0]


def built(index, base, threads, folder):
    """Time to build the index. A rival's is kept in the folder, and loaded if it is there, of the same versions."""
    if isinstance(index, Ours):
        _, seconds, cpu = common.timed(lambda: index.build(base, threads))
        return {"build_seconds": round(seconds, 2), "build_cpu_seconds": round(cpu, 2), "bytes_per_vector": index.index.bytes_per_vector}
    facts = folder / "facts.json"
    versions = hashlib.sha256(Path(__file__).with_name("requirements.txt").read_bytes()).hexdigest()
    if not facts.is_file() or json.loads(facts.read_text())["versions"] != versions:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _, seconds, cpu = common.timed(lambda: index.build(base, threads))
        index.save(folder)
        facts.write_text(json.dumps({"versions": versions, "build_seconds": round(seconds, 2), "build_cpu_seconds": round(cpu, 2)}))
    index.load(folder)
    return {name: value for name, value in json.loads(facts.read_text()).items() if name != "versions"}


def recall(found, truth):
    return float(np.mean([np.isin(right, one).mean() for one, right in zip(found, truth, strict=True)]))


def cheapest_settings(index, queries, truth):
    """{target: (setting, recall)}; the last setting where none reaches the target."""
    found = {}
    for setting in index.settings:
        reached = recall(index.search(queries, setting), truth)
        for target in TARGETS:
            if target not in found and (reached >= target or setting == index.settings[-1]):
                found[target] = (setting, reached)
        if len(found) == len(TARGETS):
            break
    return found


def libraries(options, dim):
    metric = options.metric
    yield "nearwise GraphIndex", lambda: Ours(metric, options.isa)
    for links in (16, 32):
        yield f"hnswlib, M {links}", lambda links=links: Hnswlib(metric, dim, links)
    yield "Faiss HNSW, M 32", lambda: FaissHnsw(metric, dim, 32)
    yield "Faiss HNSW SQ8, M 32", lambda: FaissHnsw(metric, dim, 32, True)
    yield "usearch", lambda: Usearch(metric, dim, "f32")
    yield "SVS, LVQ4x8", lambda: Svs(metric)
    yield "ScaNN", lambda: Scann(metric)
    yield "usearch, i8", lambda: Usearch(metric, dim, "i8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", default="sqeuclidean", choices=["sqeuclidean", "cosine"])
    parser.add_argument("--threads", type=int, default=2, help="of builds; searches have one")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--isa", default=None, help="highest instruction set of our searches")
    parser.add_argument("--only", nargs="*", default=None, help="beginnings of names")
    parser.add_argument("--store", type=Path, default=None, help="folder of the rivals' indexes, made where they are missing")
    parser.add_argument("--build", action="store_true", help="make the rivals' indexes that are missing, and end")
    options = parser.parse_args()
    base = np.ascontiguousarray(common.read_rows(options.base, options.rows))
    floats = base.astype(np.float32)
    with contextlib.ExitStack() as scratch:
        store = options.store or Path(scratch.enter_context(tempfile.TemporaryDirectory()))
        made, reports = {}, {}
        for name, make in libraries(options, base.shape[1]):
            if options.only and not any(name.startswith(start) for start in options.only):
                continue
            index = make()
            if options.build and isinstance(index, Ours):
                continue
            folder = store / f"{len(base)} {name}"
            reports[name] = built(index, base if isinstance(index, Ours) else floats, options.threads, folder)
            if not options.build:
                made[name] = index
    if options.build:
        print(json.dumps(reports))
        return
    measure(options, base, made, reports)


def measure(options, base, indexes, reports):
    asked = np.ascontiguousarray(common.read_rows(options.queries, options.count))
    asked_floats = asked.astype(np.float32)
    truth = nearwise.knn(asked, base, K, metric=options.metric, threads=options.threads).ids
    made = {}
    for name, index in indexes.items():
        given = asked if isinstance(index, Ours) else asked_floats
        made[name] = (index, given, cheapest_settings(index, given, truth))
    times = {}
    for _ in range(options.repeat):
        for target in TARGETS:
            for name, (index, given, settings) in made.items():
                setting, _ = settings[target]
                index.search(given[:1], setting)
                best = times.setdefault((name, target), np.full(len(given), np.inf))
                for query in range(len(given)):
                    began = time.perf_counter_ns()
                    index.search(given[query : query + 1], setting)
                    best[query] = min(best[query], (time.perf_counter_ns() - began) / 1000)
    for (name, target), best in times.items():
        setting, reached = made[name][2][target]
        print(json.dumps({"library": name, "target": target, "setting": setting, "recall": round(reached, 4),
                          "p50_us": round(float(np.median(best)), 1), "p99_us": round(float(np.quantile(best, 0.99)), 1),
                          **reports[name]}), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
