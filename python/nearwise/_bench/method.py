"""The interface of what is measured: one index of a library, and the settings that its searches are tried with."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

import numpy.typing as npt

from nearwise._bench.task import Task, as_floats, unit
from nearwise._rows import Rows

Array = npt.NDArray[Any]
Setting = dict[str, float]

# Breadths of a search for 10 neighbors in a graph: ef, beam, expansion.
_BREADTHS = (10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 58, 70, 84, 100, 120, 144, 172, 206, 248, 300, 400, 600, 1000)
_PROBES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 128, 160, 192, 256, 384, 512)
_CANDIDATES = (20, 40, 80, 160, 320)  # of a search for 10


class Unsupported(Exception):
    """The library has no such search; the message says what is missing."""


class Method(abc.ABC):
    """An index of one library with fixed settings of its construction.

    A process measures one: `warm_up`, `build` (timed), `save`, then searches. Vectors are converted before the clock
    starts.
    """

    library: ClassVar[str]
    family: ClassVar[str]  # what a reader compares: its variants differ in settings of the construction

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def label(self) -> str:
        """The family and what tells its variants apart."""
        return self.family

    @abc.abstractmethod
    def convert(self, rows: Rows) -> Array:
        """Vectors as the library takes them."""

    def warm_up(self, base: Array) -> None:  # noqa: B027 (most have nothing to do)
        """What must not count as building: compilation at first use."""

    @abc.abstractmethod
    def build(self, base: Array) -> None: ...

    @abc.abstractmethod
    def settings(self) -> list[list[Setting]]:
        """Of searches. In each list, every setting finds more than those before and takes longer."""

    @abc.abstractmethod
    def search(self, queries: Array, setting: Setting, threads: int) -> Array:
        """Ids [queries, k]."""

    @abc.abstractmethod
    def save(self, path: str) -> None:
        """Writes the index as a file, or as files in a folder `path`."""

    @abc.abstractmethod
    def facts(self) -> dict[str, str]:
        """The version of the library, and of what it is that decides on its speed."""

    def breadths(self, name: str) -> list[list[Setting]]:
        """Settings of graphs."""
        scale = max(1.0, self.task.k / 10)
        values = sorted({max(self.task.k, round(value * scale)) for value in _BREADTHS})
        return [[{name: value} for value in values if value <= max(self.task.k, self.task.rows)]]

    def probes(self, name: str, lists: int) -> list[Setting]:
        """Settings of inverted files."""
        return [{name: value} for value in (*(each for each in _PROBES if each < lists), lists)]

    def candidates(self) -> list[int]:
        """Numbers of vectors to re-rank."""
        scale = max(1.0, self.task.k / 10)
        return sorted({min(self.task.rows, round(value * scale)) for value in _CANDIDATES})


class FloatMethod(Method):
    """A method that takes f32 vectors, for cosine scaled to length 1 unless the library does that itself."""

    has_cosine: ClassVar[bool] = False

    def convert(self, rows: Rows) -> Array:
        floats = as_floats(rows)
        return unit(floats) if self.task.metric == "cosine" and not self.has_cosine else floats
