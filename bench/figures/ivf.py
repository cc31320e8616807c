"""k-means and inverted files: against bare matrix products, Faiss and ScaNN."""
import functools

from harness import sgemm
from harness.session import THREADS, Result


def kmeans_vs_sgemm(session):
    """One k-means iteration on SIFT 1M x 128 f32: time relative to the fastest sgemm of the same shape"""
    library, environment = sgemm.choices(session)[-1]
    size = ["--clusters", "64", "--repeat", 1] if session.quick else ["--clusters", "1024,4096", "--repeat", 3]
    reports = session.bench("kmeans", "--base", session.sift(), "--type", "f32", "--threads", THREADS, "--blas", library,
                            *size, env=environment)
    value = {f"k={report['clusters']}": round(report["ratio"], 3) for report in reports}
    return session.speed(value, "<= 0.5 for each", max(value.values()) <= 0.5, {"reports": reports})


def kmeans_vs_faiss(session):
    """k-means on SIFT 1M, ten iterations over all vectors: speed and error relative to Faiss"""
    size = ["--rows", 20_000, "--clusters", 64] if session.quick else ["--clusters", 1024, 4096]
    reports = session.rival("vs_faiss.py", "kmeans", "--program", session.program("kmeans"), "--base", session.sift(),
                            "--repeat", 1, *size)
    value = {f"k={report['clusters']}": {"speed": round(report["speedup"], 2), "error": round(report["error_ratio"], 4)}
             for report in reports}
    holds = all(report["speedup"] >= 4 and report["error_ratio"] <= 1 for report in reports)
    return session.speed(value, "speed >= 4, error <= 1", holds, {"reports": reports})


SETS = {
    "sift": {"metric": "sqeuclidean", "code_bytes": 16, "lists": (1024, 2048)},
    "text": {"metric": "cosine", "code_bytes": 48, "lists": (256, 512)},
}


@functools.cache
def report_of(session, what, name):
    """The report of ivf_vs_faiss.py; several figures read the same one."""
    files, shape = getattr(session, name), SETS[name]
    arguments = ["--what", what, "--base", files(), "--queries", files("query"), "--metric", shape["metric"],
                 "--code-bytes", shape["code_bytes"]]
    if session.quick:
        arguments += ["--lists", 32, "--grid-probes", 4, 8, 16, "--grid-candidates", 100, 200, "--queries-limit", 300,
                      "--repeat", 1]
    else:
        # Faiss's IVFPQ and RaBitQ were always slower than FastScan (docs/notes/measurements.md).
        arguments += ["--lists", *(shape["lists"][:1] if what == "quality" else shape["lists"]), "--rivals", "fastscan",
                      "scann"]
        if what == "latency":
            arguments += ["--queries-limit", 4000]
    return session.rival("ivf_vs_faiss.py", *arguments)[0][what]


def speed_result(session, name):
    report = report_of(session, "speed", name)
    ratios = {f"recall {target}": each["ratio"] for target, each in report["targets"].items()}
    return session.speed({target: round(ratio, 2) for target, ratio in ratios.items()}, ">= 1.7 for each",
                         min(ratios.values()) >= 1.7, {"report": report})


def latency_result(session, name):
    report = report_of(session, "latency", name)
    ratios = {f"recall {target}": each["ratios"] for target, each in report["targets"].items()}
    value = {target: {key.removesuffix("_us"): ratio and round(ratio, 2) for key, ratio in each.items()}
             for target, each in ratios.items()}
    holds = all(ratio is not None and ratio <= 1 for each in ratios.values() for ratio in each.values())
    return session.speed(value, "<= 1 for each", holds, {"report": report})


def ivf_pq_quality(session):
    """SIFT 1M, 8, 16 and 32 code bytes, no re-ranking: recall@1, 10, 100 minus that of Faiss's IVFPQ, the worst case"""
    report = report_of(session, "quality", "sift")
    worst = min(each["own"][rank] - each["faiss"][rank] for each in report.values() for rank in each["own"])
    return Result(round(worst, 4), ">= -0.01", worst >= -0.01, {"report": report})


def ivf_pq_build(session):
    """SIFT 1M, 1,024 lists: time to train and add relative to Faiss's IVFPQ"""
    report = report_of(session, "quality", "sift")
    ratios = {size: sum(each["own_seconds"].values()) / sum(each["faiss_seconds"].values())
              for size, each in report.items()}
    return session.speed({f"{size} bytes": round(ratio, 2) for size, ratio in ratios.items()}, "<= 0.5 for each",
                         max(ratios.values()) <= 0.5, {"report": report})


def ivf_pq_speed(session):
    """SIFT 1M, 16 code bytes, one batch of 10,000 queries: queries per second relative to the best of FastScan and ScaNN"""
    return speed_result(session, "sift")


def ivf_pq_speed_text(session):
    """Text 100,000 x 384, cosine, 48 code bytes, one batch: queries per second relative to the best of FastScan and ScaNN"""
    return speed_result(session, "text")


def ivf_latency(session):
    """SIFT 1M, 16 code bytes, one query at a time: median and 99th percentile relative to the best of FastScan and ScaNN"""
    return latency_result(session, "sift")


def ivf_latency_text(session):
    """Text 100,000 x 384, cosine, 48 code bytes, one query at a time: median and 99th percentile relative to the best rival"""
    return latency_result(session, "text")


FIGURES = (kmeans_vs_sgemm, kmeans_vs_faiss, ivf_pq_quality, ivf_pq_build, ivf_pq_speed, ivf_pq_speed_text, ivf_latency,
           ivf_latency_text)
