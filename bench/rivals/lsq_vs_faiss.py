"""Compares nearwise's additive quantizer with Faiss's LocalSearchQuantizer on the same rows, in turn.

Runs in the environment of the rivals; --program is the benchmark program `additive_quantizer`, which works in a process of
its own. Two comparisons, at equal iterations and threads:

- `same_words`: both encode the rows with the codewords that Faiss trained, so that nothing but the encoder differs;
- `own_words`: each encodes with codewords of its own, trained on the same rows with as many rounds.

Errors are mean squared distances of rows from what their codes stand for. `speedup` is Faiss's encoding time over nearwise's,
`error_ratio` nearwise's error over Faiss's: at most 1 is no worse. Prints one JSON object.
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


def read_rows(path, rows):
    """Of a .u8bin file."""
    count, dim = numpy.fromfile(path, numpy.uint32, 2)
    shape = (int(count), int(dim))
    return numpy.memmap(path, numpy.uint8, "r", 8, shape)[:rows].astype(numpy.float32)


def write_words(quantizer, path):
    """Faiss's codewords as an .fbin file."""
    words = faiss.vector_to_array(quantizer.codebooks).reshape(-1, quantizer.d)
    with open(path, "wb") as file:
        numpy.array(words.shape, numpy.uint32).tofile(file)
        words.astype(numpy.float32).tofile(file)


def own(options, *more):
    command = [options.program, "--base", options.base, "--query-file", options.base, "--queries", "1",
               "--rows", str(options.rows), "--train-rows", str(options.train_rows),
               "--codebooks", str(options.codebooks), "--rounds", str(options.rounds),
               "--iterations", str(options.iterations), "--threads", str(options.threads), *more]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def faiss_encode(quantizer, rows):
    start = time.perf_counter()
    codes = quantizer.compute_codes(rows)
    seconds = time.perf_counter() - start
    return seconds, float(((rows - quantizer.decode(codes)) ** 2).sum(axis=1).mean())


def measure(options):
    rows = read_rows(options.base, max(options.rows, options.train_rows))
    quantizer = faiss.LocalSearchQuantizer(rows.shape[1], options.codebooks, 8)
    quantizer.train_iters = options.rounds
    quantizer.encode_ils_iters = options.iterations
    start = time.perf_counter()
    quantizer.train(rows[: options.train_rows])
    training = time.perf_counter() - start
    rows = rows[: options.rows]
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words.fbin"
        write_words(quantizer, words)
        rounds = []
        for _ in range(options.repeat):
            ours = own(options, "--words", str(words))["encodings"][0]
            rounds.append((ours["seconds"], ours["error"], *faiss_encode(quantizer, rows)))
    speedups = [theirs / ours for ours, _, theirs, _ in rounds]
    seconds, error, faiss_seconds, faiss_error = rounds[-1]
    result = {"rows": len(rows), "train_rows": options.train_rows, "codebooks": options.codebooks,
              "rounds": options.rounds, "iterations": options.iterations, "threads": options.threads,
              "faiss": faiss.__version__, "faiss_training_seconds": training,
              "same_words": {"seconds": seconds, "faiss_seconds": faiss_seconds, "error": error,
                             "faiss_error": faiss_error, "error_ratio": error / faiss_error,
                             "speedup": statistics.median(speedups), "spread": max(speedups) / min(speedups)}}
    trained = own(options)
    error = trained["encodings"][0]["error"]
    result["own_words"] = {"training_seconds": trained["training_seconds"], "error": error,
                           "faiss_error": faiss_error, "error_ratio": error / faiss_error}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--base", required=True, help="a .u8bin file")
    parser.add_argument("--rows", type=int, default=20_000, help="to encode")
    parser.add_argument("--train-rows", type=int, default=20_000)
    parser.add_argument("--codebooks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=25, help="of the training")
    parser.add_argument("--iterations", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    print(json.dumps(measure(options)), flush=True)


if __name__ == "__main__":
    main()
