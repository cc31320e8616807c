"""nearwise: quantizers. Adding vectors is training on them; a search encodes and decodes the queries."""

from typing import Any, ClassVar

import numpy as np
from vectors import DIM, QUERIES, ROWS, normal

from adapters.nearwise_kinds import Held, Nearwise


class Quantizer(Nearwise):
    lacks = frozenset(
        {"bulk", "capacity", "cosine", "declared", "extend", "get", "grow", "ids", "k", "map", "queries", "remove"}
    )
    least_recall = 0.3  # here: the share of the variance that reconstructions keep
    long_options: ClassVar[dict[str, Any]] = {}

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held()

    def add(self, index, vectors, ids=None):
        index.made = self._class.train(vectors, threads=self.threads, **self.options)
        index.vectors = vectors

    def train(self, vectors):
        index = Held()
        self.add(index, vectors)
        return index

    def search(self, index, queries, k):
        codes = index.made.encode(queries)
        return codes.astype(np.int64), index.made.decode(codes)

    def size(self, index):
        return len(index.vectors)

    def save(self, index, path):
        index.made.save(path)

    def load(self, path, dim=DIM):
        return Held(self.library.load(path, self._class), ROWS)

    def quality(self, index):
        decoded = index.made.decode(index.made.encode(QUERIES))
        return 1 - float(((QUERIES - decoded) ** 2).sum() / (QUERIES**2).sum())

    def long_call(self):
        rows = normal(30_000 if self.quick else 100_000, 256)
        return lambda: self._class.train(rows, training_rows=len(rows), **self.long_options)


class ProductQuantizer(Quantizer):
    name = "nearwise ProductQuantizer"
    options: ClassVar = {"parts": 8, "iterations": 5}
    long_options: ClassVar = {"parts": 64, "iterations": 1000}

    def degenerate(self):
        return self._class.train(ROWS, parts=DIM + 1)


class OptimizedProductQuantizer(ProductQuantizer):
    name = "nearwise OptimizedProductQuantizer"
    options: ClassVar = {"parts": 16, "bits": 4, "iterations": 2, "rounds": 1}
    long_options: ClassVar = {"parts": 64, "rounds": 1000}


class AdditiveQuantizer(Quantizer):
    name = "nearwise AdditiveQuantizer"
    options: ClassVar = {"codebooks": 4, "rounds": 1, "iterations": 2}
    long_options: ClassVar = {"codebooks": 16}

    def degenerate(self):
        return self._class.train(ROWS, codebooks=33)  # 32 are the most


ADAPTERS = (ProductQuantizer, OptimizedProductQuantizer, AdditiveQuantizer)
