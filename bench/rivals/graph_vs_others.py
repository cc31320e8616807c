"""Times nearwise's k-NN graphs against pynndescent, Faiss's NN-Descent and self-search in a Faiss inverted file.

Runs in the environment of the rivals, with nearwise's package on PYTHONPATH. All get the same f32 rows and as many threads.
Rivals have no recall to ask for: each runs over a few settings, and counts with its cheapest one that reaches the target.
Recalls of all are measured by nearwise on one sample. Prints one JSON object; `ratios` are the CPU seconds of the best rival
over nearwise's, per target, null where no setting of any rival got there.
"""
import argparse
import json
import time

import faiss
import numpy
import pynndescent

import nearwise


def read_rows(path, rows):
    """Of a .u8bin file."""
    count, dim = numpy.fromfile(path, numpy.uint32, 2)
    shape = (int(count), int(dim))
    return numpy.ascontiguousarray(numpy.memmap(path, numpy.uint8, "r", 8, shape)[:rows].astype(numpy.float32))


def timed(work):
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - start, time.process_time() - cpu


def without_self(ids, degree):
    """Of searches among the rows themselves: degree + 1 columns, one of which is the row, wherever it stands."""
    own = ids == numpy.arange(len(ids))[:, None]
    own[~own.any(axis=1), -1] = True
    return ids[~own].reshape(len(ids), degree)


def nearwise_graph(rows, options, recall):
    return nearwise.build_knn_graph(rows, options.degree, recall=recall, threads=options.threads, seed=1).ids


def pynndescent_graph(rows, options, setting):
    found = pynndescent.NNDescent(rows, n_neighbors=options.degree + 1, n_jobs=options.threads, random_state=1,
                                  compressed=False, **setting)
    return without_self(found.neighbor_graph[0].astype(numpy.int64), options.degree)


def faiss_descent(rows, options, setting):
    index = faiss.IndexNNDescentFlat(rows.shape[1], setting["graph"])
    index.nndescent.iter = setting["iterations"]
    index.nndescent.L = setting["graph"] + 50
    index.add(rows)
    ids = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(rows), -1)
    return ids[:, :options.degree].astype(numpy.int64)


def faiss_self_search(rows, options, setting):
    index = faiss.index_factory(rows.shape[1], f"IVF{setting['lists']},Flat")
    index.train(rows)
    index.add(rows)
    index.nprobe = setting["probes"]
    return without_self(index.search(rows, options.degree + 1)[1], options.degree)


SETTINGS = {
    "pynndescent": (pynndescent_graph, [{}, {"max_candidates": 60}, {"n_trees": 32, "max_candidates": 60}]),
    "faiss_nn_descent": (faiss_descent, [{"graph": 32, "iterations": 8}, {"graph": 64, "iterations": 10}]),
    "faiss_ivf": (faiss_self_search, [{"lists": 1024, "probes": probes} for probes in (8, 16, 32)]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True, help="a .u8bin file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--targets", type=float, nargs="+", default=[0.90, 0.95, 0.99])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rivals", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    rows = read_rows(options.base, options.rows)

    def run(work, name, setting):
        ids, seconds, cpu_seconds = timed(lambda: work(rows, options, setting))
        distances = numpy.zeros(ids.shape, numpy.float32)  # computed again
        recall = nearwise.measure_recall(rows, (ids, distances), seed=2).value
        return {"name": name, "setting": setting, "seconds": seconds, "cpu_seconds": cpu_seconds, "recall": recall}

    runs = {"nearwise": [run(nearwise_graph, "nearwise", target) for target in options.targets]}
    if "pynndescent" in options.rivals:  # compiles itself when it is first used
        pynndescent_graph(rows[:5000], options, {})
    for name in options.rivals:
        work, settings = SETTINGS[name]
        runs[name] = [run(work, name, setting) for setting in settings]
    ratios = {}
    for target, own in zip(options.targets, runs["nearwise"]):
        there = [each["cpu_seconds"] for name in options.rivals for each in runs[name] if each["recall"] >= target]
        ratios[str(target)] = min(there) / own["cpu_seconds"] if there else None
    print(json.dumps({"rows": len(rows), "degree": options.degree, "threads": options.threads,
                      "versions": {"faiss": faiss.__version__, "pynndescent": pynndescent.__version__,
                                   "nearwise": nearwise.__version__},
                      "faiss_simd": faiss.SIMDConfig.get_level_name(), "runs": runs, "ratios": ratios}), flush=True)


if __name__ == "__main__":
    main()
