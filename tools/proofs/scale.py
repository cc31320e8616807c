"""The claims of work over files: memory, growth of time, and builds that survive being killed.

Under --quick sizes are small and speeds mean nothing: they are reported, not judged.
"""
import json
import math
import random
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

from . import processes, scale_ray
from .exact import judged
from .figures import Result
from .ivf import sift

DIM = 128
SIZES = (1_000_000, 3_000_000, 10_000_000)
QUICK_SIZES = (50_000, 100_000, 200_000)
MEMORY = 2 << 30
QUICK_MEMORY = 96 << 20
SIFT_SIZES = (500_000, 1_000_000, 1_500_000)
QUICK_SIFT_SIZES = (10_000, 20_000)
SIFT_MEMORY = 256 << 20
RECALL = 0.95
# Shards of one size, so many that their merges are most of the work: 4, 8 and 16 of them, or 3, 5 and 10.
PAIR_SIZES = (250_000, 500_000, 1_000_000)
QUICK_PAIR_SIZES = (25_000, 50_000, 100_000)
PAIR_MEMORY = 372 << 20


def turns(session):
    """Of builds whose times are compared: one alone may be a quarter faster or slower where neighbours share a machine."""
    return 1 if session.quick else 3


def sizes(session):
    return QUICK_SIZES if session.quick else SIZES


def memory(session):
    return QUICK_MEMORY if session.quick else MEMORY


def base_of(session, rows):
    """The first rows of the largest set, which is made once: a short run of its generator is a prefix of a long one."""
    largest = sizes(session)[-1]
    tag = f"scale-{largest}"
    folder = session.data(f"synthetic-{tag}", "--set", "synthetic", "--n", str(largest), "--dim", str(DIM), "--tag", tag,
                          "--no-gt")
    return folder / "base.fbin" if rows == largest else beginning_of(session, folder / "base.fbin", rows, 4)


def sift_base_of(session, rows):
    """Descriptors of the first pictures."""
    if session.quick:
        return beginning_of(session, sift(session) / "base.u8bin", rows, 1)
    largest = SIFT_SIZES[-1]
    folder = session.data(f"sift-{largest}", "--set", "sift", "--n", str(largest), "--tag", str(largest), "--no-gt")
    return beginning_of(session, folder / "base.u8bin", rows, 1)


def beginning_of(session, base, rows, element_bytes):
    path = Path(session.scratch) / f"{rows}{base.suffix}"
    if not path.exists():
        with open(base, "rb") as source, open(path, "wb") as target:
            source.seek(8)
            target.write(rows.to_bytes(4, "little") + DIM.to_bytes(4, "little"))
            left = rows * DIM * element_bytes
            while left:
                left -= target.write(source.read(min(left, 1 << 24)))
    return path


def command(session, base, output, work, limit, way="partitions"):
    program = session.build("release") / "cli" / "nearwise"
    return [program, "graph", "build", base, "-o", output, "--work", work, "--memory", limit, "--degree", 10,
            "--recall", RECALL, "--way", way, "--keep-work", "--json"]


_builds = {}


def built(session, rows, limit, way="partitions", base=base_of, turn=0):
    """A whole build of so many rows: what the program says, and what the kernel says of its memory. Made once a turn."""
    key = rows, limit, way, base, turn
    if key not in _builds:
        folder = Path(session.scratch) / f"build-{len(_builds)}"
        folder.mkdir()
        run = processes.run(command(session, base(session, rows), folder / "graph.nw", folder / "work", limit, way),
                            sample_seconds=0.05)
        report = json.loads(run.output)
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        _builds[key] = {"rows": rows, "seconds": round(run.seconds, 1), "disk_bytes": disk,
                        "peak_anonymous_bytes": run.peak_anonymous_bytes, "samples": run.samples,
                        "budget_peak_bytes": report["memory_peak_bytes"], "recall": report["recall"],
                        "reached": report["reached"], "passes": len(report["rounds"])}
        shutil.rmtree(folder)
    return _builds[key]


def growth(session, sizes_of_builds, limit, ways, base=base_of, turns=1):
    """Builds by ways, in turn, and the exponents of their median times by rows: what bench/plots/scale_growth.py draws."""
    times = {}
    for turn in range(turns):
        for way in ways:
            for rows in sizes_of_builds:
                times.setdefault((way, rows), []).append(built(session, rows, limit, way, base, turn)["seconds"])
    reports = {way: [built(session, rows, limit, way, base) | {"seconds": statistics.median(times[way, rows]),
                                                              "seconds_of_turns": times[way, rows]}
                     for rows in sizes_of_builds] for way in ways}
    return {"reports": reports, "exponents": {way: round(exponent_of(of_way), 3) for way, of_way in reports.items()}}


def exponent_of(reports):
    """Of time by rows: least squares of logarithms."""
    logs = [(math.log(report["rows"]), math.log(report["seconds"])) for report in reports]
    mean_x, mean_y = (sum(column) / len(logs) for column in zip(*logs))
    return sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)


def within_memory(limit, report):
    share = report["peak_anonymous_bytes"] / limit
    holds = share <= 1.05 and report["reached"] and report["recall"]["low"] >= RECALL
    return Result(round(share, 3), "<= 1.05, recall of 0.95 reached on 10,000 rows", holds, report)


def scale_memory(session):
    """The largest set (10M x 128, 5 GB), degree 10, --memory 2GiB: resident memory, page cache aside, by the limit."""
    return within_memory(memory(session), built(session, sizes(session)[-1], memory(session)))


def scale_memory_sift(session):
    """1.5M descriptors of pictures, degree 10, --memory 2GiB: the same."""
    rows = QUICK_SIFT_SIZES[-1] if session.quick else SIFT_SIZES[-1]
    return within_memory(memory(session), built(session, rows, memory(session), base=sift_base_of))


def judged_growth(session, sizes_of_builds, limit, base):
    grown = growth(session, sizes_of_builds, limit, ("partitions",), base, turns(session))
    exponent = grown["exponents"]["partitions"]
    holds = exponent <= 1.10 and all(report["reached"] for report in grown["reports"]["partitions"])
    return judged(session, exponent, "<= 1.10, recall reached by all", holds, grown)


def scale_growth(session):
    """1M, 3M and 10M rows under one memory limit: the exponent of time, medians of three, by rows (least squares of logarithms)."""
    return judged_growth(session, sizes(session), memory(session), base_of)


def scale_growth_sift(session):
    """500,000, 1M and 1.5M descriptors of pictures in 256 MiB, none of them in one group: the same."""
    if session.quick:
        return judged_growth(session, QUICK_SIFT_SIZES, QUICK_MEMORY, sift_base_of)
    return judged_growth(session, SIFT_SIZES, SIFT_MEMORY, sift_base_of)


def scale_pairs(session):
    """250k, 500k and 1M rows by pairs of 4, 8 and 16 shards: the exponent of time by rows, that of partitions beside it."""
    rows_of_builds = QUICK_PAIR_SIZES if session.quick else PAIR_SIZES
    limit = QUICK_MEMORY if session.quick else PAIR_MEMORY
    grown = growth(session, rows_of_builds, limit, ("pairs", "partitions"))
    holds = all(report["reached"] and report["peak_anonymous_bytes"] <= 1.05 * limit
                for of_way in grown["reports"].values() for report in of_way)
    return Result(grown["exponents"]["pairs"], "reported; recall reached by all, memory within 1.05 of the limit", holds,
                  {"limit": limit} | grown)


def tasks_recorded(work):
    manifest = work / "manifest"
    if not manifest.exists():
        return []
    lines = manifest.read_bytes().split(b"\n")[:-1]
    return [record["task"] for record in (json.loads(line.split(b"\t")[0]) for line in lines) if "task" in record]


def scale_kill(session):
    """A build of 200,000 rows killed (SIGKILL) at 50 random moments, one a build: builds that end with other bytes."""
    kills = 5 if session.quick else 50
    rows = 50_000 if session.quick else 200_000
    base = base_of(session, rows) if not session.quick else base_of(session, QUICK_SIZES[0])
    limit = 96 << 20
    folder = Path(session.scratch) / "kill"
    folder.mkdir()
    whole = processes.run(command(session, base, folder / "whole.nw", folder / "whole", limit))
    expected = (folder / "whole.nw").read_bytes()
    chance = random.Random(1)
    different, repeated, killed, moments = 0, 0, 0, []
    while killed < kills:
        work, output = folder / "work", folder / "graph.nw"
        words = [str(word) for word in command(session, base, output, work, limit)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        moment = chance.uniform(0, whole.seconds)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        if process.wait() == -signal.SIGKILL:
            killed += 1
            moments.append(round(moment, 2))
            before = tasks_recorded(work)
            processes.run(words)
            different += (output.read_bytes() != expected)
            # A task that was recorded before the kill and again after it was done twice.
            repeated += len(tasks_recorded(work)) - len(set(tasks_recorded(work)))
            repeated += 0 if tasks_recorded(work)[:len(before)] == before else len(before)
        shutil.rmtree(work, ignore_errors=True)
        output.unlink(missing_ok=True)
    return Result(different, f"0 of {kills}, and no recorded task done again", different == 0 and repeated == 0,
                  {"kills": killed, "seconds_of_a_build": round(whole.seconds, 2), "tasks": len(tasks_recorded(folder / "whole")),
                   "recorded_tasks_done_again": repeated, "moments": moments})


FIGURES = (scale_memory, scale_memory_sift, scale_growth, scale_growth_sift, scale_pairs, scale_kill, *scale_ray.FIGURES)
