"""nearwise: files that no object saves and loads: results of plans, and files for other libraries."""

import shutil
from typing import Any, ClassVar

import numpy as np
from vectors import DIM, K

from adapters.nearwise_kinds import Held, Nearwise


class FoundByPlan(Nearwise):
    """What a plan finds in a file of vectors, which is kept next to the first files. A save runs the plan."""

    plan = saved = ""
    options: ClassVar = {"radius": 24.0, "memory_limit": "64MiB"}

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held()

    def add(self, index, vectors, ids=None):
        index.vectors = vectors

    def save(self, index, path):
        if isinstance(index.vectors, np.ndarray):
            vectors, index.vectors = index.vectors, self._vectors_of(path)
            self.library.write_vectors(index.vectors, vectors)
        work = index.vectors.with_suffix(".work")  # a process that is killed leaves it to the next one
        getattr(self.library, self.plan)(index.vectors, work, path, **self.options).run()
        shutil.rmtree(work)

    def load(self, path, dim=DIM):
        return Held(self.library.load(path, getattr(self.library, self.saved)), self._vectors_of(path))

    def _vectors_of(self, path):
        return self.folder / f"{path.name}.fbin"

    def answers(self, index):
        return [np.asarray(array) for array in index.made]


class Pairs(FoundByPlan):
    name = "nearwise pairs"
    plan, saved = "plan_threshold_join", "RangeNeighbors"


class Duplicates(FoundByPlan):
    name = "nearwise deduplication"
    plan, saved = "plan_dedup", "Deduplication"


class Vectors(Nearwise):
    """A file of vectors, which is saved from another one that is mapped."""

    name = "nearwise write_vectors"
    suffix = ".fbin"

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held()

    def add(self, index, vectors, ids=None):
        index.made = vectors

    def save(self, index, path):
        self.library.write_vectors(path, index.made)

    def load(self, path, dim=DIM):
        return Held(self.library.read_vectors(path))


class NeighborsOfOthers(Vectors):
    """Results in the format of the big-ann benchmarks."""

    name = "nearwise write_neighbors"
    suffix = ".bin"

    def add(self, index, vectors, ids=None):
        index.made = self.library.knn(vectors[:5000], vectors, K)

    def save(self, index, path):
        self.library.write_neighbors(path, index.made)

    def load(self, path, dim=DIM):
        return Held(self.library.read_neighbors(path))


class Export(Nearwise):
    """A file that only other libraries load. The object that it is made of is kept next to the first files."""

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=0):
        return Held()

    def add(self, index, vectors, ids=None):
        index.made = self.make(vectors)

    def make(self, vectors) -> Any:
        raise NotImplementedError

    def export(self, made, path):
        raise NotImplementedError

    def save(self, index, path):
        if path.parent == self.folder:
            index.made.save(path.with_suffix(".nw"))
        self.export(index.made, path)

    def load(self, path, dim=DIM):
        return Held(self.library.load(path.with_suffix(".nw")))


class SparseGraph(Export):
    name = "nearwise KnnGraph.save_npz"
    suffix = ".npz"

    def make(self, vectors):
        return self.library.build_knn_graph(vectors, K)

    def export(self, made, path):
        made.save_npz(path)


class Hnswlib(Export):
    name = "nearwise GraphIndex.export_hnswlib"

    def make(self, vectors):
        return self.library.GraphIndex.build(vectors[:10_000], degree=16)

    def export(self, made, path):
        made.export_hnswlib(path)


ADAPTERS = (Pairs, Duplicates)
WITHOUT_CHECKSUMS = (Vectors, NeighborsOfOthers, SparseGraph, Hnswlib)
