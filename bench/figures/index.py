"""Indexes that hold what their recall needs: recall and speed of searches that name nothing."""
import os
import statistics

from harness import processes
from harness.session import CACHE, ROOT, THREADS, Result, json_lines

TARGETS = (0.90, 0.95, 0.99)


def default_recall(session):
    """Built with a target recall and searched with no other argument: recall of unseen queries, SIFT 1M and text"""
    environment = os.environ | {"PYTHONPATH": str(session.build("release", "nearwise_python") / "python")}
    targets = TARGETS[:1] if session.quick else TARGETS
    reports = []
    for files, metric in ((session.sift, "sqeuclidean"), (session.text, "cosine")):
        command = [CACHE / "env" / "bin" / "python", ROOT / "bench" / "end_to_end" / "default_recall.py", "--base", files(),
                   "--queries", files("query"), "--metric", metric, "--targets", *targets]
        reports += json_lines(processes.run(command, env=environment).output)
    short = [report for report in reports if not report["warned"] and report["recall"] < report["target"] - 0.005]
    worst = min((report["recall"] - report["target"] for report in reports if not report["warned"]), default=None)
    return Result(worst and round(worst, 4), ">= -0.005, or a warning", not short, {"reports": reports})


def default_search_speed(session):
    """SIFT 1M, PQ, 10,000 queries: time re-ranked by the index's vectors relative to that by the caller's"""
    index = session.scratch / "index.nw"
    arguments = ["--base", session.sift(), "--queries", session.sift("query"), "--index", index, "--threads", THREADS,
                 "--repeat", 3, "--lists", 32 if session.quick else 1024, "--probes", 8 if session.quick else 16]
    seconds = {"index": [], "rows": []}
    for number in range(2 if session.quick else 11):
        for source in ("index", "rows") if number % 2 else ("rows", "index"):
            report = session.bench("ivf", *arguments, "--rerank", source)[-1]
            if number > 0:  # the first round warms up
                seconds[source].append(statistics.median(report["seconds"]))
    ratio = statistics.median(seconds["index"]) / statistics.median(seconds["rows"])
    return session.speed(round(ratio, 3), "<= 1.03", ratio <= 1.03, {"seconds": seconds})


def kept_vectors(session):
    """Tests of kept vectors, ids and updates in C++"""
    return session.test_result("index_tests", "*Storage*:*KeptVectors*:*IvfIds*:*Duplicates*:*IdTable*")


FIGURES = (default_recall, default_search_speed, kept_vectors)
