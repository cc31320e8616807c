"""Runs operations in processes whose address space ends before the work does (RLIMIT_AS).

    python tests/battery/exhaustion.py --runs 500

Every run is a process of its own, with no memory limit of nearwise's: the system refuses memory, stacks of threads and
mappings at a random moment. It must end with the answer or an exception with a message; a signal, an abort or a
hang is a fault. Prints one JSON line.
"""

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from operations import NAMES, call_of, given, sufficient

SIZES = ((60_000, 32), (30_000, 128), (10_000, 384))
SECONDS = 120


def address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def child(name, seed, folder):
    """Prints how the operation ended."""
    draw = random.Random(seed)
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    import nearwise

    call = call_of(name, given(nearwise, rows, folder, draw))
    # What the operation takes, roughly: the limit that a refusal names.
    try:
        call(1)
        needed = 2**20
    except nearwise.Error as error:
        needed = sufficient(error) or 2**24
    room = int(draw.uniform(0, 0.5) ** 2 * needed)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + room, resource.RLIM_INFINITY))
    try:
        call(2 * needed if name.startswith("plan") else None)  # plans cannot do without a limit
        outcome = "answers"
    except (nearwise.Error, MemoryError) as error:
        own = "Error" if str(error) else "no message"
        outcome = own if isinstance(error, nearwise.Error) else "MemoryError"
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(json.dumps({"outcome": outcome, "room": room}), flush=True)


def run(name, size, seed):
    with tempfile.TemporaryDirectory() as folder:
        rows = np.random.default_rng(seed).standard_normal(size, dtype=np.float32)
        np.save(Path(folder) / "rows.npy", rows)
        command = [sys.executable, __file__, "--child", name, "--seed", str(seed), "--folder", folder]
        try:
            ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"operation": name, "seed": seed, "outcome": "hang"}
    report = {"operation": name, "seed": seed, "rows": size[0], "dim": size[1]}
    if ended.returncode < 0:
        report |= {"outcome": signal.Signals(-ended.returncode).name, "errors": ended.stderr[-500:]}
    elif ended.returncode != 0 or not ended.stdout:
        report |= {"outcome": f"exit {ended.returncode}", "errors": ended.stderr[-500:]}
    else:
        report |= json.loads(ended.stdout.splitlines()[-1])
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="operations whose names contain this")
    parser.add_argument("--verbose", action="store_true", help="a line for each run")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.seed, options.folder)
        return
    draw = random.Random(options.seed)
    names = [name for name in NAMES if options.only in name]
    cases = [(names[number % len(names)], draw.choice(SIZES), options.seed + number) for number in range(options.runs)]
    outcomes = Counter()
    faults = []
    with ThreadPoolExecutor(2) as pool:
        for report in pool.map(lambda case: run(*case), cases):
            outcomes[report["outcome"]] += 1
            if report["outcome"] not in ("answers", "Error", "MemoryError"):
                faults.append(report)
            if options.verbose:
                print(json.dumps(report), flush=True)
    print(json.dumps({"runs": len(cases), "outcomes": dict(outcomes), "faults": faults}))


if __name__ == "__main__":
    main()
