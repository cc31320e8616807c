"""The claims of k-NN graphs: the recall that was asked for, the same bytes, and time against exact search and others.

Under --quick sizes are small and speeds mean nothing: they are reported, not judged.
"""
import hashlib
import json
from pathlib import Path

from . import cuda, processes, sgemm
from .exact import judged
from .figures import Result
from .ivf import against_faiss, sift, text

SEEDS = range(5)
THREADS = (1, 2, 3, 4, 8)


def built(session, *arguments):
    program = session.build("release") / "bench" / "end_to_end" / "graph"
    output = processes.run([program, "--base", sift(session) / "base.u8bin", "--type", "u8", *arguments]).output
    return [json.loads(line) for line in output.splitlines()]


def graph_recall(session):
    """Graphs of SIFT, degrees 10 and 32, asked for 0.90, 0.95 and 0.99: reached, and so on a second sample."""
    reports = built(session, "--degree", "10,32", "--threads", sgemm.THREADS)
    short = [report["measured"]["high"] - report["recall_wanted"] for report in reports]
    holds = all(report["reached"] for report in reports) and min(short) >= 0
    return Result(round(min(short), 4), ">= 0 (interval of the second sample above the target), all reached", holds,
                  {"reports": reports})


def graph_vs_sgemm(session):
    """SIFT, degree 10, to 0.99: a twentieth of the time of bare sgemm on all pairs, told from 20,000 rows against all."""
    base = sift(session) / "base.u8bin"
    report = built(session, "--degree", 10, "--percent", 99, "--threads", sgemm.THREADS)[0]
    queries = 2_000 if session.quick else 20_000
    product = sgemm.run(session, sgemm.choices(session)[-1],
                        ["--base", base, "--query-file", base, "--queries", queries, "--type", "u8", "--k", 1,
                         "--repeat", 1])
    brute_force = min(product["sgemm_seconds"] + product["sgemm_again_seconds"]) * report["rows"] / queries
    ratio = report["seconds"] / brute_force
    return judged(session, round(ratio, 4), "<= 0.05", ratio <= 0.05,
                  {"report": report, "brute_force_seconds": brute_force, "gflops": product["sgemm_gflops"]})


def graph_merge(session):
    """SIFT as two halves, degree 10, two threads, to 0.95 and 0.99: merged in at most 0.6 of the time of a build of all
    rows, with at most 0.01 less recall; the worse of the two."""
    program = session.build("release") / "bench" / "end_to_end" / "graph_change"
    output = processes.run([program, "--base", sift(session) / "base.u8bin", "--type", "u8", "--threads",
                            sgemm.THREADS]).output
    reports = [json.loads(line) for line in output.splitlines()]
    whole, merged = ([report for report in reports if report["what"] == what] for what in ("whole", "merged"))
    ratio = max(new["seconds"] / old["seconds"] for old, new in zip(whole, merged))
    lost = max(old["measured"]["value"] - new["measured"]["value"] for old, new in zip(whole, merged))
    holds = ratio <= 0.6 and lost <= 0.01 and all(report["reached"] for report in merged)
    return judged(session, {"time": round(ratio, 3), "recall lost": round(lost, 4)},
                  "time <= 0.6, recall lost <= 0.01, all reached", holds, {"reports": reports})


def first_rows(base, count, path):
    """A file of the first rows of a .u8bin file, or of all there are."""
    with open(base, "rb") as file:
        given, dim = (int.from_bytes(file.read(4), "little") for _ in range(2))
        count = min(count, given)
        path.write_bytes(count.to_bytes(4, "little") + dim.to_bytes(4, "little") + file.read(count * dim))
    return path


def graph_same_bytes(session):
    """n = 50,000 (exact search is the faster way there) and 70,000 (cells): the same file for 1, 2, 3, 4 and 8 threads, by
    each of five seeds."""
    program = session.build("release") / "cli" / "nearwise"
    folder = Path(session.scratch)
    digests = {}
    for count in (50_000, 70_000):
        rows = first_rows(sift(session) / "base.u8bin", count, folder / "part.u8bin")
        for seed in SEEDS:
            for threads in THREADS:
                output = folder / "graph.ibin"
                processes.run([program, "graph", "build", rows, "--degree", 10, "--seed", seed, "--threads", threads,
                               "--output", folder / "graph.nw", "--quiet"])
                processes.run([program, "convert", folder / "graph.nw", output, "--quiet"])
                digests.setdefault((count, seed), set()).add(hashlib.sha256(output.read_bytes()).hexdigest())
    most = max(len(each) for each in digests.values())
    return Result(most, "1 (different files per size and seed)", most == 1, {"sizes_and_seeds": len(digests)})


def graph_device_same_bytes(session):
    """Joins of generated groups, and graphs of 2,000 rows under five schedules, on the emulated device: the CPU's bytes."""
    return cuda.generated_shapes(session, "*CudaJoin*", 200)


def compared(session, *arguments):
    report = against_faiss(session, "graph_vs_others.py", "--threads", sgemm.THREADS, *arguments)[0]
    bars = {"0.95": 2, "0.99": 3}
    value = {target: ratio and round(ratio, 2) for target, ratio in report["ratios"].items()}
    holds = all(report["ratios"][target] is None or report["ratios"][target] >= bar for target, bar in bars.items())
    return judged(session, value, ">= 2 at 0.95, >= 3 at 0.99 (null: no rival got there)", holds, {"report": report})


def sift_compared(session, degree):
    size = ["--rows", 20_000, "--rivals", "faiss_ivf"] if session.quick else []
    return compared(session, "--base", sift(session) / "base.u8bin", "--degree", degree, *size)


def graph_vs_others(session):
    """SIFT, degree 10, against the best of pynndescent and Faiss: 2 times as fast to 0.95, 3 times to 0.99."""
    return sift_compared(session, 10)


def graph_vs_others_degree_32(session):
    """SIFT, degree 32: the same."""
    return sift_compared(session, 32)


def graph_vs_others_text(session):
    """Text, 384 dimensions by cosine, degree 10: the same."""
    size = ["--rows", 5_000, "--rivals", "faiss_nn_descent"] if session.quick else []
    return compared(session, "--base", text(session) / "base.fbin", "--metric", "cosine", *size)


def graph_planted_faults(session):
    """Of 20 faults planted between builder and backend, those that the reported interval shows."""
    run = processes.run_tests(session.build("release") / "tests" / "graph_tests", "*PlantedFault.*", session.scratch)
    caught = run.tests - len(run.failed) - 1  # one build has no fault, and gets there
    return Result(caught, "20, and none where none is", caught == 20 and run.passed, {"failed": run.failed})


FIGURES = (graph_recall, graph_vs_sgemm, graph_merge, graph_same_bytes, graph_device_same_bytes, graph_planted_faults,
           graph_vs_others, graph_vs_others_degree_32, graph_vs_others_text)
