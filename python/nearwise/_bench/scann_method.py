"""ScaNN: a tree, asymmetric hashing of 2 dimensions in 4 bits, and reordering, as its authors advise."""

from __future__ import annotations

import importlib.metadata
import math
import os
from typing import Any

import numpy as np

from nearwise._bench.method import Array, FloatMethod, Setting


class Scann(FloatMethod):
    library = "ScaNN"
    family = "ScaNN"

    def build(self, base: Array) -> None:
        import scann

        product = self.task.metric in ("cosine", "inner_product")
        self._leaves = max(1, min(round(math.sqrt(len(base))), len(base) // 39))
        hashing = {"anisotropic_quantization_threshold": 0.2} if product else {}
        builder = scann.scann_ops_pybind.builder(base, self.task.k, "dot_product" if product else "squared_l2")
        builder.set_n_training_threads(self.task.threads)
        builder = builder.tree(
            num_leaves=self._leaves,
            num_leaves_to_search=min(self._leaves, 10),
            training_sample_size=min(len(base), 250_000),
        )
        self._searcher: Any = builder.score_ah(2, **hashing).reorder(10 * self.task.k).build()

    def settings(self) -> list[list[Setting]]:
        leaves = self.probes("leaves", self._leaves)
        return [[each | {"candidates": candidates} for each in leaves] for candidates in self.candidates()]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        limits = {
            "final_num_neighbors": self.task.k,
            "pre_reorder_num_neighbors": int(setting["candidates"]),
            "leaves_to_search": int(setting["leaves"]),
        }
        if len(queries) == 1:
            return np.asarray(self._searcher.search(queries[0], **limits)[0])[None]
        self._searcher.set_num_threads(threads)
        batched = self._searcher.search_batched if threads == 1 else self._searcher.search_batched_parallel
        return np.asarray(batched(queries, **limits)[0]).astype(np.int64)

    def save(self, path: str) -> None:
        os.mkdir(path)
        self._searcher.serialize(path)

    def facts(self) -> dict[str, str]:
        return {"ScaNN": importlib.metadata.version("scann")}
