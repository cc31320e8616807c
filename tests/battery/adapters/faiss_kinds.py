"""Faiss: Flat, IVFPQ and HNSW."""

import struct

import numpy as np
from vectors import DIM, ROWS, normal

from adapters.adapter import Adapter


class FaissFlat(Adapter):
    name = "faiss Flat"
    package = "faiss-cpu"
    module = "faiss"
    lacks = frozenset({"capacity"})

    def load_library(self):
        super().load_library()
        if self.threads:
            self.library.omp_set_num_threads(self.threads)

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return self.library.IndexFlatIP(dim) if metric == "cosine" else self.library.IndexFlatL2(dim)

    def add(self, index, vectors, ids=None):
        # Cosine is the inner product of vectors scaled to length 1.
        if index.metric_type == self.library.METRIC_INNER_PRODUCT:
            vectors = np.array(vectors)
            self.library.normalize_L2(vectors)
        if ids is None:
            index.add(vectors)
        else:
            index.add_with_ids(vectors, ids)

    def search(self, index, queries, k):
        distances, ids = index.search(queries, k)
        return ids, distances

    def size(self, index):
        return index.ntotal

    def save(self, index, path):
        self.library.write_index(index, str(path))

    def load(self, path, dim=DIM):
        return self.library.read_index(str(path))

    def map(self, path):
        return self.library.read_index(str(path), self.library.IO_FLAG_MMAP_IFC)

    def remove(self, index, ids):
        return index.remove_ids(np.asarray(ids, dtype=np.int64))

    def get(self, index, id):
        return index.reconstruct(id)

    def long_call(self):
        rows = normal(300_000, 256)
        index = self.library.IndexFlatL2(256)
        index.add(rows)
        return lambda: index.search(rows[:60_000], 10)

    def with_huge_count(self, content):
        return content[:8] + struct.pack("<q", 2**40) + content[16:2048]  # after the type and the dimension


class FaissIvfPq(FaissFlat):
    name = "faiss IVFPQ"
    lacks = frozenset({"capacity", "cosine", "bulk"})
    least_recall = 0.3

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        index = self._untrained(dim)
        index.train(ROWS if dim == DIM else normal(5000, dim))
        return index

    def _untrained(self, dim=DIM):
        quantizer = self.library.IndexFlatL2(dim)
        index = self.library.IndexIVFPQ(quantizer, dim, 16, 8, 8)
        index.own_fields = True
        quantizer.this.disown()
        index.nprobe = 16
        index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1
        return index

    def load(self, path, dim=DIM):
        index = self.library.read_index(str(path))
        index.nprobe = 16
        return index

    def map(self, path):
        index = self.library.read_index(str(path), self.library.IO_FLAG_MMAP)
        index.nprobe = 16
        return index

    def get(self, index, id):
        index.make_direct_map()
        return index.reconstruct(id)

    def long_call(self):
        rows = normal(200_000, 128)
        trainer = self.library.Kmeans(128, 4096, niter=200, max_points_per_centroid=1000)
        return lambda: trainer.train(rows)

    def degenerate(self):
        parts = 7  # of 32 dimensions
        return self.library.IndexIVFPQ(self.library.IndexFlatL2(DIM), DIM, 16, parts, 8)

    def declared(self, dim):
        return self._untrained(dim)

    def train(self, vectors):
        index = self._untrained()
        index.train(vectors)
        return index

    def untrained(self):
        return self._untrained()


class FaissHnsw(FaissFlat):
    name = "faiss HNSW"
    lacks = frozenset({"capacity", "cosine"})
    least_recall = 0.85

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        index = self.library.IndexHNSWFlat(dim, 16)
        index.hnsw.efConstruction = 100
        index.hnsw.efSearch = 64
        return index

    def long_call(self):
        index = self.library.IndexHNSWFlat(128, 32)
        index.hnsw.efConstruction = 400
        rows = normal(300_000, 128)
        return lambda: index.add(rows)

    def degenerate(self):
        index = self.library.IndexHNSWFlat(DIM, 0)
        index.add(ROWS[:500])
        return index


ADAPTERS = (FaissFlat, FaissIvfPq, FaissHnsw)
