"""The claims of exact search: the right answer, within the memory limit, at the speed of a matrix product."""
import json
import os

from . import big_ann, processes, sgemm
from .figures import ROOT, Result

GIB = 1 << 30

# Where the tests that carry a claim live: program, filter.
GENERATED = ("ops_tests", "*KnnGenerated*")
BIG_FILE = ("ops_slow_tests", "BigFile.*")
HOSTILE = ("io_tests", "Hostile*:NpyHeader*:*Damage*:Storage.WhatIsNoContainer")


def knn_command(build, folder, suffix, output, *options):
    return [build / "cli" / "nearwise", "knn", "--base", folder / f"base{suffix}", "--queries",
            folder / f"query{suffix}", "-k", "100", "--metric", "sqeuclidean", "--output", output, "--json",
            *options]


def sift_identical(session):
    """`nearwise knn` gives the exact neighbours of the SIFT set, ties by the lower id."""
    folder = session.data("sift-small", "--set", "sift", "--small") if session.quick else session.data(
        "sift", "--set", "sift")
    build = session.build("release")
    output = session.scratch / "sift.bin"
    run = processes.run(knn_command(build, folder, ".u8bin", output, "--threads", "2"))
    base, queries = (big_ann.ByteVectors(folder / f"{part}.u8bin") for part in ("base", "query"))
    found, truth = (big_ann.read_neighbors(path) for path in (output, folder / "gt.bin"))
    comparison = big_ann.compare(found, truth, base, queries)
    faults = sum(comparison.get("faults", {"shape": 1}).values())
    details = comparison | {"base_rows": base.rows, "dim": base.dim, "knn": json.loads(run.output)}
    return Result(faults, "0 faults", faults == 0, details)


def memory_rss_anon(session):
    """`nearwise knn --memory 1GiB` over 10 million vectors stays within 1.05 GiB of memory of its own."""
    folder = session.data("synthetic-small", "--set", "synthetic", "--small") if session.quick else session.data(
        "synthetic-10m", "--set", "synthetic", "--n", "10000000", "--tag", "10m", "--no-gt")
    build = session.build("release")
    run = processes.run(
        knn_command(build, folder, ".fbin", session.scratch / "memory.nw", "--memory", "1GiB", "--threads", "2",
                    "--limit-queries", "1000"),
        sample_seconds=0.01)
    peak = run.peak_anonymous_bytes / GIB
    details = {"samples": run.samples, "seconds": round(run.seconds, 2), "base_bytes": os.path.getsize(
        folder / "base.fbin"), "vm_hwm_gib": round(run.peak_resident_bytes / GIB, 4), "knn": json.loads(run.output)}
    return Result(round(peak, 4), "<= 1.05 GiB", 0 < peak <= 1.05, details)


def speed_vs_sgemm(session):
    """Exact search takes at most 1.25 times the bare matrix products of its shape, by the fastest BLAS at hand."""
    program = session.build("release") / "bench" / "end_to_end" / "exact_vs_sgemm"
    size = ["--rows", "50000", "--queries", "1000", "--repeat", "3"] if session.quick else ["--repeat", "5"]
    reports = [json.loads(processes.run([program, *size, "--blas", library], env=environment).output)
               for library, environment in sgemm.choices(session)]
    fastest = max(reports, key=lambda report: report["sgemm_gflops"])
    others = {report["blas"]: {"ratio": report["ratio"], "sgemm_gflops": report["sgemm_gflops"]}
              for report in reports if report is not fastest}
    return Result(round(fastest["ratio"], 3), "<= 1.25", fastest["ratio"] <= 1.25, fastest | {"others": others})


def generated_cases(session):
    """At least 2000 generated problems agree with the oracle to the bit, in less than a minute."""
    program, pattern = GENERATED
    tests = processes.run_tests(session.build("release") / "tests" / program, pattern, session.scratch)
    cases = tests.properties.get("generated_cases", 0)
    holds = tests.passed and cases >= 2000 and tests.seconds < 60
    return Result(cases, ">= 2000 cases, all equal, < 60 s", holds,
                  {"tests": tests.tests, "failed": tests.failed, "skipped": tests.skipped,
                   "seconds": round(tests.seconds, 1)})


def big_file(session):
    """Neighbours beyond row 2^31 of a file are found and named."""
    program, pattern = BIG_FILE
    tests = processes.run_tests(session.build("release") / "tests" / program, pattern, session.scratch)
    return Result(tests.tests - len(tests.failed), "every test passes", tests.passed,
                  {"tests": tests.tests, "failed": tests.failed, "skipped": tests.skipped,
                   "seconds": round(tests.seconds, 1)})


def hostile_headers(session):
    """Files that lie are refused, under AddressSanitizer and UndefinedBehaviorSanitizer."""
    program, pattern = HOSTILE
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
    options = next(preset["environment"] for preset in presets if preset["name"] == "asan")
    tests = processes.run_tests(session.build("asan", program) / "tests" / program, pattern, session.scratch,
                                os.environ | options)
    return Result(tests.tests - len(tests.failed), "every test passes", tests.passed,
                  {"tests": tests.tests, "failed": tests.failed, "skipped": tests.skipped,
                   "seconds": round(tests.seconds, 1)})


FIGURES = (sift_identical, memory_rss_anon, speed_vs_sgemm, generated_cases, big_file, hostile_headers)
