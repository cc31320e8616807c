"""The claims of work on a Ray cluster: the answers and bytes of one process, at little more time, whoever is killed.

The cluster is several nodes on this machine, in a network of its own. Figures of `tools/prove scale`.
"""
import json
import os

from . import processes
from .exact import judged
from .figures import ROOT
from .ivf import sift


def on_cluster(session, script, *arguments):
    """What a program of bench/cluster reports."""
    environment = os.environ.get("NEARWISE_ENV") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "nearwise", "env")
    package = session.build("release", "nearwise_python") / "python"
    command = [ROOT / "tools" / "isolated", f"{environment}/bin/python", ROOT / "bench" / "cluster" / script, *arguments]
    output = processes.run(command, env=os.environ | {"PYTHONPATH": str(package)}).output
    return json.loads(output.splitlines()[-1])


def ray_search(session):
    """SIFT in 4 parts x 2 replicas, 10,000 queries, top 100: identical, also with a replica killed, in 1.1 of the time of
    direct calls."""
    size = ["--queries", 1_000, "--repeat", 2] if session.quick else []
    folder = sift(session)
    report = on_cluster(session, "search.py", "--base", folder / "base.u8bin", "--query-file", folder / "query.u8bin", *size)
    identical = report["identical"] and report["identical_after_kill"] and report["replicas_left_after_kill"] == 7
    result = judged(session, round(report["overhead"], 4), "<= 0.1, all answers identical", report["overhead"] <= 0.1,
                    {"report": report})
    result.holds = result.holds and identical
    return result


FIGURES = (ray_search,)
