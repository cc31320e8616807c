"""The indexes of nearwise."""

from __future__ import annotations

import os

import numpy as np

import nearwise
from nearwise._bench.method import Array, Method, Setting
from nearwise._rows import Rows, portable


class _Own(Method):
    library = "nearwise"

    @property
    def target(self) -> float:
        """Of the calibration, which counts as building; searches here name their settings."""
        return min(0.99, max(self.task.targets))

    def convert(self, rows: Rows) -> Array:
        assert isinstance(rows.array, np.ndarray)
        return portable(rows.array, rows.type)

    def facts(self) -> dict[str, str]:
        return {"nearwise": nearwise.__version__}


class OwnExact(_Own):
    family = "nearwise Exact"

    def build(self, base: Array) -> None:
        self._index = nearwise.Exact(base, metric=self.task.metric, context=self.task.context())

    def settings(self) -> list[list[Setting]]:
        return [[{}]]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        return self._index.search(queries, self.task.k, context=self.task.context(threads)).ids

    def save(self, path: str) -> None:
        # The index is the vectors: what is prepared of them is not saved.
        os.link(self.task.path("base.npy"), path)


class OwnIvfFlat(_Own):
    family = "nearwise IvfFlat"

    def build(self, base: Array) -> None:
        self._index = nearwise.IvfFlat.build(
            base, target_recall=self.target, metric=self.task.metric, context=self.task.context()
        )

    def settings(self) -> list[list[Setting]]:
        return [self.probes("probes", self._index.lists)]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        probes, context = int(setting["probes"]), self.task.context(threads)
        return self._index.search(queries, self.task.k, probes=probes, context=context).ids

    def save(self, path: str) -> None:
        self._index.save(path)


class OwnIvfPq(_Own):
    family = "nearwise IvfPq"

    def build(self, base: Array) -> None:
        self._index = nearwise.IvfPq.build(
            base, target_recall=self.target, metric=self.task.metric, context=self.task.context()
        )

    def settings(self) -> list[list[Setting]]:
        probes = self.probes("probes", self._index.lists)
        return [[each | {"candidates": candidates} for each in probes] for candidates in self.candidates()]

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        return self._index.search(
            queries,
            self.task.k,
            probes=int(setting["probes"]),
            candidates=int(setting["candidates"]),
            context=self.task.context(threads),
        ).ids

    def save(self, path: str) -> None:
        self._index.save(path)


class OwnGraph(_Own):
    family = "nearwise GraphIndex"

    def build(self, base: Array) -> None:
        self._index = nearwise.GraphIndex.build(
            base, target_recall=self.target, metric=self.task.metric, context=self.task.context()
        )

    def settings(self) -> list[list[Setting]]:
        return self.breadths("beam")

    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        beam, context = int(setting["beam"]), self.task.context(threads)
        return self._index.search(queries, self.task.k, beam=beam, context=context).ids

    def save(self, path: str) -> None:
        self._index.save(path)
