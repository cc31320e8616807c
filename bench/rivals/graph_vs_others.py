"""Times nearwise's k-NN graphs against pynndescent, Faiss's NN-Descent and self-search in a Faiss inverted file.

Runs in the environment of the rivals, with nearwise on PYTHONPATH. All get the same f32 rows and threads. Rivals have no
target recall: each runs with a few settings, and the cheapest that reaches the target counts. Rivals that are not the
cheapest for any target on a tenth of the rows are skipped. Recalls are measured by nearwise on one sample. Prints one
JSON object; `ratios` are the CPU seconds of the best rival over those of nearwise, per target, null where no rival
reaches it. Each run is reported on standard error.
"""
import argparse
import json
import sys

import faiss
import numpy
import pynndescent
from common import faiss_facts, read_rows, timed, unit

import nearwise


def without_self(ids, degree):
    """Removes each row itself from the degree + 1 answers of a search among the rows."""
    own = ids == numpy.arange(len(ids))[:, None]
    own[~own.any(axis=1), -1] = True
    return ids[~own].reshape(len(ids), degree)


def nearwise_graph(rows, options, recall):
    return nearwise.build_knn_graph(rows, options.degree, metric=options.metric, target_recall=recall,
                                    threads=options.threads, seed=1).ids


def pynndescent_graph(rows, options, setting):
    """more: additional neighbours, which raise the recall and are cut off."""
    given = {key: value for key, value in setting.items() if key != "more"}
    found = pynndescent.NNDescent(rows, n_neighbors=options.degree + 1 + setting["more"], n_jobs=options.threads,
                                  random_state=1, metric=options.metric, compressed=False, **given)
    ids = found.neighbor_graph[0][:, :options.degree + 1]
    return without_self(ids.astype(numpy.int64), options.degree)


def for_faiss(rows, options):
    return (unit(rows), faiss.METRIC_INNER_PRODUCT) if options.metric == "cosine" else (rows, faiss.METRIC_L2)


def faiss_descent(rows, options, setting):
    rows, metric = for_faiss(rows, options)
    index = faiss.IndexNNDescentFlat(rows.shape[1], setting["graph"], metric)
    index.nndescent.iter = setting["iterations"]
    index.nndescent.L = setting["graph"] + 50
    index.add(rows)
    ids = faiss.vector_to_array(index.nndescent.final_graph).reshape(len(rows), -1)
    return ids[:, :options.degree].astype(numpy.int64)


def faiss_self_search(rows, options, setting):
    rows, metric = for_faiss(rows, options)
    index = faiss.index_factory(rows.shape[1], f"IVF{setting['lists']},Flat", metric)
    index.train(rows)
    index.add(rows)
    index.nprobe = setting["probes"]
    return without_self(index.search(rows, options.degree + 1)[1], options.degree)


SETTINGS = {
    "pynndescent": (pynndescent_graph, [{"more": 0}, {"more": 0, "max_candidates": 60},
                                        {"more": 10, "max_candidates": 60},
                                        {"more": 20, "max_candidates": 60, "n_trees": 32}]),
    "faiss_nn_descent": (faiss_descent, [{"graph": 32, "iterations": 8}, {"graph": 64, "iterations": 10}]),
    "faiss_ivf": (faiss_self_search, [{"lists": 1024, "probes": probes} for probes in (8, 16, 32)] +
                  [{"lists": 4096, "probes": probes} for probes in (24, 64)]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True, help="a .u8bin or .fbin file")
    parser.add_argument("--metric", default="sqeuclidean", choices=("sqeuclidean", "cosine"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--targets", type=float, nargs="+", default=[0.90, 0.95, 0.99])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rivals", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    rows = read_rows(options.base, options.rows, numpy.float32)

    def run(work, name, setting, rows):
        ids, seconds, cpu_seconds = timed(lambda: work(rows, options, setting))
        distances = numpy.zeros(ids.shape, numpy.float32)  # not read
        recall = nearwise.measure_recall(rows, (ids, distances), metric=options.metric, seed=2).value
        report = {"name": name, "setting": setting, "rows": len(rows), "seconds": seconds, "cpu_seconds": cpu_seconds,
                  "recall": recall}
        print(json.dumps(report), file=sys.stderr, flush=True)
        return report

    def run_rivals(names, rows):
        return [run(SETTINGS[name][0], name, setting, rows) for name in names for setting in SETTINGS[name][1]]

    def best(runs, target):
        """The cheapest run that reaches the target."""
        return min((each for each in runs if each["recall"] >= target), key=lambda each: each["cpu_seconds"], default=None)

    if "pynndescent" in options.rivals:  # compiled at first use
        pynndescent_graph(rows[:5000], options, SETTINGS["pynndescent"][1][0])
    trials = run_rivals(options.rivals, rows[:len(rows) // 10])
    cheapest = {each["name"] for target in options.targets if (each := best(trials, target))}
    own = [run(nearwise_graph, "nearwise", target, rows) for target in options.targets]
    others = run_rivals(sorted(cheapest), rows)
    ratios = {}
    for target, mine in zip(options.targets, own):
        rival = best(others, target)
        ratios[str(target)] = rival["cpu_seconds"] / mine["cpu_seconds"] if rival else None
    print(json.dumps(faiss_facts() | {
        "pynndescent": pynndescent.__version__, "nearwise": nearwise.__version__, "rows": len(rows), "metric": options.metric,
        "degree": options.degree, "threads": options.threads, "trials": trials, "own": own, "others": others,
        "ratios": ratios}), flush=True)


if __name__ == "__main__":
    main()
