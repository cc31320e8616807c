"""Pairs within a threshold, and the removal of near-duplicates."""
from harness.session import THREADS, Result

from . import index


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


FIGURES = (tests, join_tests, join, join_vs_faiss)
