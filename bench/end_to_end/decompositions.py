"""Times the trainings that decompose matrices [dim, dim]: principal axes and OPQ.

    python decompositions.py --dim 768 --rows 20000

Principal axes of 2 dim vectors, so that most of the time is that of the eigenvectors. OPQ has parts of 8 dimensions and
makes 3 rounds, each with a polar decomposition. `eigh` and `svd` are numpy's, of matrices of the same order, with
OPENBLAS_NUM_THREADS threads. Runs with this package and with older ones. Prints one JSON line.
"""

import argparse
import json
import statistics
import time

import nearwise
import numpy as np


def correlated(rows, dim):
    """Normal vectors whose variance along hidden axes falls as 1/i."""
    draw = np.random.default_rng(1)
    spread = np.arange(1, dim + 1, dtype=np.float32) ** -0.5
    axes = draw.standard_normal((dim, dim), dtype=np.float32)
    return (draw.standard_normal((rows, dim), dtype=np.float32) * spread) @ axes


def seconds(work, repeat=1):
    """The median, and the result."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - began)
    return statistics.median(times), result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    dim, threads = options.dim, options.threads
    rows = correlated(max(options.rows, 4 * dim), dim)
    few = rows[: 2 * dim]
    repeat = max(1, 1024 // dim)
    pca, _ = seconds(lambda: nearwise.Rotation.pca(few, dim, threads=threads), repeat)
    train = nearwise.OptimizedProductQuantizer.train
    cpu_before = time.process_time()
    opq, quantizer = seconds(lambda: train(rows, parts=dim // 8, rounds=3, threads=threads))
    report = {"dim": dim, "rows": len(rows), "pca_seconds": pca, "opq_seconds": opq}
    report["opq_cpu_seconds"] = time.process_time() - cpu_before
    report["opq_error"] = quantizer.error(rows)
    # Last: idle threads of OpenBLAS spin for a while.
    symmetric, general = ((few.T @ other).astype(np.float64) for other in (few, rows[2 * dim : 4 * dim]))
    report["eigh_seconds"], _ = seconds(lambda: np.linalg.eigh(symmetric), repeat)
    report["svd_seconds"], _ = seconds(lambda: np.linalg.svd(general), repeat)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
