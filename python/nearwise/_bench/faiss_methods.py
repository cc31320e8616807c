"""Indexes of Faiss: exact, inverted files with and without codes, HNSW with and without codes."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from nearwise._bench.method import Array, FloatMethod, Setting
from nearwise._bench.task import Task

_CONSTRUCTION = 200  # efConstruction


class _Faiss(FloatMethod):
    library = "Faiss"
    _index: Any

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._faiss: Any = importlib.import_module("faiss")
        product = task.metric == "inner_product"
        self._metric = self._faiss.METRIC_INNER_PRODUCT if product else self._faiss.METRIC_L2

    def _use(self, threads: int) -> None:
        self._faiss.omp_set_num_threads(threads)

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._use(threads)
        return np.asarray(self._index.search(queries, self.task.k)[1])

    def save(self, path: str) -> None:
        self._faiss.write_index(self._index, path)

    def facts(self) -> dict[str, str]:
        return {"Faiss": f"{self._faiss.__version__} ({self._faiss.SIMDConfig.get_level_name()})"}


class FaissFlat(_Faiss):
    family = "Faiss Flat"

    def build(self, base: Array) -> None:
        self._index = self._faiss.IndexFlat(self.task.dim, self._metric)
        self._index.add(base)

    def settings(self) -> list[list[Setting]]:
        return [[{}]]


def _lists(rows: int, factor: int) -> int:
    """About factor * sqrt(rows), with the 39 vectors in each that the training of Faiss expects."""
    return max(1, min(round(factor * math.sqrt(rows)), rows // 39))


class FaissIvfFlat(_Faiss):
    family = "Faiss IVF Flat"

    def __init__(self, task: Task, factor: int) -> None:
        super().__init__(task)
        self._list_count = _lists(task.rows, factor)

    @property
    def label(self) -> str:
        return f"{self.family}, {self._list_count} lists"

    def build(self, base: Array) -> None:
        self._use(self.task.threads)
        self._quantizer = self._faiss.IndexFlat(self.task.dim, self._metric)  # Faiss does not keep it alive
        self._index = self._faiss.IndexIVFFlat(self._quantizer, self.task.dim, self._list_count, self._metric)
        self._index.train(base)
        self._index.add(base)

    def settings(self) -> list[list[Setting]]:
        return [self.probes("nprobe", self._list_count)]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._index.nprobe = int(setting["nprobe"])
        return super().search(queries, setting, threads)


class FaissFastScan(_Faiss):
    """4-bit codes of 2 or 4 dimensions each, the best re-ranked by their vectors."""

    family = "Faiss IVF PQ FastScan"

    def __init__(self, task: Task, width: int) -> None:
        super().__init__(task)
        self._list_count = _lists(task.rows, 4)
        # Vectors end in zeros where the dimension is no multiple: neither distances nor products change.
        self._dim = math.ceil(task.dim / width) * width
        self._parts = self._dim // width

    @property
    def label(self) -> str:
        return f"{self.family}, {self._parts} x 4 bits"

    def _padded(self, rows: Array) -> Array:
        if self._dim == self.task.dim:
            return rows
        return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, self._dim - self.task.dim))))

    def build(self, base: Array) -> None:
        self._use(self.task.threads)
        rows = self._padded(base)
        self._quantizer = self._faiss.IndexFlat(self._dim, self._metric)
        self._lists_of_codes = self._faiss.IndexIVFPQFastScan(
            self._quantizer, self._dim, self._list_count, self._parts, 4, self._metric
        )
        self._index = self._faiss.IndexRefineFlat(self._lists_of_codes)
        self._index.train(rows)
        self._index.add(rows)

    def settings(self) -> list[list[Setting]]:
        probes = self.probes("nprobe", self._list_count)
        return [[each | {"candidates": candidates} for each in probes] for candidates in self.candidates()]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._lists_of_codes.nprobe = int(setting["nprobe"])
        self._index.k_factor = setting["candidates"] / self.task.k
        return super().search(self._padded(queries), setting, threads)


class FaissHnsw(_Faiss):
    family = "Faiss HNSW"

    def __init__(self, task: Task, codes: bool) -> None:
        super().__init__(task)
        self._codes = codes

    @property
    def label(self) -> str:
        return f"{self.family}{' SQ8' if self._codes else ''}, M 32"

    def build(self, base: Array) -> None:
        self._use(self.task.threads)
        if self._codes:
            self._index = self._faiss.IndexHNSWSQ(self.task.dim, self._faiss.ScalarQuantizer.QT_8bit, 32, self._metric)
        else:
            self._index = self._faiss.IndexHNSWFlat(self.task.dim, 32, self._metric)
        self._index.hnsw.efConstruction = _CONSTRUCTION
        self._index.train(base)
        self._index.add(base)

    def settings(self) -> list[list[Setting]]:
        return self.breadths("efSearch")

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        self._index.hnsw.efSearch = int(setting["efSearch"])
        return super().search(queries, setting, threads)
