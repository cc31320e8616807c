"""usearch."""

import struct

import numpy as np
from vectors import DIM, ROWS, normal

from adapters.adapter import Adapter


class Usearch(Adapter):
    name = package = "usearch"
    module = "usearch.index"
    lacks = frozenset({"capacity"})
    least_recall = 0.85

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return self._new(dim, metric, 16, 128, 64)

    def _new(self, dim, metric, degree, add_expansion, search_expansion):
        return self.library.Index(
            ndim=dim,
            metric="cos" if metric == "cosine" else "l2sq",
            dtype="f32",
            connectivity=degree,
            expansion_add=add_expansion,
            expansion_search=search_expansion,
        )

    def add(self, index, vectors, ids=None):
        if ids is None:
            ids = np.arange(len(index), len(index) + len(vectors), dtype=np.uint64)
        index.add(ids, vectors, threads=self.threads or 0)

    def search(self, index, queries, k):
        found = index.search(queries, k)
        if not hasattr(found, "counts"):  # of a single query it returns another class
            return np.asarray(found.keys).astype(np.int64)[None], np.asarray(found.distances)[None]
        ids = np.asarray(found.keys).astype(np.int64)
        ids[np.arange(ids.shape[1]) >= np.asarray(found.counts)[:, None]] = -1
        return ids, np.asarray(found.distances)

    def size(self, index):
        return len(index)

    def save(self, index, path):
        index.save(str(path))

    def load(self, path, dim=DIM):
        return self._restored(path, False)

    def map(self, path):
        return self._restored(path, True)

    def _restored(self, path, view):
        index = self.library.Index.restore(str(path), view=view)
        if index is None:
            raise RuntimeError("restore returned None")
        index.expansion_search = 64
        return index

    def remove(self, index, ids):
        return index.remove(np.asarray(ids, dtype=np.uint64))

    def get(self, index, id):
        return index.get(id)

    def long_call(self):
        rows = normal(200_000, 128)
        index = self._new(128, "sqeuclidean", 32, 500, 64)
        return lambda: index.add(np.arange(len(rows)), rows)

    def degenerate(self):
        index = self._new(DIM, "sqeuclidean", 1, 1, 1)
        self.add(index, ROWS[:500])
        return index

    def with_huge_count(self, content):
        return struct.pack("<II", 0xFFFFFFF0, 128) + content[8:2048]  # rows and columns of the matrix


ADAPTERS = (Usearch,)
