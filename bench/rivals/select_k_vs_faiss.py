"""Times nearwise.select_k against faiss.kmin on the rows of one matrix, in one process, in turn.

Runs in the environment of the rivals with nearwise on PYTHONPATH (tools/prove exact does that). Prints one JSON
object; `ratio` is the median of nearwise's time over Faiss's in the same round.
"""
import argparse
import json
import statistics
import time

import faiss
import numpy

import nearwise


def seconds(work):
    time.sleep(0.02)  # the other library's idle threads spin for a while and would take a core
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(values, k, threads, repeat):
    def own():
        return nearwise.select_k(values, k, threads=threads)

    def rival():
        return faiss.kmin(values, k)

    # Ids may be ordered differently in ties; values may not differ.
    if not numpy.array_equal(own()[1], rival()[0]):
        raise SystemExit(f"select_k and faiss.kmin differ at k = {k}")
    own_seconds, rival_seconds = [], []
    for _ in range(repeat):
        rival_seconds.append(seconds(rival))
        own_seconds.append(seconds(own))
    ratios = [left / right for left, right in zip(own_seconds, rival_seconds)]
    halves = statistics.median(rival_seconds[::2]) / statistics.median(rival_seconds[1::2])
    return {"k": k, "ratio": statistics.median(ratios), "spread": max(ratios) / min(ratios),
            "own_milliseconds": statistics.median(own_seconds) * 1e3,
            "faiss_milliseconds": statistics.median(rival_seconds) * 1e3, "faiss_against_itself": halves}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--columns", type=int, default=128_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=51)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    # Squared distances of random vectors concentrate like this.
    values = numpy.random.default_rng(0).chisquare(128, (options.rows, options.columns)).astype(numpy.float32)
    by_k = [measure(values, k, options.threads, max(2, options.repeat)) for k in (10, 100, 1000)]
    print(json.dumps({"rows": options.rows, "columns": options.columns, "threads": options.threads,
                      "faiss": faiss.__version__, "faiss_simd": faiss.SIMDConfig.get_level_name(),
                      "numpy": numpy.__version__, "nearwise": nearwise.__version__, "by_k": by_k}))


if __name__ == "__main__":
    main()
