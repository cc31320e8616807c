"""Times nearwise's k-means against Faiss's on the same rows, in turn: whole trainings with as many iterations.

Runs in the environment of the rivals; --program is the benchmark program `kmeans`, which trains in a process of its own.
Both take all rows, as many threads and start from centroids of their own. Errors are those of the last iteration, before
its centroids move. Prints one JSON object per number of clusters; `speedup` is Faiss's time over nearwise's in the same
round, `error_ratio` nearwise's error over Faiss's.
"""
import argparse
import json
import statistics
import subprocess
import time

import faiss
import numpy


def read_rows(path, rows):
    """Of a .u8bin file."""
    count, dim = numpy.fromfile(path, numpy.uint32, 2)
    shape = (int(count), int(dim))
    return numpy.memmap(path, numpy.uint8, "r", 8, shape)[:rows].astype(numpy.float32)


def own(options, clusters):
    command = [options.program, "--base", options.base, "--rows", str(options.rows), "--type", options.type,
               "--clusters", str(clusters), "--iterations", str(options.iterations), "--threads",
               str(options.threads), "--repeat", "1", "--blas", "none"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return report["whole_seconds"][0], report["errors"][-1]


def rival(options, rows, clusters):
    kmeans = faiss.Kmeans(rows.shape[1], clusters, niter=options.iterations, max_points_per_centroid=len(rows),
                          min_points_per_centroid=1)
    start = time.perf_counter()
    kmeans.train(rows)
    return time.perf_counter() - start, float(kmeans.obj[-1])


def measure(options, rows, clusters):
    rounds = [(own(options, clusters), rival(options, rows, clusters)) for _ in range(options.repeat)]
    speedups = [theirs[0] / ours[0] for ours, theirs in rounds]
    return {"clusters": clusters, "iterations": options.iterations, "threads": options.threads,
            "rows": len(rows), "type": options.type, "faiss": faiss.__version__,
            "faiss_simd": faiss.SIMDConfig.get_level_name(),
            "own_seconds": [ours[0] for ours, _ in rounds], "faiss_seconds": [theirs[0] for _, theirs in rounds],
            "speedup": statistics.median(speedups), "spread": max(speedups) / min(speedups),
            "error_ratio": rounds[0][0][1] / rounds[0][1][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--base", required=True, help="a .u8bin file")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--type", default="f32", help="what nearwise gets: f32, as Faiss does, or u8")
    parser.add_argument("--clusters", type=int, nargs="+", default=[1024, 4096])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    faiss.omp_set_num_threads(options.threads)
    rows = read_rows(options.base, options.rows)
    for clusters in options.clusters:
        print(json.dumps(measure(options, rows, clusters)), flush=True)


if __name__ == "__main__":
    main()
