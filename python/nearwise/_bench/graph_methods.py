"""Graphs of hnswlib, usearch and PyNNDescent."""

from __future__ import annotations

import importlib.metadata
import pickle
from typing import Any, ClassVar

import numpy as np

from nearwise._bench.method import Array, FloatMethod, Setting, Unsupported
from nearwise._bench.task import Task

_CONSTRUCTION = 200  # ef_construction, expansion_add


class Hnswlib(FloatMethod):
    library = "hnswlib"
    family = "hnswlib"
    has_cosine: ClassVar[bool] = True

    def __init__(self, task: Task, links: int) -> None:
        super().__init__(task)
        self._links = links

    @property
    def label(self) -> str:
        return f"{self.family}, M {self._links}"

    def build(self, base: Array) -> None:
        import hnswlib

        space = {"inner_product": "ip", "cosine": "cosine"}.get(self.task.metric, "l2")
        self._index: Any = hnswlib.Index(space, self.task.dim)
        self._index.init_index(
            len(base), M=self._links, ef_construction=_CONSTRUCTION, random_seed=self.task.seed + 1
        )
        self._index.add_items(base, num_threads=self.task.threads)

    def settings(self) -> list[list[Setting]]:
        return self.breadths("ef")

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._index.set_ef(int(setting["ef"]))
        return np.asarray(self._index.knn_query(queries, self.task.k, num_threads=threads)[0]).astype(np.int64)

    def save(self, path: str) -> None:
        self._index.save_index(path)

    def facts(self) -> dict[str, str]:
        return {"hnswlib": importlib.metadata.version("hnswlib")}


class Usearch(FloatMethod):
    library = "usearch"
    family = "usearch"
    has_cosine: ClassVar[bool] = True

    def __init__(self, task: Task, dtype: str) -> None:
        super().__init__(task)
        self._dtype = dtype
        if dtype == "i8" and task.metric != "cosine":
            raise Unsupported("usearch, i8: elements must lie between -1 and 1, which only cosine makes sure of")

    @property
    def label(self) -> str:
        return f"{self.family}, {self._dtype}"

    def build(self, base: Array) -> None:
        from usearch.index import Index

        metric = {"inner_product": "ip", "cosine": "cos"}.get(self.task.metric, "l2sq")
        self._index: Any = Index(
            ndim=self.task.dim, metric=metric, dtype=self._dtype, connectivity=16, expansion_add=_CONSTRUCTION
        )
        self._index.add(np.arange(len(base)), base, threads=self.task.threads)

    def settings(self) -> list[list[Setting]]:
        return self.breadths("expansion_search")

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._index.expansion_search = int(setting["expansion_search"])
        found = np.asarray(self._index.search(queries, self.task.k, threads=threads).keys)
        return found.astype(np.int64).reshape(len(queries), -1)

    def save(self, path: str) -> None:
        self._index.save(path)

    def facts(self) -> dict[str, str]:
        return {"usearch": importlib.metadata.version("usearch")}


class Pynndescent(FloatMethod):
    library = "PyNNDescent"
    family = "PyNNDescent"
    has_cosine: ClassVar[bool] = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        if task.metric == "inner_product":
            raise Unsupported("PyNNDescent: it has no inner products of vectors of different lengths")

    def warm_up(self, base: Array) -> None:
        # Numba compiles at first use.
        self._index = self._made(base[:2000])
        self._index.query(base[:2], k=self.task.k, epsilon=0.1)

    def build(self, base: Array) -> None:
        self._index = self._made(base)

    def _made(self, base: Array) -> Any:
        import pynndescent

        made = pynndescent.NNDescent(
            base,
            metric="cosine" if self.task.metric == "cosine" else "sqeuclidean",
            n_neighbors=max(30, self.task.k),
            n_jobs=self.task.threads,
            random_state=self.task.seed,
            parallel_batch_queries=True,
        )
        made.prepare()
        return made

    def settings(self) -> list[list[Setting]]:
        return [[{"epsilon": round(0.02 * step, 2)} for step in range(26)]]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        import numba

        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        return np.asarray(self._index.query(queries, k=self.task.k, epsilon=setting["epsilon"])[0])

    def save(self, path: str) -> None:
        with open(path, "wb") as file:
            pickle.dump(self._index, file, protocol=5)

    def facts(self) -> dict[str, str]:
        return {"PyNNDescent": importlib.metadata.version("pynndescent")}
