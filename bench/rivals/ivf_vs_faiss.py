"""Compares nearwise's inverted file of product codes with Faiss's, on the same rows, in one process, in turn.

Runs in the environment of the rivals with nearwise's built package on PYTHONPATH. Codes have as many bytes on both sides.
  quality  recall@1, @10, @100 (whether the true nearest row is among so many) without a second look at the rows, by the
           same lists, probes and bytes; Faiss's direct IndexIVFPQ.
  speed    the most queries per second of every library at 10-recall@10 of at least the targets, with a second look, over
           grids of probes and candidates; batches of all queries. Rivals: IVFPQ, IVFPQFastScan, IVFRaBitQ, each refined.
Both report the seconds of training and adding. Prints one JSON object.
"""
import argparse
import json
import statistics
import time

import faiss
import numpy

import nearwise

K = 10


def read_rows(path):
    """Of a .u8bin or .fbin file."""
    kind = numpy.uint8 if path.endswith(".u8bin") else numpy.float32
    count, dim = numpy.fromfile(path, numpy.uint32, 2)
    return numpy.memmap(path, kind, "r", 8, (int(count), int(dim)))


def recall(found, truth):
    return float(numpy.mean([len(set(row) & set(true)) / len(true) for row, true in zip(found, truth)]))


def nearest_among(found, truth):
    """{R: share of queries whose true nearest row is among the first R}."""
    return {str(rank): float((found[:, :rank] == truth[:, :1]).any(axis=1).mean()) for rank in (1, 10, 100)}


def trained(index, rows):
    start = time.perf_counter()
    index.train(rows)
    middle = time.perf_counter()
    index.add(rows)
    return {"train": middle - start, "add": time.perf_counter() - middle}


def faiss_pq(options, dim, lists, code_bytes):
    index = faiss.IndexIVFPQ(faiss.IndexFlatL2(dim), dim, lists, code_bytes, 8)
    index.cp.niter = options.iterations
    return index


def own_index(options, rows, lists, code_bytes):
    start = time.perf_counter()
    index = nearwise.IvfPq.train(rows, lists=lists, code_bytes=code_bytes, iterations=options.iterations,
                                 threads=options.threads)
    middle = time.perf_counter()
    index.add(rows)
    return index, {"train": middle - start, "add": time.perf_counter() - middle}


def quality(options, base, floats, queries, truth):
    report = {}
    for code_bytes in (8, 16, 32):
        own, own_seconds = own_index(options, base, options.lists[0], code_bytes)
        rival = faiss_pq(options, base.shape[1], options.lists[0], code_bytes)
        rival_seconds = trained(rival, floats)
        rival.nprobe = options.probes
        found = own.search(queries, 100, probes=options.probes).ids
        _, theirs = rival.search(queries.astype(numpy.float32), 100)
        report[str(code_bytes)] = {"own": nearest_among(found, truth), "faiss": nearest_among(theirs, truth),
                                   "own_seconds": own_seconds, "faiss_seconds": rival_seconds}
    return report


def own_runs(options, base, queries, lists, code_bytes):
    index, seconds = own_index(options, base, lists, code_bytes)

    def run(probes, candidates):
        return index.search(queries, K, probes=probes, rows=base, candidates=candidates).ids
    return run, seconds


def faiss_runs(options, floats, queries, lists, code_bytes, kind):
    dim = floats.shape[1]
    quantizer = faiss.IndexFlatL2(dim)
    index = {"ivfpq": lambda: faiss_pq(options, dim, lists, code_bytes),
             "fastscan": lambda: faiss.IndexIVFPQFastScan(quantizer, dim, lists, 2 * code_bytes, 4),
             "rabitq": lambda: faiss.IndexIVFRaBitQ(quantizer, dim, lists)}[kind]()
    index.cp.niter = options.iterations
    seconds = trained(index, floats)
    flat = faiss.IndexFlatL2(dim)
    flat.add(floats)
    refined = faiss.IndexRefine(index, flat)
    rows = queries.astype(numpy.float32)

    def run(probes, candidates):
        index.nprobe = probes
        refined.k_factor = candidates / K
        return refined.search(rows, K)[1]
    return run, seconds


def speed(options, base, floats, queries, truth):
    """{target: {library: its fastest setting}}; all chosen settings are timed again in turn."""
    runs = {}
    builds = {}
    for lists in options.lists:
        runs["nearwise", lists], builds[f"nearwise {lists}"] = own_runs(options, base, queries, lists, options.code_bytes)
        for kind in options.rivals:
            runs[kind, lists], builds[f"{kind} {lists}"] = faiss_runs(options, floats, queries, lists,
                                                                      options.code_bytes, kind)
    tried = []
    for (library, lists), run in runs.items():
        for probes in options.grid_probes:
            for candidates in options.grid_candidates:
                start = time.perf_counter()
                found = run(probes, candidates)
                tried.append({"library": library, "lists": lists, "probes": probes, "candidates": candidates,
                              "recall": recall(found, truth), "seconds": time.perf_counter() - start})
    report = {"builds": builds, "targets": {}}
    for target in options.targets:
        chosen = {}
        for each in tried:
            best = chosen.get(each["library"])
            if each["recall"] >= target and (best is None or each["seconds"] < best["seconds"]):
                chosen[each["library"]] = dict(each)
        for each in chosen.values():
            each["rounds"] = []
        for _ in range(options.repeat):
            for each in chosen.values():
                start = time.perf_counter()
                runs[each["library"], each["lists"]](each["probes"], each["candidates"])
                each["rounds"].append(time.perf_counter() - start)
        for each in chosen.values():
            each["queries_per_second"] = len(queries) / statistics.median(each["rounds"])
        rivals = [each["queries_per_second"] for each in chosen.values() if each["library"] != "nearwise"]
        own = chosen.get("nearwise", {}).get("queries_per_second", 0)
        report["targets"][str(target)] = {"chosen": list(chosen.values()), "ratio": own / max(rivals, default=1)}
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--truth", required=True, help="a .ibin file of the nearest rows")
    parser.add_argument("--what", choices=["quality", "speed"], required=True)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--lists", type=int, nargs="+", default=[1024])
    parser.add_argument("--code-bytes", type=int, default=16)
    parser.add_argument("--probes", type=int, default=16)
    parser.add_argument("--grid-probes", type=int, nargs="+", default=[16, 20, 24, 32, 40, 64])
    parser.add_argument("--grid-candidates", type=int, nargs="+", default=[60, 80, 100, 150, 200])
    parser.add_argument("--targets", type=float, nargs="+", default=[0.9, 0.95])
    parser.add_argument("--rivals", nargs="+", default=["fastscan", "ivfpq", "rabitq"])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    base, queries = read_rows(options.base)[:options.rows], read_rows(options.queries)
    count, columns = numpy.fromfile(options.truth, numpy.uint32, 2)
    truth = numpy.memmap(options.truth, numpy.int32, "r", 8, (int(count), int(columns)))[:, :K]
    if options.rows:
        truth = nearwise.knn(queries, base, K, threads=options.threads).ids
    floats = base.astype(numpy.float32)
    report = (quality if options.what == "quality" else speed)(options, base, floats, queries, truth)
    print(json.dumps({"faiss": faiss.__version__, "nearwise": nearwise.__version__, "threads": options.threads,
                      "rows": len(base), options.what: report}))


if __name__ == "__main__":
    main()
