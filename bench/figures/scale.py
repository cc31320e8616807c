"""Graphs built from files: memory within the limit, growth of time, and recovery after a crash."""
import json
import math
import random
import shutil
import signal
import statistics
import subprocess
import time

from harness import big_ann, processes
from harness.session import Result

DIM = 128
SIZES = (1_000_000, 3_000_000, 10_000_000)
QUICK_SIZES = (50_000, 100_000, 200_000)
MEMORY = 2 << 30
QUICK_MEMORY = 96 << 20
SIFT_SIZES = (500_000, 1_000_000, 1_500_000)
QUICK_SIFT_SIZES = (10_000, 20_000)
SIFT_MEMORY = 256 << 20
RECALL = 0.95
# 4, 8 and 16 shards (3, 5 and 10 under --quick): enough that merges dominate.
PAIR_SIZES = (250_000, 500_000, 1_000_000)
QUICK_PAIR_SIZES = (25_000, 50_000, 100_000)
PAIR_MEMORY = 372 << 20


def turns(session):
    """Builds of each size: on a shared machine a single one may be a quarter faster or slower."""
    return 1 if session.quick else 3


def sizes(session):
    return QUICK_SIZES if session.quick else SIZES


def memory(session):
    return QUICK_MEMORY if session.quick else MEMORY


def base_of(session, rows):
    """The first rows of the largest synthetic set."""
    largest = sizes(session)[-1]
    tag = f"scale-{largest}"
    folder = session.data(f"synthetic-{tag}", "--set", "synthetic", "--n", str(largest), "--dim", str(DIM), "--tag", tag,
                          "--no-gt")
    return folder / "base.fbin" if rows == largest else big_ann.first_rows(folder / "base.fbin", rows, session.scratch)


def sift_base_of(session, rows):
    if session.quick:
        return big_ann.first_rows(session.sift(), rows, session.scratch)
    largest = SIFT_SIZES[-1]
    folder = session.data(f"sift-{largest}", "--set", "sift", "--n", str(largest), "--tag", str(largest), "--no-gt")
    return big_ann.first_rows(folder / "base.u8bin", rows, session.scratch)


def command(session, base, output, work, limit, method="partitions"):
    return [session.nearwise(), "graph", "build", base, "-o", output, "--work", work, "--memory-limit", limit,
            "--degree", 10, "--target-recall", RECALL, "--method", method, "--keep-work", "--json"]


_builds = {}


def built(session, rows, limit, method="partitions", base=base_of, turn=0):
    """The report of a build, with its peak memory as the kernel counts it. Each build is made once a turn."""
    key = rows, limit, method, base, turn
    if key not in _builds:
        folder = session.scratch / f"build-{len(_builds)}"
        folder.mkdir()
        run = processes.run(command(session, base(session, rows), folder / "graph.nw", folder / "work", limit, method),
                            sample_seconds=0.05)
        report = json.loads(run.output)
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _builds[key] = {"rows": rows, "seconds": round(run.seconds, 1), "disk_bytes": disk,
                        "peak_anonymous_bytes": run.peak_anonymous_bytes, "samples": run.samples,
                        "budget_peak_bytes": report["memory_peak_bytes"], "recall": report["recall"],
                        "reached": report["reached"], "passes": len(report["rounds"])}
        shutil.rmtree(folder)
    return _builds[key]


def growth(session, rows_of_builds, limit, methods, base=base_of, turns=1):
    """Builds of each size, interleaved, and the exponent of their median times by rows for each method."""
    times = {}
    for turn in range(turns):
        for method in methods:
            for rows in rows_of_builds:
                times.setdefault((method, rows), []).append(built(session, rows, limit, method, base, turn)["seconds"])
    reports = {method: [built(session, rows, limit, method, base) | {
        "seconds": statistics.median(times[method, rows]), "seconds_of_turns": times[method, rows]}
        for rows in rows_of_builds] for method in methods}
    return {"reports": reports, "exponents": {method: round(exponent_of(found), 3) for method, found in reports.items()}}


def exponent_of(reports):
    """x in time ~ rows^x, by least squares of logarithms."""
    logs = [(math.log(report["rows"]), math.log(report["seconds"])) for report in reports]
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def within_memory(limit, report):
    share = report["peak_anonymous_bytes"] / limit
    holds = share <= 1.05 and report["reached"] and report["recall"]["low"] >= RECALL
    return Result(round(share, 3), "<= 1.05, target recall reached", holds, report)


def scale_memory(session):
    """10M x 128 f32 (5.1 GB), degree 10, memory limit 2 GiB: anonymous memory relative to the limit"""
    return within_memory(memory(session), built(session, sizes(session)[-1], memory(session)))


def scale_memory_sift(session):
    """1.5M SIFT descriptors, degree 10, memory limit 2 GiB: anonymous memory relative to the limit"""
    rows = QUICK_SIFT_SIZES[-1] if session.quick else SIFT_SIZES[-1]
    return within_memory(memory(session), built(session, rows, memory(session), base=sift_base_of))


def growth_result(session, rows_of_builds, limit, base):
    grown = growth(session, rows_of_builds, limit, ("partitions",), base, turns(session))
    exponent = grown["exponents"]["partitions"]
    holds = exponent <= 1.10 and all(report["reached"] for report in grown["reports"]["partitions"])
    return session.speed(exponent, "<= 1.10, target recall reached", holds, grown)


def scale_growth(session):
    """1M, 3M and 10M vectors, memory limit 2 GiB: x in time ~ rows^x, medians of three builds"""
    return growth_result(session, sizes(session), memory(session), base_of)


def scale_growth_sift(session):
    """0.5M, 1M and 1.5M SIFT descriptors, memory limit 256 MiB: x in time ~ rows^x, medians of three builds"""
    if session.quick:
        return growth_result(session, QUICK_SIFT_SIZES, QUICK_MEMORY, sift_base_of)
    return growth_result(session, SIFT_SIZES, SIFT_MEMORY, sift_base_of)


def scale_pairs(session):
    """Method `pairs`, 250k, 500k and 1M vectors in 4, 8 and 16 shards: x in time ~ rows^x (partitions in the details)"""
    rows_of_builds = QUICK_PAIR_SIZES if session.quick else PAIR_SIZES
    limit = QUICK_MEMORY if session.quick else PAIR_MEMORY
    grown = growth(session, rows_of_builds, limit, ("pairs", "partitions"))
    holds = all(report["reached"] and report["peak_anonymous_bytes"] <= 1.05 * limit
                for found in grown["reports"].values() for report in found)
    return Result(grown["exponents"]["pairs"], "reported; recall reached, memory <= 1.05 of the limit", holds,
                  {"limit": limit} | grown)


def tasks_recorded(work):
    manifest = work / "manifest"
    if not manifest.exists():
        return []
    lines = manifest.read_bytes().split(b"\n")[:-1]
    return [record["task"] for record in (json.loads(line.split(b"\t")[0]) for line in lines) if "task" in record]


def scale_kill(session):
    """200,000 vectors in 96 MiB, killed (SIGKILL) at 50 random moments and resumed: builds with different bytes"""
    kills = 5 if session.quick else 50
    base = base_of(session, QUICK_SIZES[0] if session.quick else 200_000)
    folder = session.scratch / "kill"
    folder.mkdir()
    whole = processes.run(command(session, base, folder / "whole.nw", folder / "whole", QUICK_MEMORY))
    expected = (folder / "whole.nw").read_bytes()
    random_moment = random.Random(1)
    different, repeated, moments = 0, 0, []
    while len(moments) < kills:
        work, output = folder / "work", folder / "graph.nw"
        words = [str(word) for word in command(session, base, output, work, QUICK_MEMORY)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        moment = random_moment.uniform(0, whole.seconds)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            moments.append(round(moment, 2))
            before = tasks_recorded(work)
            processes.run(words)
            different += output.read_bytes() != expected
            # A task recorded before the kill and again after it was run twice.
            after = tasks_recorded(work)
            repeated += len(after) - len(set(after)) + (0 if after[:len(before)] == before else len(before))
        shutil.rmtree(work, ignore_errors=True)
        output.unlink(missing_ok=True)
    return Result(different, f"0 of {kills}, no recorded task run again", different == 0 and repeated == 0,
                  {"seconds_of_a_build": round(whole.seconds, 2), "tasks": len(tasks_recorded(folder / "whole")),
                   "recorded_tasks_run_again": repeated, "moments": moments})


FIGURES = (scale_memory, scale_memory_sift, scale_growth, scale_growth_sift, scale_pairs, scale_kill)
