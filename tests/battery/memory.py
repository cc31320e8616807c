"""Runs operations within memory limits, and compares the process's anonymous memory with them.

    python tests/battery/memory.py                     two configurations of every operation

Every run is an operation of operations.py, in a random shape. A first process calls it with a limit of 1 byte, which
it refuses, naming one that suffices. The next one has this limit, or up to four times as much, and must succeed; the
second of two calls may name another one. Every attempt is a process of its own, with nothing that an earlier call
has left; inputs are mapped files. Two bounds must hold, both over the process's memory right before the call:

    polled    its parent reads RssAnon every millisecond: the peak is at most the limit and 5 %
    enforced  the system refuses more private writable memory (RLIMIT_DATA) than the limit, 5 % and SLACK, so that
              what the parent misses fails visibly. Address space that is never touched counts here, too.

Before, every process has called the operation on a few rows: threads, their stacks, and what Python and the C library
load at a first call are part of the memory before the call. SLACK is for the granularity of the C library's heaps.
Prints one JSON line.
"""

import argparse
import ctypes
import json
import mmap
import multiprocessing
import os
import random
import re
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from operations import NAMES, TWO_CALLS, UNKNOWN_RESULTS, call_of, given, sufficient

MIB = 2**20
SLACK = 2 * MIB
WARM_ROWS = 1000
LEAST_LIMIT = MIB  # what Python takes for a call is more than a few KiB
SIZES = ((200_000, 32), (60_000, 128), (20_000, 384), (10_000, 768))
MOST_ATTEMPTS = 12


def status(pid, field):
    """Bytes, 0 if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(rf"{field}:\s+(\d+) kB", text)
    return int(found.group(1)) * 1024 if found else 0


def enforce(bytes):
    """The system refuses so many bytes more of private writable memory from now on. Returns whether it does."""
    most = status("self", "VmData") + bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))
    try:
        mmap.mmap(-1, bytes + MIB, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return True
    return False


def warm_up(nearwise, name, rows, seed, folder):
    """Calls the operation on a few rows: what it loads, starts and keeps for later calls is there afterwards.

    What it has freed is given back, so that the next call cannot use it without being seen.
    """
    folder.mkdir(exist_ok=True)
    np.save(folder / "rows.npy", rows[:WARM_ROWS])
    few = np.load(folder / "rows.npy", mmap_mode="r")
    call_of(name, given(nearwise, few, folder, random.Random(seed)))(2**30)
    ctypes.CDLL(None).malloc_trim(0)


def attempt(connection, name, seed, folder, limit):
    """In the child: waits for the parent's word before the call, so that it can read the memory before."""
    import nearwise

    rows = np.load(folder / "rows.npy", mmap_mode="r")
    warm_up(nearwise, name, rows, seed, folder / "few")
    call = call_of(name, given(nearwise, rows, folder, random.Random(seed)))
    # The first attempt leaves the files that the others begin with.
    outcome = {"enforced": limit > 1 and enforce(int(1.05 * limit) + SLACK)}
    threads = len(os.listdir("/proc/self/task"))
    connection.send("ready")
    connection.recv()
    began = time.monotonic()
    result = error = None
    try:
        result = call(limit)
    except (nearwise.Error, MemoryError) as refusal:
        error = refusal
    connection.send("over")
    outcome["seconds"] = round(time.monotonic() - began, 3)
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    outcome["started_threads"] = len(os.listdir("/proc/self/task")) - threads
    if error is not None:
        outcome |= {"refusal": f"{type(error).__name__}: {error}", "sufficient": sufficient(error)}
    del result
    connection.send(outcome)


def watched(context, *arguments):
    """What an attempt reports, with what its process took at most: None if it died."""
    mine, theirs = context.Pipe()
    process = context.Process(target=attempt, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        mine.recv()
        time.sleep(0.05)
        before = peak = status(process.pid, "RssAnon")
        mine.send("go")
        while not mine.poll(0.001):
            peak = max(peak, status(process.pid, "RssAnon"))
        mine.recv()
        return mine.recv() | {"used": peak - before}
    except EOFError:
        return None
    finally:
        process.join()


def run(name, size, seed, folder):
    rows, dim = size
    np.save(folder / "rows.npy", np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32))
    context = multiprocessing.get_context("spawn")
    draw = random.Random(seed)
    report = {"operation": name, "rows": rows, "dim": dim, "seed": seed, "refusals": []}
    limit = 1
    for _ in range(MOST_ATTEMPTS):
        found = watched(context, name, seed, folder, limit)
        if found is None:
            return report | {"holds": False, "died": True, "limit": limit}
        if "refusal" not in found:
            break
        report["refusals"].append({"limit": limit, "seconds": found["seconds"], "message": found["refusal"]})
        if "limit of" not in found["refusal"]:  # the system's
            return report | {"limit_mib": round(limit / MIB, 2), "bounds": {"enforced": False}, "holds": False}
        more = max(found["sufficient"] or 2 * limit, LEAST_LIMIT)
        limit = int(more * (draw.choice((1, 1.5, 4)) if limit == 1 else 1))
    else:
        return report | {"holds": False}
    # One more refusal than calls means that a limit that was named did not suffice.
    unnamed = ["would suffice" not in refusal["message"] for refusal in report["refusals"]]
    holds = {
        "named": name in UNKNOWN_RESULTS or (not any(unnamed) and 1 <= len(unnamed) <= TWO_CALLS.get(name, 1)),
        "polled": found["used"] <= 1.05 * limit,
        "enforced": found["enforced"],
    }
    return report | {
        "limit_mib": round(limit / MIB, 2),
        "used_mib": round(found["used"] / MIB, 2),
        "started_threads": found["started_threads"],
        "seconds": found["seconds"],
        "bounds": holds,
        "holds": all(holds.values()),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2 * len(NAMES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose names contain this")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    names = [name for name in NAMES if options.only in name]
    draw.shuffle(names)
    reports = []
    for number in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            report = run(names[number % len(names)], draw.choice(SIZES), options.seed + number, Path(folder))
        reports.append(report)
        if options.verbose:
            print(json.dumps(report), flush=True)
    failed = [report for report in reports if not report["holds"]]
    worst = max((report["used_mib"] / report["limit_mib"] for report in reports if "used_mib" in report), default=None)
    summary = {
        "runs": len(reports),
        "operations": len({report["operation"] for report in reports}),
        "of_operations": len(names),
        "held": len(reports) - len(failed),
        "enforced": sum(report.get("bounds", {}).get("enforced", False) for report in reports),
        "worst_share": worst,
        "failed": failed,
    }
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
