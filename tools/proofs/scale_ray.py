"""The claims of work on a Ray cluster: the answers and bytes of one process, at little more time, whoever is killed.

The cluster is several nodes on this machine, in a network of its own. These figures are part of `tools/prove scale`.
"""
import json
import os

from . import processes
from .exact import judged
from .figures import ROOT, Result
from .ivf import sift


def on_cluster(session, script, *arguments):
    """What a program of bench/cluster reports."""
    environment = os.environ.get("NEARWISE_ENV") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "nearwise", "env")
    package = session.build("release", "nearwise_python") / "python"
    program = [f"{environment}/bin/python", ROOT / "bench" / "cluster" / script]
    output = processes.run([ROOT / "tools" / "isolated", *program, *arguments],
                           env=os.environ | {"PYTHONPATH": str(package)}).output
    return json.loads(output.splitlines()[-1])


def ray_search(session):
    """SIFT in 4 parts x 2 replicas, 10,000 queries, top 100: time over that of direct calls; then one is killed."""
    size = ["--queries", 1_000, "--repeat", 2] if session.quick else []
    folder = sift(session)
    report = on_cluster(session, "search.py", "--base", folder / "base.u8bin", "--query-file", folder / "query.u8bin",
                        *size)
    identical = report["identical"] and report["identical_after_kill"] and report["replicas_left_after_kill"] == 7
    result = judged(session, round(report["overhead"], 4), "<= 0.1, all answers identical", report["overhead"] <= 0.1,
                    {"report": report})
    result.holds = result.holds and identical
    return result


def planned(session, what, *full_size):
    size = ["--rows", 30_000, "--memory", "64MiB", "--repeat", 1] if session.quick else full_size
    return on_cluster(session, "plan.py", what, "--base", sift(session) / "base.u8bin", *size)


def ray_overhead(session):
    """A graph of SIFT 1M in 256 MiB, its tasks by two Ray workers: time over that of a pool of two processes."""
    report = planned(session, "overhead", "--rows", 1_000_000, "--memory", "256MiB", "--repeat", 8)
    result = judged(session, round(report["overhead"], 4), "<= 0.05, all files identical", report["overhead"] <= 0.05,
                    {"report": report})
    result.holds = result.holds and report["identical"]
    return result


def ray_kills(session):
    """A graph of 200,000 rows on three nodes, a worker and then a node killed: whether it is that of one process."""
    report = planned(session, "kills")
    return Result(report["identical"], "true, a worker and a node killed",
                  report["identical"] and report["killed"] == ["worker", "node"], {"report": report})


FIGURES = (ray_search, ray_overhead, ray_kills)
