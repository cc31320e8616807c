"""Searches an index in several threads while another adds, updates and removes vectors, and checks every answer.

    python concurrent_changes.py --queries 1000000

The index passes through three states again and again: without the changing vectors, with them, and with others in their
place. An answer of a call must be, bit for bit and for all its queries, that of one state. Prints one JSON line for each
kind of index: queries searched, calls that changed it, answers of no state (torn), and queries that saw each state.
"""

import argparse
import itertools
import json
import threading
import time

import nearwise
import numpy as np

DIM, ROWS, CHANGING, LISTS, K = 16, 2000, 200, 16, 5
BATCHES = (1, 10, 100)
# Options of the build, and of searches that find every vector: each state has one answer.
KINDS = {
    "IvfFlat": ({"lists": LISTS}, {"probes": LISTS}),
    "IvfPq": ({"lists": LISTS}, {"probes": LISTS}),
    "GraphIndex": ({"degree": 16}, {"beam": ROWS + CHANGING}),
}


def search_and_change(kind, wanted, threads):
    rows = np.random.default_rng(1).standard_normal((ROWS + 2 * CHANGING, DIM), dtype=np.float32)
    build_options, search_options = KINDS[kind]
    index = getattr(nearwise, kind).build(rows[:ROWS], **build_options)
    ids = np.arange(10_000, 10_000 + CHANGING)
    changes = (
        lambda: index.add(rows[ROWS : ROWS + CHANGING], ids),
        lambda: index.update(ids, rows[ROWS + CHANGING :]),
        lambda: index.remove(ids),
    )
    # Near vectors that come and go.
    queries = rows[ROWS : ROWS + max(BATCHES)] + np.float32(0.01)
    filters = {batch: {"exclude": np.tile(ids[:3], (batch, 1))} for batch in BATCHES}
    filters = {(batch, name): chosen for batch in BATCHES for name, chosen in (("none", {}), ("exclude", filters[batch]))}

    def search(key):
        batch, _ = key
        return index.search(queries[:batch], K, **search_options, **filters[key]).ids.tobytes()

    states = {key: {} for key in filters}
    for number, change in enumerate(changes):
        change()
        for key in filters:
            states[key].setdefault(search(key), number)
    searched, torn, seen = [0] * threads, [0] * threads, [[0] * len(changes) for _ in range(threads)]
    stop = threading.Event()

    def work(thread):
        for key in itertools.cycle(filters):
            if stop.is_set():
                return
            state = states[key].get(search(key))
            searched[thread] += key[0]
            if state is None:
                torn[thread] += 1
            else:
                seen[thread][state] += key[0]

    workers = [threading.Thread(target=work, args=(thread,), daemon=True) for thread in range(threads)]
    began = time.monotonic()
    for worker in workers:
        worker.start()
    changed = 0
    while sum(searched) < wanted:
        changes[changed % len(changes)]()
        changed += 1
    stop.set()
    for worker in workers:
        worker.join()
    return {
        "kind": kind,
        "queries": sum(searched),
        "changes": changed,
        "torn": sum(torn),
        "seen": [sum(counts) for counts in zip(*seen, strict=True)],
        "seconds": round(time.monotonic() - began, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1_000_000, help="of each kind of index")
    parser.add_argument("--threads", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args()
    for kind in options.kinds:
        print(json.dumps(search_and_change(kind, options.queries, options.threads)), flush=True)


if __name__ == "__main__":
    main()
