"""Damages every kind of file that nearwise saves, and counts what comes of it.

    python tests/battery/damage.py --flips 10000 --truncations 2000 --splices 1000

A damaged index, graph, quantizer, result or file of names, pairs or duplicates must give an error, or exactly the
answers of the undamaged file. After damage to a file of a plan's work folder the plan must run to its end, with the
same bytes as before; only a manifest that has become that of another plan is refused. Work files and manifests are
kinds of files, too: their mutations are divided among the plans. More than 5 s for one of them counts as hanging.
Mutations are repeatable by their numbers. Prints one JSON line.
"""

import argparse
import fnmatch
import json
import math
import multiprocessing
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from adapters import nearwise_files, nearwise_kinds, nearwise_names, nearwise_quantizers
from file_damage import DamagedFiles, counts
from plan_damage import PLANS, DamagedPlans
from runner import prepare

SECONDS = 5
MODULES = (nearwise_kinds, nearwise_quantizers, nearwise_names, nearwise_files)
ADAPTERS = [kind for module in MODULES for kind in module.ADAPTERS]
SAVED_KINDS = {kind.name: kind for kind in ADAPTERS if "save" not in kind.lacks}


def file_campaigns(folder, name):
    adapter = SAVED_KINDS[name](folder)
    prepare(adapter)
    files = DamagedFiles(adapter)
    yield name, lambda mutation, count: files.findings(mutation, count, SECONDS)


def plan_campaigns(folder, name):
    plans = DamagedPlans(folder, name)
    yield f"{name}, work files", lambda mutation, count: plans.findings(mutation, count, SECONDS, is_manifest=False)
    yield f"{name}, manifest", lambda mutation, count: plans.findings(mutation, count, SECONDS, is_manifest=True)


def damage(name, mutations):
    """({kind: {mutation: {outcome: count}}}, what went wrong), for the files of one kind or plan."""
    kinds, faults = {}, []
    if name in PLANS:
        mutations = {mutation: math.ceil(count / len(PLANS)) for mutation, count in mutations.items()}
    # Millions of bytes are written, and nothing depends on whether they reach a disk.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        campaigns = file_campaigns if name in SAVED_KINDS else plan_campaigns
        for kind, findings_of in campaigns(Path(folder), name):
            kinds[kind] = {}
            for mutation, count in mutations.items():
                found = list(findings_of(mutation, count))
                kinds[kind][mutation] = counts(found)
                faults += [
                    f"{kind}: {mutation} {number}: {finding.outcome}: {finding.note}"
                    for number, finding in enumerate(found)
                    if finding.is_fault
                ]
    return kinds, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--truncations", type=int, default=2000)
    parser.add_argument("--splices", type=int, default=1000)
    parser.add_argument("--kinds", nargs="+", default=["*"], metavar="PATTERN", help="kinds of files and plans")
    options = parser.parse_args()
    mutations = {"flip": options.flips, "truncation": options.truncations, "splice": options.splices}
    # Plans take longest.
    names = [name for name in (*PLANS, *SAVED_KINDS) if any(fnmatch.fnmatchcase(name, kind) for kind in options.kinds)]
    began = time.monotonic()
    workers = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        reports = list(pool.map(damage, names, [mutations] * len(names)))
    kinds = {kind: found for kinds, _ in reports for kind, found in kinds.items()}
    faults = [fault for _, faults in reports for fault in faults]
    report = {
        "mutations": sum(sum(found.values()) for kind in kinds.values() for found in kind.values()),
        "faults": len(faults),
        "examples": faults[:20],
        "kinds": kinds,
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
