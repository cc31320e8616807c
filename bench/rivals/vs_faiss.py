"""Single operations relative to Faiss, interleaved: select_k, k-means and additive quantization.

Runs in the environment of the rivals with nearwise on PYTHONPATH (tools/prove does that). Prints JSON lines. --program
is the benchmark program of nearwise (`kmeans`, `additive_quantizer`), which runs in its own process; both libraries get
the same rows and threads.

  select_k  `ratio`: time of nearwise over that of faiss.kmin, median of the rounds
  kmeans    whole trainings with the same number of iterations from each library's own initial centroids; `speedup`: time
            of Faiss over that of nearwise, `error_ratio`: error of nearwise over that of Faiss
  lsq       `same_words`: both encode with codewords trained by Faiss, so that only the encoder differs; `own_words`: each
            encodes with codewords trained on the same rows in the same number of rounds
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import faiss
import numpy
from common import faiss_facts, read_rows, timed

import nearwise


def run(options, *arguments):
    """The report of nearwise's benchmark program."""
    command = [options.program, "--base", options.base, "--rows", options.rows, "--iterations", options.iterations,
               "--threads", options.threads, *arguments]
    return json.loads(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout)


def spread(values):
    return max(values) / min(values)


def select_k(options):
    # Squared distances of random vectors concentrate like this.
    values = numpy.random.default_rng(0).chisquare(128, (16, 128_000)).astype(numpy.float32)

    def rested(work):
        time.sleep(0.02)  # idle threads of the other library spin for a while
        return timed(work)[1]

    by_k = []
    for k in (10, 100, 1000):
        def own(k=k):
            return nearwise.select_k(values, k, threads=options.threads)

        def rival(k=k):
            return faiss.kmin(values, k)

        # Ids may differ in ties, values may not.
        if not numpy.array_equal(own()[1], rival()[0]):
            raise SystemExit(f"select_k and faiss.kmin differ at k = {k}")
        rounds = [(rested(rival), rested(own)) for _ in range(options.repeat)]
        ratios = [ours / theirs for theirs, ours in rounds]
        by_k.append({"k": k, "ratio": statistics.median(ratios), "spread": spread(ratios),
                     "own_milliseconds": statistics.median(ours for _, ours in rounds) * 1e3,
                     "faiss_milliseconds": statistics.median(theirs for theirs, _ in rounds) * 1e3})
    yield {"shape": values.shape, "nearwise": nearwise.__version__, "by_k": by_k}


def kmeans(options):
    rows = read_rows(options.base, options.rows, numpy.float32)
    for clusters in options.clusters:
        rounds = []
        for _ in range(options.repeat):
            own = run(options, "--type", "f32", "--clusters", clusters, "--repeat", 1, "--blas", "none")
            rival = faiss.Kmeans(rows.shape[1], clusters, niter=options.iterations, max_points_per_centroid=len(rows),
                                 min_points_per_centroid=1)
            rounds.append((own["whole_seconds"][0], timed(lambda rival=rival: rival.train(rows))[1],
                           own["errors"][-1] / float(rival.obj[-1])))
        speedups = [theirs / ours for ours, theirs, _ in rounds]
        yield {"clusters": clusters, "iterations": options.iterations, "rows": len(rows),
               "own_seconds": [ours for ours, _, _ in rounds], "faiss_seconds": [theirs for _, theirs, _ in rounds],
               "speedup": statistics.median(speedups), "spread": spread(speedups), "error_ratio": rounds[0][2]}


def lsq(options):
    rows = read_rows(options.base, max(options.rows, options.train_rows), numpy.float32)
    quantizer = faiss.LocalSearchQuantizer(rows.shape[1], options.codebooks, 8)
    quantizer.train_iters = options.rounds
    quantizer.encode_ils_iters = options.iterations
    training = timed(lambda: quantizer.train(rows[:options.train_rows]))[1]
    rows = rows[:options.rows]
    shape = ["--query-file", options.base, "--queries", 1, "--train-rows", options.train_rows, "--codebooks",
             options.codebooks, "--rounds", options.rounds]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "words.fbin")
        words = faiss.vector_to_array(quantizer.codebooks).reshape(-1, quantizer.d).astype(numpy.float32)
        path.write_bytes(numpy.array(words.shape, numpy.uint32).tobytes() + words.tobytes())
        rounds = []
        for _ in range(options.repeat):
            same = run(options, *shape, "--words", path)["encodings"][0]
            codes, seconds, _ = timed(lambda: quantizer.compute_codes(rows))
            rounds.append((same["seconds"], seconds))
    faiss_error = float(((rows - quantizer.decode(codes)) ** 2).sum(axis=1).mean())
    own = run(options, *shape)
    speedups = [theirs / ours for ours, theirs in rounds]
    yield {"rows": len(rows), "train_rows": options.train_rows, "codebooks": options.codebooks, "rounds": options.rounds,
           "iterations": options.iterations, "training_seconds": own["training_seconds"],
           "faiss_training_seconds": training, "faiss_error": faiss_error,
           "same_words": {"seconds": [ours for ours, _ in rounds], "faiss_seconds": [theirs for _, theirs in rounds],
                          "error_ratio": same["error"] / faiss_error, "speedup": statistics.median(speedups),
                          "spread": spread(speedups)},
           "own_words": {"error_ratio": own["encodings"][0]["error"] / faiss_error}}


# Defaults of the options that differ by operation.
OPERATIONS = {"select_k": (select_k, {"repeat": 51}), "kmeans": (kmeans, {"rows": 1_000_000, "iterations": 10}),
              "lsq": (lsq, {"rows": 20_000, "iterations": 16})}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument("--program", help="nearwise's benchmark program")
    parser.add_argument("--base", help="a .u8bin file")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--train-rows", type=int, default=20_000)
    parser.add_argument("--clusters", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--codebooks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=25, help="of the training of codewords")
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    operation, defaults = OPERATIONS[parser.parse_args().operation]
    parser.set_defaults(**defaults)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    for report in operation(options):
        print(json.dumps(faiss_facts() | {"threads": options.threads} | report), flush=True)


if __name__ == "__main__":
    main()
