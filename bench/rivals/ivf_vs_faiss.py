"""Compares nearwise's inverted file of product codes with those of Faiss and ScaNN on the same rows, interleaved.

Runs in the environment of the rivals with nearwise on PYTHONPATH. Codes have the same number of bytes.
  quality  recall@1, @10, @100 (is the true nearest row among the first R) without re-ranking, at equal lists, probes
           and bytes, against Faiss's IndexIVFPQ
  speed    queries per second of one batch, the best setting of each library that reaches a 10-recall@10, with
           re-ranking
  latency  median and 99th percentile of one query at a time in microseconds, likewise, with one thread or all,
           whichever has the lower median; each query was searched before
Settings are lists, probes and candidates. They are searched in two passes: with some queries, for every number of
candidates the fewest probes that reach the target (bisection); then the fastest of these with all queries. Prints one
JSON object, with the seconds of training and adding.
"""
import argparse
import json
import statistics
import sys

import faiss
import numpy
from common import read_rows, timed, unit
from ivf_libraries import K, RIVALS, build

import nearwise

PROBES = 16  # of the comparison by quality
FEW_QUERIES = 500  # of the first pass
FINALISTS = 5  # settings of each library that are measured again
MORE_STEPS = 3  # steps of the grid beyond the probes that some queries need


class Data:
    """Rows as nearwise takes them, and as f32 for rivals."""

    def __init__(self, options):
        self.base = read_rows(options.base)
        self.queries = read_rows(options.queries, options.queries_limit)
        scaled = unit if options.metric == "cosine" else (lambda rows: rows)
        self.floats, self.float_queries = (numpy.ascontiguousarray(scaled(rows.astype(numpy.float32)))
                                           for rows in (self.base, self.queries))
        self.truth = nearwise.knn(self.queries, self.base, K, metric=options.metric, threads=options.threads).ids


def quality(options, data):
    report = {}
    for code_bytes in (8, 16, 32):
        each = {}
        for key, name in (("own", "nearwise"), ("faiss", "ivfpq")):
            library = build(name, options, data, options.lists[0], code_bytes)
            nearest = library.codes(PROBES, 100) == data.truth[:, :1]
            each[key] = {str(rank): float(nearest[:, :rank].any(axis=1).mean()) for rank in (1, 10, 100)}
            each[f"{key}_seconds"] = library.seconds
        report[str(code_bytes)] = each
    return report


def recall(found, truth):
    return float(numpy.mean([len(set(row) & set(true)) / len(true) for row, true in zip(found, truth)]))


def latencies(library, setting, count):
    """Median and 99th percentile of the first queries, each searched for the second time."""
    def search(number):
        return library.search(library.queries[number:number + 1], setting["probes"], setting["candidates"])

    numbers = range(min(count, len(library.queries)))
    for number in numbers:
        search(number)
    times = [1e6 * timed(lambda number=number: search(number))[1] for number in numbers]
    return {"p50_us": float(numpy.percentile(times, 50)), "p99_us": float(numpy.percentile(times, 99))}


class Settings:
    """The settings of every library that reach the targets. By time of a batch, or (by_query) median of single queries."""

    def __init__(self, options, data, by_query):
        self.options, self.data, self.by_query = options, data, by_query
        self.libraries = {}
        self.known = {}  # by library, lists, probes, candidates and number of queries
        self.found = {target: {} for target in options.targets}
        for lists in options.lists:
            for name in ("nearwise", *options.rivals):
                self.libraries[name, lists], seconds, _ = timed(
                    lambda name=name, lists=lists: build(name, options, data, lists, options.code_bytes))
                for target in options.targets:
                    self.found[target].setdefault(name, []).extend(self.near(name, lists, target))
                print(f"{name}, {lists} lists: built in {seconds:.1f} s", file=sys.stderr, flush=True)

    def library(self, setting):
        return self.libraries[setting["library"], setting["lists"]]

    def run(self, name, lists, probes, candidates, count):
        key = name, lists, probes, candidates, count
        if key not in self.known:
            library = self.libraries[name, lists]
            found, seconds, _ = timed(lambda: library.search(library.queries[:count], probes, candidates))
            setting = {"library": name, "lists": lists, "probes": probes, "candidates": candidates,
                       "recall": recall(found, self.data.truth[:count])}
            setting["time"] = latencies(library, setting, 60)["p50_us"] if self.by_query else seconds
            self.known[key] = setting
        return self.known[key]

    def near(self, name, lists, target):
        """Settings that reach the target with all queries."""
        grid = [probes for probes in self.options.grid_probes if probes <= lists]
        few = min(FEW_QUERIES, len(self.data.queries))
        places = []
        for candidates in self.options.grid_candidates:
            low, high = 0, len(grid)  # the first place that reaches it is in [low, high]
            while low < high:
                middle = (low + high) // 2
                reached = self.run(name, lists, grid[middle], candidates, few)["recall"] >= target
                low, high = (low, middle) if reached else (middle + 1, high)
            if low < len(grid):
                places.append((self.run(name, lists, grid[low], candidates, few)["time"], low, candidates))
        for _, place, candidates in sorted(places)[:FINALISTS]:
            tried = (self.run(name, lists, probes, candidates, None) for probes in grid[place:place + MORE_STEPS])
            if reached := next((setting for setting in tried if setting["recall"] >= target), None):
                yield reached

    def finalists(self, target):
        """{library: its fastest settings}"""
        return {name: [dict(setting) for setting in sorted(found, key=lambda each: each["time"])[:FINALISTS]]
                for name, found in self.found[target].items() if found}


def speed(options, data):
    settings = Settings(options, data, by_query=False)
    report = {"builds": {f"{name} {lists}": library.seconds for (name, lists), library in settings.libraries.items()},
              "targets": {}}
    for target in options.targets:
        finalists = settings.finalists(target)
        every = [setting for found in finalists.values() for setting in found]
        rounds = [[timed(lambda each=each: settings.library(each).search(
            settings.library(each).queries, each["probes"], each["candidates"]))[1] for each in every]
            for _ in range(options.repeat)]
        for setting, times in zip(every, zip(*rounds)):
            setting |= {"rounds": times, "queries_per_second": len(data.queries) / statistics.median(times)}
        chosen = {name: max(found, key=lambda each: each["queries_per_second"]) for name, found in finalists.items()}
        rates = {name: each["queries_per_second"] for name, each in chosen.items()}
        own = rates.pop("nearwise", 0)
        report["targets"][str(target)] = {"chosen": list(chosen.values()), "ratio": own / max(rates.values(), default=1)}
    return report


def latency(options, data):
    settings = Settings(options, data, by_query=True)
    report = {"targets": {}}
    for target in options.targets:
        chosen = {}
        for name, found in settings.finalists(target).items():
            trials = {}  # one measurement is noisy: two, and the better counts
            for _ in range(2):
                for threads in sorted({1, options.threads}):
                    for number, setting in enumerate(found):
                        settings.library(setting).use_threads(threads)
                        trials.setdefault((threads, number), []).append(
                            latencies(settings.library(setting), setting, 200)["p50_us"])
            threads, number = min(trials, key=lambda key: min(trials[key]))
            settings.library(found[number]).use_threads(threads)
            chosen[name] = found[number] | {"threads": threads} | latencies(settings.library(found[number]), found[number],
                                                                            2000)
        rivals = [each for name, each in chosen.items() if name != "nearwise"]
        ratios = {key: chosen["nearwise"][key] / min(each[key] for each in rivals)
                  if rivals and "nearwise" in chosen else None for key in ("p50_us", "p99_us")}
        report["targets"][str(target)] = {"chosen": chosen, "ratios": ratios}
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", choices=["sqeuclidean", "cosine"], default="sqeuclidean")
    parser.add_argument("--what", choices=["quality", "speed", "latency"], required=True)
    parser.add_argument("--queries-limit", type=int)
    parser.add_argument("--lists", type=int, nargs="+", default=[1024])
    parser.add_argument("--code-bytes", type=int, default=16)
    parser.add_argument("--grid-probes", type=int, nargs="+",
                        default=[6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128])
    parser.add_argument("--grid-candidates", type=int, nargs="+", default=[30, 45, 60, 100, 150, 250])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.9, 0.95])
    parser.add_argument("--rivals", nargs="*", choices=RIVALS, default=list(RIVALS))
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    data = Data(options)
    report = {"quality": quality, "speed": speed, "latency": latency}[options.what](options, data)
    print(json.dumps({"faiss": faiss.__version__, "nearwise": nearwise.__version__, "threads": options.threads,
                      "metric": options.metric, "rows": len(data.base), options.what: report}))


if __name__ == "__main__":
    main()
