"""Foundation: correct answers, memory within the limit, and files that are refused when damaged."""
import json
import os

from harness import big_ann, processes, sgemm
from harness.session import ROOT, Result

GIB = 1 << 30


def knn(session, folder, suffix, output, *options, **watching):
    return processes.run([session.nearwise(), "knn", folder / f"base{suffix}", folder / f"query{suffix}", "-k", "100",
                          "--output", output, "--json", "--threads", "2", *options], **watching)


def sift_identical(session):
    """`nearwise knn` on SIFT 1M x 128 u8, 10,000 queries, k = 100: differences from the exact neighbours"""
    folder, output = session.data_set("sift"), session.scratch / "sift.bin"
    run = knn(session, folder, ".u8bin", output)
    base, queries = (big_ann.ByteVectors(folder / f"{part}.u8bin") for part in ("base", "query"))
    found, truth = (big_ann.read_neighbors(path) for path in (output, folder / "gt.bin"))
    comparison = big_ann.compare(found, truth, base, queries)
    faults = sum(comparison.get("faults", {"shape": 1}).values())
    return Result(faults, "0", faults == 0,
                  comparison | {"base_rows": base.rows, "dim": base.dim, "knn": json.loads(run.output)})


def memory_rss_anon(session):
    """`nearwise knn` with a memory limit of 1 GiB over 10M x 128 f32 (5.1 GB, mapped): anonymous memory in GiB"""
    folder = session.data_set("synthetic") if session.quick else session.data(
        "synthetic-10m", "--set", "synthetic", "--n", "10000000", "--tag", "10m", "--no-gt")
    run = knn(session, folder, ".fbin", session.scratch / "memory.nw", "--memory-limit", "1GiB", "--limit-queries", "1000",
              sample_seconds=0.01)
    peak = run.peak_anonymous_bytes / GIB
    return Result(round(peak, 4), "<= 1.05", 0 < peak <= 1.05,
                  {"samples": run.samples, "seconds": round(run.seconds, 2), "knn": json.loads(run.output),
                   "base_bytes": os.path.getsize(folder / "base.fbin"),
                   "vm_hwm_gib": round(run.peak_resident_bytes / GIB, 4)})


def speed_vs_sgemm(session):
    """Exact search, 1M x 128 uniform f32, 10,000 queries, k = 10: time relative to the fastest sgemm"""
    size = ["--rows", "50000", "--queries", "1000", "--repeat", "3"] if session.quick else ["--repeat", "5"]
    reports = [sgemm.run(session, blas, *size) for blas in sgemm.choices(session)]
    fastest = max(reports, key=lambda report: report["sgemm_gflops"])
    others = {report["blas"]: {"ratio": report["ratio"], "sgemm_gflops": report["sgemm_gflops"]}
              for report in reports if report is not fastest}
    return Result(round(fastest["ratio"], 3), "<= 1.25", fastest["ratio"] <= 1.25, fastest | {"others": others})


def generated_cases(session):
    """Generated search problems whose ids and distances equal the oracle's bit by bit, on every instruction set"""
    result = session.generated_cases("ops_tests", "*KnnGenerated*", 2000)
    result.bar, result.holds = f"{result.bar}, < 60 s", result.holds and result.details["seconds"] < 60
    return result


def big_file(session):
    """Tests of neighbours beyond row 2^31 of a sparse file"""
    return session.test_result("ops_slow_tests", "BigFile.*")


def hostile_headers(session):
    """Tests that damaged and malicious files are refused, under AddressSanitizer and UndefinedBehaviorSanitizer"""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    options = next(preset["environment"] for preset in presets if preset["name"] == "asan")
    return session.test_result("io_tests", "Hostile*:NpyHeader*:*Damage*:Storage.WhatIsNoContainer", preset="asan",
                               env=os.environ | options)


FIGURES = (sift_identical, memory_rss_anon, speed_vs_sgemm, generated_cases, big_file, hostile_headers)
