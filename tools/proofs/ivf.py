"""The claims of k-means and the inverted file, against bare matrix products and against Faiss at its best.

Under --quick sizes are small and speeds mean nothing: they are reported, not judged.
"""
import functools
import json
import os

from . import processes, sgemm
from .exact import judged
from .figures import ROOT, Result


def sift(session):
    return (session.data("sift-small", "--set", "sift", "--small") if session.quick else
            session.data("sift", "--set", "sift"))


def rival_environment(session):
    """Faiss with MKL, which runs it several times as fast as the BLAS in its wheel, and nearwise's built package."""
    environment = session.environment_of_rivals()
    libraries = [str(path) for path in sorted((environment / "lib").glob("libmkl_rt.so*"))[:1]]
    return os.environ | {"LD_PRELOAD": os.pathsep.join(libraries), "OMP_NUM_THREADS": str(sgemm.THREADS),
                         "PYTHONPATH": str(session.build("release") / "python")}


def against_faiss(session, script, *arguments):
    python = session.environment_of_rivals() / "bin" / "python"
    output = processes.run([python, ROOT / "bench" / "rivals" / script, *arguments],
                           env=rival_environment(session)).output
    return [json.loads(line) for line in output.splitlines()]


def kmeans_vs_sgemm(session):
    """An iteration of k-means on SIFT takes at most half of the bare sgemm of its shape, 1,024 and 4,096 centroids."""
    program = session.build("release") / "bench" / "end_to_end" / "kmeans"
    library, environment = sgemm.choices(session)[-1]
    size = ["--clusters", "64", "--repeat", 1] if session.quick else ["--clusters", "1024,4096", "--repeat", 3]
    output = processes.run([program, "--base", sift(session) / "base.u8bin", "--type", "f32", "--threads",
                            sgemm.THREADS, "--blas", library, *size], env=environment).output
    reports = [json.loads(line) for line in output.splitlines()]
    value = {f"k={report['clusters']}": round(report["ratio"], 3) for report in reports}
    return judged(session, value, "<= 0.5 for each", max(value.values()) <= 0.5, {"reports": reports})


def kmeans_vs_faiss(session):
    """Ten iterations on SIFT, no row left out: 4 times as fast as Faiss's, at an error no higher."""
    size = ["--rows", 20_000, "--clusters", 64] if session.quick else ["--clusters", 1024, 4096]
    program = session.build("release") / "bench" / "end_to_end" / "kmeans"
    reports = against_faiss(session, "kmeans_vs_faiss.py", "--program", program, "--base",
                            sift(session) / "base.u8bin", "--threads", sgemm.THREADS, "--repeat", 1, *size)
    value = {f"k={report['clusters']}": [round(report["speedup"], 2), round(report["error_ratio"], 5)]
             for report in reports}
    holds = all(report["speedup"] >= 4 and report["error_ratio"] <= 1 for report in reports)
    return judged(session, value, "speedup >= 4, error ratio <= 1", holds, {"reports": reports})


def text(session):
    return (session.data("text-small", "--set", "text", "--small") if session.quick else
            session.data("text", "--set", "text"))


@functools.cache
def ivf_report(session, what, of=sift):
    """of: SIFT, 128 dimensions in 16 bytes, or text, 384 dimensions by cosine in 48. Once, for all figures told from it."""
    folder, arguments = of(session), ["--threads", sgemm.THREADS, "--what", what]
    if of is sift:
        arguments += ["--base", folder / "base.u8bin", "--queries", folder / "query.u8bin"]
        lists = [1024] if what == "quality" else [1024, 2048]
    else:
        arguments += ["--base", folder / "base.fbin", "--queries", folder / "query.fbin", "--metric", "cosine",
                      "--code-bytes", 48]
        lists = [256, 512]
    if session.quick:
        arguments += ["--lists", 32, "--grid-probes", 4, 8, 16, "--grid-candidates", 100, 200, "--queries-limit", 300,
                      "--repeat", 1]
    else:
        # RaBitQ was several times slower (docs/numbers.md), and IVFPQ looks up the bytes that FastScan has in registers: both
        # are left out to keep this short (`ivf_vs_faiss.py` without --rivals has them).
        arguments += ["--lists", *lists, "--rivals", "fastscan", "scann"]
    if what == "latency" and not session.quick:
        arguments += ["--queries-limit", 4000]
    return against_faiss(session, "ivf_vs_faiss.py", *arguments)[0][what]


def speed_result(session, of):
    report = ivf_report(session, "speed", of)
    ratios = {target: each["ratio"] for target, each in report["targets"].items()}
    return judged(session, {target: round(ratio, 2) for target, ratio in ratios.items()}, ">= 1.7 for each",
                  min(ratios.values()) >= 1.7, {"report": report})


def latency_result(session, of):
    report = ivf_report(session, "latency", of)
    ratios = {target: each["ratios"] for target, each in report["targets"].items()}
    value = {target: {key: ratio and round(ratio, 2) for key, ratio in each.items()} for target, each in ratios.items()}
    holds = all(ratio is not None and ratio <= 1 for each in ratios.values() for ratio in each.values())
    return judged(session, value, "<= 1 for each (time over that of the fastest rival)", holds, {"report": report})


def ivf_pq_quality(session):
    """Without a second look, codes of 8, 16 and 32 bytes find as much as Faiss's IVFPQ: recall@1, 10, 100 within 0.01."""
    report = ivf_report(session, "quality")
    worst = min(each["own"][rank] - each["faiss"][rank] for each in report.values() for rank in each["own"])
    return Result(round(worst, 4), ">= -0.01 (the worst difference)", worst >= -0.01, {"report": report})


def ivf_pq_build(session):
    """Training and adding SIFT takes at most half of the time of Faiss's IVFPQ."""
    report = ivf_report(session, "quality")
    ratios = {size: sum(each["own_seconds"].values()) / sum(each["faiss_seconds"].values())
              for size, each in report.items()}
    return judged(session, {size: round(ratio, 3) for size, ratio in ratios.items()}, "<= 0.5 for each",
                  max(ratios.values()) <= 0.5, {"report": report})


def ivf_pq_speed(session):
    """SIFT, 16 bytes per row, one batch, at recall 0.90 and 0.95: 1.7 times the best of FastScan and ScaNN."""
    return speed_result(session, sift)


def ivf_pq_speed_text(session):
    """Text, 384 dimensions by cosine, 48 bytes per row: the same."""
    return speed_result(session, text)


def ivf_latency(session):
    """SIFT, one query at a time, at recall 0.90 and 0.95: median and 99th percentile no larger than the best rival's."""
    return latency_result(session, sift)


def ivf_latency_text(session):
    """Text, 384 dimensions by cosine, 48 bytes per row: the same."""
    return latency_result(session, text)


FIGURES = (kmeans_vs_sgemm, kmeans_vs_faiss, ivf_pq_quality, ivf_pq_build, ivf_pq_speed, ivf_pq_speed_text, ivf_latency,
           ivf_latency_text)
