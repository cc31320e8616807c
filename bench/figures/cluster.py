"""Ray cluster: the answers and bytes of one process, small overhead, and recovery from killed workers and nodes.

The cluster is several Ray nodes on this machine, in a network namespace of its own.
"""
import os

from harness import processes
from harness.session import CACHE, ROOT, Result, json_lines


def on_cluster(session, what, *arguments):
    """The report of bench/end_to_end/ray_cluster.py."""
    python = os.path.join(os.environ.get("NEARWISE_ENV") or CACHE / "env", "bin", "python")
    package = session.build("release", "nearwise_python") / "python"
    output = processes.run([ROOT / "tools" / "isolated", python, ROOT / "bench" / "end_to_end" / "ray_cluster.py", what,
                            "--base", session.sift(), *arguments], env=os.environ | {"PYTHONPATH": str(package)}).output
    return json_lines(output)[-1]


def overhead_result(session, report, most, holds):
    """Overhead is not judged under --quick; whether the answers are right always is."""
    result = session.speed(round(report["overhead"], 4), f"<= {most}, all answers identical", report["overhead"] <= most,
                           {"report": report})
    result.holds = result.holds and holds
    return result


def ray_search(session):
    """SIFT 1M in 4 shards x 2 replicas, 10,000 queries, top 100: additional time relative to direct calls"""
    size = ["--queries", 1_000, "--repeat", 2] if session.quick else []
    report = on_cluster(session, "search", "--query-file", session.sift("query"), *size)
    return overhead_result(session, report, 0.1, report["identical"] and report["identical_after_kill"] and
                           report["replicas_left_after_kill"] == 7)


def build(session, what, *full_size):
    size = ["--rows", 30_000, "--memory", "64MiB", "--repeat", 1] if session.quick else full_size
    return on_cluster(session, what, *size)


def ray_overhead(session):
    """Graph of SIFT 1M in 256 MiB by two Ray workers: additional time relative to a pool of two processes"""
    report = build(session, "overhead", "--rows", 1_000_000, "--memory", "256MiB", "--repeat", 8)
    return overhead_result(session, report, 0.05, report["identical"])


def ray_kills(session):
    """Graph of 200,000 vectors on three nodes, one worker and one node killed: same bytes as in one process"""
    report = build(session, "kills", "--rows", 200_000, "--memory", "96MiB")
    return Result(report["identical"], "true", report["identical"] and report["killed"] == ["worker", "node"],
                  {"report": report})


FIGURES = (ray_search, ray_overhead, ray_kills)
