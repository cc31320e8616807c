"""k-NN graphs: target recall reached, identical bytes, and time relative to exact search and other libraries."""
import hashlib

from harness import big_ann, processes, sgemm
from harness.session import THREADS, Result

from .cuda import emulated_shapes


def built(session, *arguments):
    return session.bench("graph", "--base", session.sift(), "--type", "u8", "--threads", THREADS, *arguments)


def graph_recall(session):
    """SIFT 1M, degrees 10 and 32, target recall 0.90, 0.95, 0.99: upper bound on a second sample minus the target, the worst"""
    reports = built(session, "--degree", "10,32", "--percent", "90,95,99")
    short = [report["measured"]["high"] - report["target_recall"] for report in reports]
    holds = all(report["reached"] for report in reports) and min(short) >= 0
    return Result(round(min(short), 4), ">= 0, all targets reached", holds, {"reports": reports})


def graph_vs_sgemm(session):
    """SIFT 1M, degree 10, recall 0.99: time relative to sgemm of all pairs, extrapolated from 20,000 queries"""
    base = session.sift()
    report = built(session, "--percent", 99)[0]
    queries = 2_000 if session.quick else 20_000
    product = sgemm.run(session, sgemm.choices(session)[-1], "--base", base, "--query-file", base, "--queries", queries,
                        "--type", "u8", "--k", 1, "--repeat", 1)
    brute_force = min(product["sgemm_seconds"] + product["sgemm_again_seconds"]) * report["rows"] / queries
    ratio = report["seconds"] / brute_force
    return session.speed(round(ratio, 4), "<= 0.05", ratio <= 0.05,
                         {"report": report, "brute_force_seconds": brute_force, "gflops": product["sgemm_gflops"]})


def graph_merge(session):
    """SIFT 1M as two halves, degree 10, recall 0.95 and 0.99: time of the merge relative to a build of all, the worst"""
    reports = built(session, "--percent", "95,99", "--merge", 1)
    whole, merged = ([report for report in reports if report["what"] == what] for what in ("built", "merged"))
    ratio = max(new["seconds"] / old["seconds"] for old, new in zip(whole, merged))
    lost = max(old["measured"]["value"] - new["measured"]["value"] for old, new in zip(whole, merged))
    holds = ratio <= 0.6 and lost <= 0.01 and all(report["reached"] for report in merged)
    return session.speed({"time": round(ratio, 3), "recall lost": round(lost, 4)},
                         "time <= 0.6, recall lost <= 0.01, all targets reached", holds, {"reports": reports})


def graph_same_bytes(session):
    """50,000 rows (exact search) and 70,000 rows (partitions), five seeds: different files over 1, 2, 3, 4, 8 threads"""
    digests = {}
    for count in (50_000, 70_000):
        rows = big_ann.first_rows(session.sift(), count, session.scratch)
        for seed in range(5):
            for threads in (1, 2, 3, 4, 8):
                graph, ids = session.scratch / "graph.nw", session.scratch / "graph.ibin"
                processes.run([session.nearwise(), "graph", "build", rows, "--degree", 10, "--seed", seed, "--threads",
                               threads, "--output", graph, "--quiet"])
                processes.run([session.nearwise(), "convert", graph, "--output", ids, "--quiet"])
                digests.setdefault((count, seed), set()).add(hashlib.sha256(ids.read_bytes()).hexdigest())
    most = max(len(each) for each in digests.values())
    return Result(most, "1 for each size and seed", most == 1, {"sizes_and_seeds": len(digests)})


def graph_device_same_bytes(session):
    """Generated joins, and graphs of 2,000 rows under five schedules, on the emulated device: identical to the CPU's"""
    return emulated_shapes(session, "*CudaJoin*", 200)


def graph_planted_faults(session):
    """Faults planted between builder and backend that the reported recall interval reveals"""
    run = session.tests("graph_tests", "*PlantedFault.*")
    caught = run.tests - len(run.failed) - 1  # one build has no fault
    return Result(caught, "20", caught == 20 and run.passed, run.details())


def against_others(session, *arguments):
    report = session.rival("graph_vs_others.py", *arguments)[0]
    value = {f"recall {target}": ratio and round(ratio, 2) for target, ratio in report["ratios"].items()}
    holds = all(report["ratios"][target] is None or report["ratios"][target] >= bar
                for target, bar in {"0.95": 2, "0.99": 3}.items())
    return session.speed(value, ">= 2 at 0.95, >= 3 at 0.99", holds, {"report": report})


def sift_against_others(session, degree):
    size = ["--rows", 20_000, "--rivals", "faiss_ivf"] if session.quick else []
    return against_others(session, "--base", session.sift(), "--degree", degree, *size)


def graph_vs_others(session):
    """SIFT 1M, degree 10: speed (CPU time) relative to the best of pynndescent and Faiss"""
    return sift_against_others(session, 10)


def graph_vs_others_degree_32(session):
    """SIFT 1M, degree 32: speed (CPU time) relative to the best of pynndescent and Faiss"""
    return sift_against_others(session, 32)


def graph_vs_others_text(session):
    """Text 100,000 x 384, cosine, degree 10: speed (CPU time) relative to the best of pynndescent and Faiss"""
    size = ["--rows", 5_000, "--rivals", "faiss_nn_descent"] if session.quick else []
    return against_others(session, "--base", session.text(), "--metric", "cosine", *size)


FIGURES = (graph_recall, graph_vs_sgemm, graph_merge, graph_same_bytes, graph_device_same_bytes, graph_planted_faults,
           graph_vs_others, graph_vs_others_degree_32, graph_vs_others_text)
