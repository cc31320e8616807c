"""What all inverted files have, whatever they keep of a row."""

from __future__ import annotations

import os
import warnings
from typing import Any, Mapping, NamedTuple, Optional, TypeVar

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._neighbors import Neighbors, adopt
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import Rows, as_rows, device_for, rest_of_limit
from nearwise._vector_file import Path

_Index = TypeVar("_Index", bound="Ivf")
_LARGEST = 2**63 - 1


class MeasuredRecall(NamedTuple):
    """How much of the truth a search finds that names neither probes nor candidates (`Ivf.measure_probes`)."""

    probes: int
    candidates: int  #: of the second look; 0: there was none
    recall: float  #: of the sample
    recall_of_codes: float  #: with the same probes, without a second look
    target: float
    queries: int  #: the size of the sample
    neighbors: int  #: 10, or all other rows
    rows: int  #: of the index when it was measured

    @property
    def reached(self) -> bool:
        """Whether the recall is as large as was wanted."""
        return self.recall >= self.target


class Ivf:
    """Rows in lists around the centroids of a k-means, of which a search looks at the nearest few.

    `IvfFlat` keeps the rows as they are, `IvfPq` a code of 8 to 64 bytes of each, `IvfLsq` one that loses less and takes longer
    to make. Their `build` makes one of all rows and measures how many lists a search must look at. Their `train`, and
    `load_ivf`, make one to which rows come by `add`, as often as you like; then `measure_probes`.

    The answer of a search is defined: the lists are those whose centroids `nearwise.knn` finds, and the answers are the
    best rows in them, by the distance from what is kept of each row. It is the same, bit for bit, on every instruction set,
    with any number of threads, whatever else is searched for in the same call.

    Threads may search at once. What changes the index waits for them, and they for it.
    """

    _index: _core.Ivf
    _limit: int

    def __init__(self) -> None:
        raise TypeError("an index is made by build or train of IvfFlat, IvfPq or IvfLsq, or by load_ivf")

    def add(self, rows: Any, ids: Any = None, *, progress: ProgressArgument = None) -> None:
        """Adds rows, each to the list of its nearest centroid.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `nearwise.knn`, in host memory. An `IvfFlat` takes the element type it was trained with.
        ids : array [rows] of integers, optional
            What searches return for these rows: 0 or larger, and not necessarily different. By default numbers that go
            on from the largest id so far.
        progress
            As in `nearwise.knn`; rows are counted.

        If anything is wrong, nothing has been added.
        """
        given = as_rows(rows, "rows", self._limit)
        numbers = None if ids is None else _options.ids(ids)
        with reporting(progress, "add") as report:
            self._index.add(given.array, given.type, numbers, given.copied_bytes, report)

    def remove(self, ids: Any, *, progress: ProgressArgument = None) -> int:
        """Removes every row with one of these ids, and returns how many there were."""
        with reporting(progress, "remove") as report:
            return self._index.remove(_options.ids(ids), report)

    def merge(self, other: Ivf, *, progress: ProgressArgument = None) -> None:
        """Adds the rows of another index, under their ids. Both must come from one training (see `empty_copy`)."""
        if not isinstance(other, Ivf):
            raise TypeError(f"other: expected an index, given {type(other).__name__}")
        with reporting(progress, "merge") as report:
            self._index.merge(other._index, report)

    def empty_copy(self: _Index) -> _Index:
        """An index of the same training without rows, within the same memory_limit."""
        return adopt_index(type(self), self._index.empty_copy(), self._limit)

    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int = 0,
        rows: Any = None,
        candidates: int = 0,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best rows in the lists nearest to each query.

        Parameters
        ----------
        queries : array [queries, dim]
            As in `nearwise.knn`, in host memory.
        k : int
            At least 1. Where the lists hold fewer rows, the answer ends in id -1 at distance +inf (-inf for
            inner_product).
        probes : int
            Lists to look at: more cost time and find more. 0: the index's own number, `probes`, which `build` measures.
        rows : array [rows, dim], optional
            The vectors themselves, by id: row i is the one with id i. An array, or a mapped file (`read_vectors`). The
            best `candidates` are looked at again in it, and the best k of these reported with their true distance.
        candidates : int
            At least k; 0: the index's own number, `candidates`, and for k above 10 in proportion.
        progress
            As in `nearwise.knn`; queries are counted.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k].
        """
        given = as_rows(queries, "queries", self._limit)
        again = Rows(None, "f32", 0) if rows is None else as_rows(rows, "rows", self._limit)
        with reporting(progress, "search") as report:
            found = self._index.search(
                given.array,
                given.type,
                _options.neighbor_count(k),
                amount(probes, "probes"),
                again.array,
                again.type,
                amount(candidates, "candidates"),
                given.copied_bytes + again.copied_bytes,
                report,
            )
        return adopt(found)

    def measure_probes(
        self,
        rows: Any,
        *,
        recall: float = 0.9,
        queries: int = 500,
        second_look: bool = True,
        progress: ProgressArgument = None,
    ) -> MeasuredRecall:
        """Makes `probes` the fewest lists that find enough, measured on rows of the index against exact search.

        No row counts as its own neighbour. `build` calls it; call it after `add`, and again when
        many rows have come or gone. Warns if even all lists do not find enough; then the probes are those that find as
        large a share of what all lists find.

        Parameters
        ----------
        rows : array [rows, dim]
            The vectors themselves, by id: row i is the one with id i, as in `search`.
        recall : float
            The share of the 10 nearest rows to be among the first 10 answers. The lower end of its 95 % interval must
            reach it where that is possible, so that it holds for rows that were not drawn.
        queries : int
            Rows to search for, drawn by the seed of the training. The error of the recall is about 0.3 / sqrt(queries).
        second_look : bool
            Whether searches will be given `rows`; then `candidates` are measured, too. What a search without them finds
            is `recall_of_codes`.
        progress
            As in `nearwise.knn`; rows are counted.
        """
        return self._measure(rows, recall, queries, second_look, progress, stacklevel=3)

    def _measure(
        self, rows: Any, recall: float, queries: int, second_look: bool, progress: ProgressArgument, stacklevel: int
    ) -> MeasuredRecall:
        given = as_rows(rows, "rows", self._limit)
        with reporting(progress, "measure") as report:
            measured = MeasuredRecall(
                *self._index.calibrate(
                    given.array,
                    given.type,
                    checked_recall(recall),
                    _options.count(queries, "queries"),
                    _options.flag(second_look, "second_look"),
                    given.copied_bytes,
                    report,
                )
            )
        if not measured.reached:
            warnings.warn(
                f"recall {measured.target} cannot be reached: {measured.recall:.3f} of the {measured.neighbors} nearest "
                f"found in {measured.probes} of {self.lists} lists",
                stacklevel=stacklevel,
            )
        return measured

    def save(self, path: Path) -> None:
        """Saves it in a .nw file, checksummed. Whatever happens, the old file or the new one is there, whole.

        `provenance`, `probes` and what was measured are saved with it.
        """
        self._index.save(os.fspath(path))

    def list_size(self, list: int) -> int:
        """The number of rows in one list."""
        return self._index.list_size(amount(list, "list"))

    @property
    def size(self) -> int:
        """The number of rows."""
        return self._index.size

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._index.dim

    @property
    def lists(self) -> int:
        """The number of lists."""
        return self._index.lists

    @property
    def code_bytes(self) -> int:
        """Bytes that are kept of each row, beside 8 for its id."""
        return self._index.code_bytes

    @property
    def metric(self) -> str:
        """The metric of all searches."""
        return self._index.metric

    @property
    def centroids(self) -> npt.NDArray[np.float32]:
        """The centres of the lists, [lists, dim], read-only."""
        return self._index.centroids

    @property
    def probes(self) -> int:
        """Lists that a search looks at if it does not say: measured, or set by you. It is saved."""
        return self._index.probes

    @probes.setter
    def probes(self, probes: int) -> None:
        self._index.probes = amount(probes, "probes")

    @property
    def candidates(self) -> int:
        """Rows that a search looks at again if it is given `rows` and does not say how many, for k of up to 10."""
        return self._index.candidates

    @property
    def provenance(self) -> dict[str, str]:
        """Where it comes from, as free text: "version", "training" and "seed" are its training's. May be set, and is saved."""
        return self._index.provenance

    @provenance.setter
    def provenance(self, provenance: Mapping[str, str]) -> None:
        self._index.provenance = _options.texts(provenance, "provenance")

    @property
    def measured(self) -> Optional[MeasuredRecall]:
        """What `measure_probes` found; None where it was never called, or `probes` were set since.

        Rows that came or went since are not in it: compare its `rows` with `size`.
        """
        fields = self._index.measured
        return None if fields is None else MeasuredRecall(*fields)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return (
            f"<nearwise.{type(self).__name__}: {self.size} rows of {self.dim} elements in {self.lists} lists, "
            f"{self.code_bytes} bytes each, {self.metric}>"
        )


def build_index(kind: Any, rows: Any, recall: float, progress: ProgressArgument, options: dict[str, Any]) -> Any:
    wanted = checked_recall(recall)  # told before the work
    index = kind.train(rows, progress=progress, **options)
    index.add(rows, progress=progress)
    if len(index) >= 2:  # a row alone has no neighbours
        index._measure(rows, wanted, 500, True, progress, stacklevel=4)
    return index


def train_index(kind: Any, train: Any, rows: Any, options: dict[str, Any], machine: dict[str, Any], progress: Any) -> Any:
    limit = _options.byte_count(machine["memory_limit"], "memory_limit")
    given = as_rows(rows, "rows", limit)
    # What a converted copy has taken stays taken: the index counts on the budget that it was trained with.
    rest = rest_of_limit(limit, "train", given)
    with reporting(progress, "train") as report:
        trained = train(
            given.array,
            given.type,
            **options,
            seed=_options.seed(machine["seed"]),
            device=device_for(machine["device"], given.array),
            threads=_options.thread_count(machine["threads"]),
            memory_limit=rest,
            isa=_options.word(machine["isa"], "isa"),
            progress=report,
        )
    return adopt_index(kind, trained, rest)


def adopt_index(kind: type[_Index], index: _core.Ivf, limit: int) -> _Index:
    adopted = object.__new__(kind)
    adopted._index = index
    adopted._limit = limit
    return adopted


def amount(value: Any, name: str) -> int:
    """0 stands for a usual one; what is too much is C++'s to say."""
    return _options.integer(value, name, 0, _LARGEST)


def checked_recall(value: Any) -> float:
    given = _options.number(value, "recall")
    if not 0 < given <= 1:
        raise ValueError(f"recall: expected above 0 and at most 1, given {given}")
    return given


# Users see them as nearwise.Ivf and so on.
for _class in (Ivf, MeasuredRecall):
    _class.__module__ = "nearwise"
