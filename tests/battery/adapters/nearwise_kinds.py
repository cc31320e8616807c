"""nearwise: exact search, inverted files, k-NN graphs, graph indexes."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from vectors import DIM, QUERIES, ROWS, K, nearest, normal, recall

from adapters.adapter import Adapter


class Nearwise(Adapter):
    package = module = "nearwise"
    options: ClassVar[dict[str, Any]] = {}  # of a training

    @property
    def _class(self):
        return getattr(self.library, self.name.split()[1])

    def version(self):
        return self.library.__version__  # builds are used without installing them

    def is_documented(self, error):
        return isinstance(error, (TypeError, self.library.Error))


@dataclass
class Held:
    """An object of nearwise that is made of all its vectors at once, so that adding replaces it."""

    made: Any = None
    vectors: Any = None
    dim: int = DIM
    metric: str = "sqeuclidean"


class Exact(Nearwise):
    name = "nearwise Exact"
    lacks = frozenset({"capacity", "declared", "extend", "get", "ids", "map", "remove", "save"})

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held(dim=dim, metric=metric)

    def add(self, index, vectors, ids=None):
        index.made = self.library.Exact(vectors, metric=index.metric, threads=self.threads)

    def search(self, index, queries, k):
        if index.made is None:
            self.add(index, np.zeros((0, index.dim), np.float32))
        return index.made.search(queries, k)

    def size(self, index):
        return len(index.made)

    def long_call(self):
        rows = normal(60_000 if self.quick else 200_000, 256)
        base = self.library.Exact(rows)
        return lambda: base.search(rows, 10)


class Neighbors(Nearwise):
    """Exact search without an index, and its saved results."""

    name = "nearwise knn"
    lacks = frozenset({"bulk", "capacity", "declared", "extend", "get", "ids", "map", "remove"})

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held(vectors=np.zeros((0, dim), np.float32), metric=metric)

    def add(self, index, vectors, ids=None):
        index.made = self.library.knn(vectors, vectors, min(K, len(vectors)), metric=index.metric, threads=self.threads)
        index.vectors = vectors

    def search(self, index, queries, k):
        return self.library.knn(queries, index.vectors, k, metric=index.metric)

    def size(self, index):
        return len(index.made.ids)

    def save(self, index, path):
        self.library.save(path, index.made, metric=index.metric)

    def load(self, path, dim=DIM):
        saved = self.library.load(path, self.library.SavedNeighbors)
        return Held(saved.neighbors, ROWS, metric=saved.metric)

    def answers(self, index):
        return index.made

    def long_call(self):
        rows = normal(60_000 if self.quick else 200_000, 256)
        return lambda: self.library.knn(rows, rows, 10)


class Ivf(Nearwise):
    lacks = frozenset({"capacity", "declared", "get"})

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        trained = self.folder / "trained"
        if (dim, metric, self.threads) == (DIM, "sqeuclidean", None) and trained.exists():
            return self.library.load(trained)
        return self.train(ROWS if dim == DIM else normal(5000, dim), metric)

    def prepare(self):
        self.train(ROWS).save(self.folder / "trained")
        super().prepare()

    def train(self, vectors, metric="sqeuclidean"):
        index = self._class.train(vectors, lists=16, metric=metric, threads=self.threads, **self.options)
        index.probes = 16
        return index

    def add(self, index, vectors, ids=None):
        index.add(vectors, ids)

    def search(self, index, queries, k):
        return index.search(queries, k)

    def size(self, index):
        return len(index)

    def save(self, index, path):
        index.save(path)

    def load(self, path, dim=DIM):
        return self.library.load(path, self._class)

    def map(self, path):
        return self.library.load(path)

    def remove(self, index, ids):
        return index.remove(ids)

    def long_call(self):
        rows = normal(200_000, 64)
        return lambda: self._class.train(rows, lists=2000, training_rows=len(rows), iterations=1000)


class IvfFlat(Ivf):
    name = "nearwise IvfFlat"

    def degenerate(self):
        return self._class.train(ROWS[:500], lists=501)


class IvfPq(Ivf):
    name = "nearwise IvfPq"
    least_recall = 0.3
    options: ClassVar = {"code_bytes": 8}

    def degenerate(self):
        return self._class.train(ROWS[:500], code_bytes=DIM + 1)


class IvfLsq(Ivf):
    name = "nearwise IvfLsq"
    lacks = Ivf.lacks | {"bulk"}
    least_recall = 0.3
    options: ClassVar = {"code_bytes": 8, "rounds": 2, "train_iterations": 2, "encode_iterations": 4}

    def degenerate(self):
        return self._class.train(ROWS[:500], code_bytes=33)  # 32 codebooks are the most


class KnnGraph(Nearwise):
    """A search returns the graph of the queries themselves."""

    name = "nearwise KnnGraph"
    lacks = frozenset({"bulk", "capacity", "cosine", "declared", "dim", "get", "ids", "map", "queries"})

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held()

    def add(self, index, vectors, ids=None):
        if index.made is None:
            index.made = self.library.build_knn_graph(vectors, K, threads=self.threads)
            index.vectors = np.asarray(vectors)
        else:
            everything = np.concatenate([index.vectors, vectors])
            index.made = index.made.with_rows(everything)
            index.vectors = everything

    def search(self, index, queries, k):
        return tuple(self.library.build_knn_graph(queries, k))

    def size(self, index):
        return len(index.made)

    def save(self, index, path):
        index.made.save(path)

    def load(self, path, dim=DIM):
        graph = self.library.load(path, self._class)
        return Held(graph, ROWS[: len(graph)])

    def remove(self, index, ids):
        index.made = index.made.without_rows(index.vectors, ids)

    def answers(self, index):
        path = index.made.smoothest_path(0, len(index.made) - 1)
        return *index.made, *(path[:2] if path else ())

    def quality(self, index):
        some = slice(len(QUERIES))
        return recall(index.made.ids[some], nearest(ROWS, ROWS[some], K + 1)[:, 1:])

    def long_call(self):
        rows = normal(200_000, 128)
        return lambda: self.library.build_knn_graph(rows, 30)

    def degenerate(self):
        return self.library.build_knn_graph(ROWS[:500], K, target_recall=0)


class GraphIndex(Nearwise):
    """Built of the first vectors that are added."""

    name = "nearwise GraphIndex"
    lacks = frozenset({"bulk", "capacity", "declared"})

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held(dim=dim, metric=metric)

    def add(self, index, vectors, ids=None):
        if index.made is None:
            index.made = self._class.build(vectors, ids=ids, metric=index.metric, degree=16, threads=self.threads)
        else:
            index.made.add(vectors, ids)

    def search(self, index, queries, k):
        if index.made is None:
            self.add(index, np.zeros((0, index.dim), np.float32))
        return index.made.search(queries, k)

    def size(self, index):
        return len(index.made)

    def save(self, index, path):
        index.made.save(path)

    def load(self, path, dim=DIM):
        return Held(self.library.load(path, self._class))

    def map(self, path):
        return Held(self.library.load(path))

    def remove(self, index, ids):
        return index.made.remove(ids)

    def get(self, index, id):
        return index.made.get([id])[0]

    def long_call(self):
        rows = normal(200_000, 64)
        return lambda: self._class.build(rows)

    def degenerate(self):
        return self._class.build(ROWS[:500], degree=17)  # a multiple of 16 is needed


ADAPTERS = (Neighbors, Exact, IvfFlat, IvfPq, IvfLsq, KnnGraph, GraphIndex)
