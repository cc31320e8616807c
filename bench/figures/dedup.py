"""Pairs within a threshold, and the removal of near-duplicates."""
import functools

from harness.session import THREADS, Result

from . import index, scale


def join_reports(session):
    small = ["--rows", 5000, "--subset", 3000, "--repeat", 1] if session.quick else []
    reports = index.python_reports(session, "threshold_join.py", "--base", session.sift(), "--threads", THREADS, *small)
    return {report.pop("case"): report for report in reports}


def tests(session):
    """Tests of duplicates in C++: the definition, every metric, memory limits, errors"""
    return session.test_result("duplicates_tests", "*")


def join_tests(session):
    """Tests of pairs within a threshold against the oracle, every kind of data, type and instruction set"""
    return session.test_result("ops_tests", "*ThresholdJoin*")


def join(session):
    """SIFT 1M, about 5 pairs for each vector: equal to an oracle (100,000 vectors) and to range_search; time relative to exact_knn_graph"""
    reports = join_reports(session)
    equal = all(reports[case]["equal"] and reports[case]["pairs"] > 0 for case in ("oracle", "range_search"))
    if not equal:
        return Result("other pairs", "equal, <= 1.2", False, reports)
    ratio = reports["speed"]["ratio"]
    return session.speed(ratio, "equal, <= 1.2", ratio <= 1.2, reports)


def join_vs_faiss(session):
    """SIFT 1M, the same radius: time of Faiss's range_search for one vector relative to that of the join"""
    small = ["--rows", 5000, "--count", 500] if session.quick else []
    (report,) = session.rival("threshold_join.py", "--base", session.sift(), *small)
    return session.speed(report["ratio"], ">= 8", report["ratio"] >= 8, report)


@functools.cache
def partition_reports(session):
    """Of 10M x 128 vectors in 2 GiB; under --quick of 100,000, with the all-pairs schedule as a check."""
    rows, limit, more = (100_000, "96MiB", ["--check", "--planted", 1000]) if session.quick else (10_000_000, "2GiB", [])
    folder = session.scratch / "join-files"
    folder.mkdir()
    reports = index.python_reports(session, "join_files.py", "--base", scale.base_of(session, rows), "--folder", folder,
                                   "--memory-limit", limit, "--threads", THREADS, *more)
    return {report.pop("case"): report for report in reports}


def partition_tests(session):
    """Tests of joins by partitions in C++: the bound, every metric, pairs at the threshold and on bisectors, limits, resumption"""
    return session.test_result("plan_tests", "PartitionReach*:MemberSearch*:PartitionJoin*")


def planted_pairs(session):
    """10M x 128 over files in 2 GiB, by partitions, at most 5 copies per vector: planted pairs across cluster borders that are found"""
    reports = partition_reports(session)
    joined = reports["join"]
    holds = (joined["found"] == joined["planted"] > 0 and joined["copies"] <= 5 and joined["method"] == "partitions"
             and reports.get("pairs", {}).get("equal", True))
    return Result(joined["found"] / joined["planted"], "1, copies <= 5", holds, reports)


def missed_by_clusters(session):
    """The same pairs: share that comparing within single k-means clusters misses, of all pairs and of the planted ones"""
    found = partition_reports(session)["clusters"]
    return Result({key: round(value, 4) for key, value in found.items() if key != "clusters"}, "reported", True, found)


def join_vs_graph(session):
    """The same vectors: time of the join by partitions relative to the build of the k-NN graph over files"""
    reports = partition_reports(session)
    ratio = reports["join"]["seconds"] / reports["graph"]["seconds"]
    return session.speed(round(ratio, 3), "reported", True, reports)


FIGURES = (tests, join_tests, join, join_vs_faiss, partition_tests, planted_pairs, missed_by_clusters, join_vs_graph)
