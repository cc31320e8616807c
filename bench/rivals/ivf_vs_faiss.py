"""Compares nearwise's inverted file of product codes with those of Faiss and ScaNN, on the same rows, in one process, in turn.

Runs in the environment of the rivals with nearwise's built package on PYTHONPATH. Codes have as many bytes as Faiss's.
  quality  recall@1, @10, @100 (whether the true nearest row is among so many) without a second look at the rows, by the
           same lists, probes and bytes; Faiss's direct IndexIVFPQ.
  speed    the most queries per second of every library at 10-recall@10 of at least the targets, with a second look, over
           grids of lists, probes and candidates; batches of all queries.
  latency  one query at a time, 2,000 of them, each for the second time: the median and the 99th percentile in microseconds, at
           settings that reach the targets, with one thread or all, whichever has the lower median.
Grids are searched in two passes (ivf_settings.py): with some queries for what reaches the targets, then the fastest of that with
all. All report the seconds of training and adding. Prints one JSON object.
"""
import argparse
import json
import statistics
import time

import faiss
import numpy
from ivf_libraries import K, RIVALS, build, unit
from ivf_settings import Settings, recall, time_one_by_one

import nearwise

# Of all libraries the fastest settings that reach a target; so many are timed again.
FINALISTS = 5


class Data:
    """Rows as nearwise takes them, and as floats for rivals, which know no cosine."""

    def __init__(self, options):
        self.base = read_rows(options.base)[:options.rows]
        self.queries = read_rows(options.queries)[:options.queries_limit]
        scaled = unit if options.metric == "cosine" else (lambda rows: rows)
        self.floats = numpy.ascontiguousarray(scaled(self.base.astype(numpy.float32)))
        self.float_queries = numpy.ascontiguousarray(scaled(self.queries.astype(numpy.float32)))
        self.truth = nearwise.knn(self.queries, self.base, K, metric=options.metric, threads=options.threads).ids


def read_rows(path):
    """Of a .u8bin or .fbin file."""
    kind = numpy.uint8 if path.endswith(".u8bin") else numpy.float32
    count, dim = numpy.fromfile(path, numpy.uint32, 2)
    return numpy.memmap(path, kind, "r", 8, (int(count), int(dim)))


def nearest_among(found, truth):
    """{R: share of queries whose true nearest row is among the first R}."""
    return {str(rank): float((found[:, :rank] == truth[:, :1]).any(axis=1).mean()) for rank in (1, 10, 100)}


def quality(options, data):
    report = {}
    for code_bytes in (8, 16, 32):
        found, seconds = {}, {}
        for name in ("nearwise", "ivfpq"):
            library = build(name, options, data, options.lists[0], code_bytes)
            found[name] = nearest_among(library.codes(options.probes, 100), data.truth)
            seconds[name] = library.seconds
        report[str(code_bytes)] = {"own": found["nearwise"], "faiss": found["ivfpq"],
                                   "own_seconds": seconds["nearwise"], "faiss_seconds": seconds["ivfpq"]}
    return report


def speed(options, data):
    """{target: {library: its fastest setting}}; all chosen settings are timed again in turn."""
    settings = Settings(options, data, by_batch)
    report = {"builds": {f"{name} {lists}": library.seconds for (name, lists), library in settings.libraries.items()},
              "settings_tried": settings.tried, "targets": {}}
    for target in options.targets:
        # One run is noisy: the fastest few of each library are timed again, in turn.
        finalists = [each for found in settings.fastest(target).values() for each in found[:FINALISTS]]
        for each in finalists:
            each["rounds"] = []
        for _ in range(options.repeat):
            for each in finalists:
                start = time.perf_counter()
                settings.library(each).search(each["probes"], each["candidates"])
                each["rounds"].append(time.perf_counter() - start)
        chosen = {}
        for each in finalists:
            each["queries_per_second"] = len(data.queries) / statistics.median(each["rounds"])
            best = chosen.get(each["library"])
            if best is None or each["queries_per_second"] > best["queries_per_second"]:
                chosen[each["library"]] = each
        rivals = [each["queries_per_second"] for each in chosen.values() if each["library"] != "nearwise"]
        own = chosen.get("nearwise", {}).get("queries_per_second", 0)
        report["targets"][str(target)] = {"chosen": list(chosen.values()), "ratio": own / max(rivals, default=1)}
    return report


def by_batch(library, setting, seconds):
    """What settings are compared by: the time of a batch, which was measured with its recall."""
    del library, setting
    return seconds


def by_query(library, setting, seconds):
    """The median of queries one at a time."""
    del seconds
    return time_one_by_one(library, library.queries[:60], setting)["p50_us"]


def latency(options, data):
    """{target: {library: setting, threads, p50, p99}}."""
    settings = Settings(options, data, by_query)
    report = {"settings_tried": settings.tried, "targets": {}}
    for target in options.targets:
        chosen = {}
        for name, found in settings.fastest(target).items():
            # One look is noisy here, too: twice in turn, and the better counts.
            trials = {}
            for _ in range(2):
                for threads in sorted({1, options.threads}):
                    for number, setting in enumerate(found[:FINALISTS]):
                        library = settings.library(setting)
                        library.use_threads(threads)
                        few = time_one_by_one(library, library.queries[:200], setting)["p50_us"]
                        trials[threads, number] = min(few, trials.get((threads, number), few))
            threads, number = min(trials, key=trials.get)
            setting, library = found[number], settings.library(found[number])
            library.use_threads(threads)
            chosen[name] = setting | {"threads": threads} | time_one_by_one(library, library.queries[:2000], setting)
        rivals = [each for name, each in chosen.items() if name != "nearwise"]
        own = chosen.get("nearwise")
        ratios = {key: own[key] / min(each[key] for each in rivals) if own and rivals else None
                  for key in ("p50_us", "p99_us")}
        report["targets"][str(target)] = {"chosen": chosen, "ratios": ratios}
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", choices=["sqeuclidean", "cosine"], default="sqeuclidean")
    parser.add_argument("--what", choices=["quality", "speed", "latency"], required=True)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--queries-limit", type=int, default=None)
    parser.add_argument("--lists", type=int, nargs="+", default=[1024])
    parser.add_argument("--code-bytes", type=int, default=16)
    parser.add_argument("--probes", type=int, default=16)
    parser.add_argument("--grid-probes", type=int, nargs="+",
                        default=[6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128])
    parser.add_argument("--grid-candidates", type=int, nargs="+", default=[30, 45, 60, 100, 150, 250])
    parser.add_argument("--few-queries", type=int, default=500, help="of the first pass over the grids")
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
