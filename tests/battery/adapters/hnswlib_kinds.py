"""hnswlib."""

import struct

from vectors import DIM, ROWS, normal

from adapters.adapter import Adapter


class Hnswlib(Adapter):
    name = package = "hnswlib"
    module = "hnswlib"
    lacks = frozenset({"map"})
    least_recall = 0.85
    marks_missing = False  # too few results are an error

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=20_000):
        return self._new(dim, metric, capacity, 16, 100)

    def _new(self, dim, metric, capacity, degree, expansion):
        index = self.library.Index(space="cosine" if metric == "cosine" else "l2", dim=dim)
        index.init_index(max_elements=capacity, ef_construction=expansion, M=degree, random_seed=1)
        index.set_ef(64)
        if self.threads:
            index.set_num_threads(self.threads)
        return index

    def add(self, index, vectors, ids=None):
        index.add_items(vectors, ids)

    def search(self, index, queries, k):
        ids, distances = index.knn_query(queries, k=k)
        return ids.astype("int64"), distances

    def size(self, index):
        return index.get_current_count()

    def save(self, index, path):
        index.save_index(str(path))

    def load(self, path, dim=DIM):
        index = self.library.Index(space="l2", dim=dim)
        index.load_index(str(path))
        index.set_ef(64)
        return index

    def remove(self, index, ids):
        for id in ids:
            index.mark_deleted(int(id))

    def get(self, index, id):
        return index.get_items([id])

    def long_call(self):
        rows = normal(200_000, 128)
        index = self._new(128, "sqeuclidean", 200_000, 32, 500)
        return lambda: index.add_items(rows)

    def degenerate(self):
        index = self._new(DIM, "sqeuclidean", 1000, 0, 0)
        index.add_items(ROWS[:500])
        return index

    def with_huge_count(self, content):
        return content[:8] + struct.pack("<QQ", 2**40, 2**40) + content[24:2048]  # capacity and count


ADAPTERS = (Hnswlib,)
