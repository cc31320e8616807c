"""Graph indexes: latency of single queries, recall, determinism, exported files."""
import functools
import math

from harness.session import CACHE, Result

from . import index

TARGETS = (0.95, 0.99)


@functools.cache
def rival_reports(session, name):
    files, metric = {"sift": (session.sift, "sqeuclidean"), "text": (session.text, "cosine"),
                     "images": (session.images, "sqeuclidean")}[name]
    return run_rivals(session, name, "--base", files(), "--queries", files("query"), "--metric", metric)


def run_rivals(session, name, *arguments):
    # Rivals' indexes of full size are kept: `bench/rivals/graph_search.py --build` can make them beforehand.
    size = ["--rows", 5000, "--count", 100, "--repeat", 2] if session.quick else ["--store", CACHE / "rival-indexes" / name]
    return session.rival("graph_search.py", *arguments, *size)


def latency(session, name, bar, most_bytes):
    """p50 of the best rival relative to ours, at each target; our p99 relative to our p50; bytes beside a vector."""
    reports = rival_reports(session, name)
    ratios, tails = {}, {}
    for target in TARGETS:
        rows = [report for report in reports if report["target"] == target]
        (ours,) = [report for report in rows if report["library"].startswith("nearwise")]
        rivals = [report["p50_us"] for report in rows if report is not ours and report["recall"] >= target]
        ratios[target] = round(min(rivals) / ours["p50_us"], 2)
        tails[target] = round(ours["p99_us"] / ours["p50_us"], 2)
    bytes_per_vector = ours["bytes_per_vector"]
    holds = min(ratios.values()) >= bar and max(tails.values()) <= 2.5 and bytes_per_vector <= most_bytes
    return session.speed({"p50": ratios, "p99_to_p50": tails, "bytes": bytes_per_vector},
                         f">= {bar}, p99 <= 2.5 times p50, bytes <= {most_bytes}", holds, {"reports": reports})


def latency_sift(session):
    """SIFT 1M, one query at a time on one thread, recall 0.95 and 0.99: p50 of the best rival relative to ours"""
    return latency(session, "sift", 2.5, 320)


def latency_text(session):
    """Text 100k x 384, cosine, one query at a time on one thread: p50 of the best rival relative to ours"""
    return latency(session, "text", 2, 800)


def latency_images(session):
    """Images 60k x 784, one query at a time on one thread: p50 of the best rival relative to ours"""
    return latency(session, "images", 2, 1100)


def latency_avx2(session):
    """SIFT, instruction sets up to AVX2, 250,000 vectors: p50 of hnswlib relative to ours, one query at a time on one thread"""
    reports = run_rivals(session, "sift", "--base", session.sift(), "--queries", session.sift("query"), "--isa", "avx2", "--only",
                         "nearwise", "hnswlib, M 16", "--rows", 250_000)
    ratios = {}
    for target in TARGETS:
        ours, theirs = ([report["p50_us"] for report in reports if report["target"] == target and report["library"].startswith(name)]
                        for name in ("nearwise", "hnswlib"))
        ratios[target] = round(min(theirs) / min(ours), 2)
    return session.speed(ratios, ">= 1.5", min(ratios.values()) >= 1.5, {"reports": reports})


def build_cpu(session, name, bar):
    reports = {report["library"]: report for report in rival_reports(session, name)}
    seconds = {library: report["build_cpu_seconds"] for library, report in reports.items()}
    ratio = seconds["hnswlib, M 16"] / seconds["nearwise GraphIndex"]
    return session.speed(round(ratio, 2), f">= {bar}", ratio >= bar, {"cpu_seconds": seconds})


def build_sift(session):
    """SIFT 1M: CPU time to build hnswlib with M 16 relative to ours"""
    return build_cpu(session, "sift", 6)


def build_text(session):
    """Text 100k x 384: CPU time to build hnswlib with M 16 relative to ours"""
    return build_cpu(session, "text", 5)


def build_images(session):
    """Images 60k x 784: CPU time to build hnswlib with M 16 relative to ours"""
    return build_cpu(session, "images", 5)


def batches(session):
    """SIFT 1M, recall 0.99 by the cheapest setting, 10,000 queries in one batch on 2 threads: queries/s relative to IvfFlat"""
    small = ["--rows", 5000, "--repeat", 2] if session.quick else []
    reports = index.python_reports(session, "graph_batch.py", "--base", session.sift(), "--queries", session.sift("query"), *small)
    rates = {report["index"]: report["queries_per_second"] for report in reports}
    ratio = rates["GraphIndex"] / rates["IvfFlat"]
    return session.speed(round(ratio, 2), ">= 1", ratio >= 1, {"reports": reports})


def growth(session):
    """SIFT 100k to 1M, recall 0.95, one query at a time on one thread: a in p50 = n^a; bytes per vector beside the vectors"""
    sizes = [2000, 5000] if session.quick else [100_000, 300_000, 1_000_000]
    reports = index.python_reports(session, "graph_growth.py", "--base", session.sift(), "--queries", session.sift("query"), "--sizes",
                                   *sizes)
    first, last = reports[0], reports[-1]
    exponent = math.log(last["p50_us"] / first["p50_us"]) / math.log(last["rows"] / first["rows"])
    bytes_per_vector = last["bytes_per_vector"]
    return session.speed({"exponent": round(exponent, 3), "bytes": bytes_per_vector}, "a <= 0.5, bytes <= 320",
                         exponent <= 0.5 and bytes_per_vector <= 320, {"reports": reports})


def recall(session):
    """Recall of unseen queries with the calibrated beam, less the target, on SIFT, text, images and generated sets"""
    targets = TARGETS[:1] if session.quick else (0.90, *TARGETS)
    reports = []
    for files, metric in ((session.sift, "sqeuclidean"), (session.text, "cosine"), (session.images, "sqeuclidean")):
        reports += index.python_reports(session, "graph_recall.py", "--base", files(), "--queries", files("query"), "--metric",
                                        metric, "--targets", *targets)
    reports += index.python_reports(session, "graph_recall.py", "--targets", *targets, "--rows", 3000 if session.quick else 100000)
    worst = min(report["recall"] - report["target"] for report in reports)
    return Result(round(worst, 4), ">= -0.005", worst >= -0.005, {"reports": reports})


def updates(session):
    """SIFT 200k, half of the vectors replaced in 20 steps: recall less that of a new index, same beams, the worst"""
    small = ["--rows", 2000, "--steps", 5] if session.quick else []
    reports = index.python_reports(session, "graph_updates.py", "--base", session.sift(), "--queries", session.sift("query"), *small)
    worst = min(report["recall"]["changed"] - report["recall"]["new"] for report in reports)
    return Result(round(worst, 4), ">= -0.01", worst >= -0.01, {"reports": reports})


def cold(session):
    """SIFT 200k as f32, index built over files and mapped, page cache dropped before each query: pages read per query, by section"""
    small = ["--rows", 5000, "--count", 20, "--memory-limit", "128MiB"] if session.quick else []
    (report,) = index.python_reports(session, "graph_cold.py", "--base", session.sift(), "--queries", session.sift("query"),
                                     "--float", *small)
    # Vectors are read to evaluate the best of the beam, and for nothing else.
    most = report["evaluated"] * report["pages_of_vector"]
    holds = report["random"]["most_vector_pages"] <= most and report["left_after_drop"] == 0
    pages = {name: {section: count for section, count in report[name]["pages"].items() if count} for name in ("random", "read_ahead")}
    return Result(pages, f"pages of vectors <= {most} without read-ahead", holds, {"reports": [report]})


def tests(session):
    """Tests of graph indexes in C++: definitions, same bytes on 1, 2, 3 and 8 threads and every instruction set, filters"""
    return session.test_result("graph_index_tests", "*")


def exported(session):
    """SIFT 1M in hnswlib and SVS: recall of our exported graph less that of hnswlib's own, at equal ef"""
    small = ["--rows", 5000, "--count", 200] if session.quick else []
    reports = session.rival("graph_export.py", "--base", session.sift(), "--queries", session.sift("query"), *small)
    worst = min(min(report["exported"], report["svs"]) - report["own"] for report in reports)
    return Result(round(worst, 4), ">= -0.005", worst >= -0.005, {"reports": reports})


FIGURES = (tests, recall, updates, batches, growth, latency_sift, latency_text, latency_images, latency_avx2, build_sift, build_text,
           build_images, exported, cold)
