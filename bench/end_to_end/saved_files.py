"""Saves and loads files on command, so that two such processes can be measured in turns.

    {"save": "flat", "rows": 1000, "path": "flat.nw"}   ->  {"bytes": 540672}
    {"load": "flat.nw", "cached": true}                 ->  {"seconds": 0.0011, "read_seconds": 0.0002}

A command is a JSON line; so is the answer, {"error": "..."} if it fails. A file that is not to be cached is removed
from the page cache first; `read_seconds` is the time to read a cached one sequentially. Kinds: `vectors` (no
container), `flat` (f32 vectors), `pq` (codes and u8 vectors), `graph`, `neighbors`.
"""

import argparse
import contextlib
import json
import os
import sys
import time

import nearwise
import numpy as np

DIM = 128


def clustered(rows, dtype, dim=DIM):
    """Vectors around 1,000 centres, with values of 0 to 255."""
    draw = np.random.default_rng(1)
    centres = draw.integers(0, 192, (1_000, dim), np.uint8)
    vectors = draw.integers(0, 64, (rows, dim), np.uint8)
    vectors += centres[draw.integers(0, len(centres), rows)]
    return vectors.astype(dtype, copy=False)


def save(kind, rows, path, threads):
    if kind == "vectors":
        nearwise.write_vectors(path, clustered(rows, np.float32))
    elif kind == "graph":
        nearwise.build_knn_graph(clustered(rows, np.uint8, 16), 64, target_recall=0.5, threads=threads).save(path)
    elif kind == "neighbors":
        ids = np.random.default_rng(1).integers(0, rows, (rows, 64))
        nearwise.save(path, (ids, np.sort(ids).astype(np.float32)), metric="sqeuclidean")
    else:
        vectors = clustered(rows, np.float32 if kind == "flat" else np.uint8)
        make = nearwise.IvfFlat if kind == "flat" else nearwise.IvfPq
        index = make.train(vectors[:20_000], lists=256, iterations=2, threads=threads)
        index.add(vectors)
        index.save(path)


def read(file):
    buffer = memoryview(bytearray(1 << 20))
    began = time.perf_counter()
    while file.readinto(buffer):
        pass
    return time.perf_counter() - began


def is_cached(file):
    """Whether the middle of the file can be read at once."""
    with contextlib.suppress(BlockingIOError):
        return os.preadv(file.fileno(), [bytearray(1)], os.path.getsize(file.fileno()) // 2, os.RWF_NOWAIT) == 1
    return False


def load(path, cached, threads):
    answer = {}
    with open(path, "rb", buffering=0) as file:
        if cached:
            answer["read_seconds"] = read(file)
        else:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if is_cached(file):
                raise OSError(f"{path} stays in the page cache: use a folder on a disk (TMPDIR)")
    began = time.perf_counter()
    loaded = nearwise.load(path, threads=threads)
    answer["seconds"] = time.perf_counter() - began
    del loaded
    return answer


def answer_to(command, threads):
    if "save" in command:
        save(command["save"], command["rows"], command["path"], threads)
        return {"bytes": os.path.getsize(command["path"])}
    return load(command["load"], command["cached"], threads)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line), options.threads)
        except Exception as error:  # the caller decides
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
