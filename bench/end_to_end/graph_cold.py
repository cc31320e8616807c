"""Searches of a mapped graph index whose pages are cold: pages that a query reads, by section of the file.

    python graph_cold.py --base base.u8bin --queries query.u8bin --float --rows 200000

The index is built over files (plan_graph_index) and mapped. Before each query its pages are given back to the system
(MADV_DONTNEED, POSIX_FADV_DONTNEED); after it, mincore() tells which ones the query has read. `random` is without read-ahead of
the system (MADV_RANDOM): the pages that the search asks for; `read_ahead` with it. Also: major faults of the process, and pages per
query when the cache is not dropped between queries. Prints one JSON line.
"""

import argparse
import ctypes
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import nearwise
import numpy as np

K = 10
PAGE = os.sysconf("SC_PAGE_SIZE")
MADV_NORMAL, MADV_RANDOM, MADV_DONTNEED = 0, 1, 4
LIBC = ctypes.CDLL(None, use_errno=True)


class MappedFile:
    """The mapping of a file in this process."""

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_RDONLY)
        self.bytes = os.fstat(self.descriptor).st_size
        (line,) = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith(str(path.resolve()))]
        self.address = int(line.split("-")[0], 16)
        self.sections = [(section.name, section.offset // PAGE, -(-(section.offset + section.bytes) // PAGE))
                         for section in nearwise.inspect(path).sections]

    def advise(self, advice):
        if LIBC.madvise(ctypes.c_void_p(self.address), ctypes.c_size_t(self.bytes), advice) != 0:
            raise OSError(ctypes.get_errno(), "madvise")

    def drop(self):
        self.advise(MADV_DONTNEED)
        os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def resident(self):
        """Pages of each section in the page cache."""
        pages = np.zeros(-(-self.bytes // PAGE), np.uint8)
        if LIBC.mincore(ctypes.c_void_p(self.address), ctypes.c_size_t(self.bytes), pages.ctypes.data_as(ctypes.c_void_p)) != 0:
            raise OSError(ctypes.get_errno(), "mincore")
        return {name: int((pages[first:end] & 1).sum()) for name, first, end in self.sections}


def major_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def search_cold(index, file, queries, advice, context):
    """Mean pages of each section per query, the most of the vectors, major faults and the median time."""
    pages, faults, times = [], [], []
    for number in range(len(queries)):
        file.drop()
        file.advise(advice)
        before, began = major_faults(), time.perf_counter_ns()
        index.search(queries[number : number + 1], K, context=context)
        times.append((time.perf_counter_ns() - began) / 1000)
        faults.append(major_faults() - before)
        pages.append(file.resident())
    file.advise(MADV_NORMAL)
    return {"pages": {name: round(float(np.mean([one[name] for one in pages])), 1) for name, _, _ in file.sections},
            "most_vector_pages": max(one.get("vectors", 0) for one in pages),
            "major_faults": round(float(np.mean(faults)), 1), "p50_us": round(float(np.median(times)), 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--metric", default="sqeuclidean")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--memory-limit", default="512MiB")
    parser.add_argument("--float", action="store_true", help="vectors of bytes as f32, which are not their own codes")
    options = parser.parse_args()
    base = np.ascontiguousarray(nearwise.read_vectors(options.base)[: options.rows])
    queries = np.ascontiguousarray(nearwise.read_vectors(options.queries)[: options.count])
    if options.float:
        base, queries = base.astype(np.float32) + np.float32(0.25), queries.astype(np.float32) + np.float32(0.25)
    # On the disk of the data: files in memory cannot be cold.
    with tempfile.TemporaryDirectory(dir=Path(options.base).parent) as folder:
        rows, output = Path(folder, "rows.npy"), Path(folder, "index.nw")
        nearwise.write_vectors(rows, base)
        began = time.perf_counter()
        plan = nearwise.plan_graph_index(rows, Path(folder, "work"), output, metric=options.metric, memory_limit=options.memory_limit)
        plan.run()
        seconds = time.perf_counter() - began
        plan.remove_work()
        os.sync()  # pages that are not written yet stay
        index, one_thread = plan.load(), nearwise.Context(threads=1)
        file = MappedFile(output)
        file.drop()
        left = sum(file.resident().values())
        found = index.search(queries, K, context=one_thread)
        exact = nearwise.knn(queries, base, K, metric=options.metric)
        sign = -1 if options.metric == "inner_product" else 1
        recall = float((sign * found.distances <= sign * exact.distances[:, -1:]).mean())
        cold = {name: search_cold(index, file, queries, advice, one_thread)
                for name, advice in (("random", MADV_RANDOM), ("read_ahead", MADV_NORMAL))}
        # Without dropping the cache: what remains to be read becomes less with every query.
        file.drop()
        file.advise(MADV_RANDOM)
        index.search(queries, K, context=one_thread)
        together = {name: round(pages / len(queries), 1) for name, pages in file.resident().items()}
        row_bytes = base.shape[1] * base.itemsize
        print(json.dumps({"rows": len(base), "dim": base.shape[1], "file_pages": -(-file.bytes // PAGE), "left_after_drop": left,
                          "beam": index.beam, "evaluated": 2 * K + 8, "pages_of_vector": -(-row_bytes // PAGE) + 1,
                          "recall": round(recall, 4), "build_seconds": round(seconds, 1), **cold,
                          "random_pages_of_many": together}))


if __name__ == "__main__":
    main()
