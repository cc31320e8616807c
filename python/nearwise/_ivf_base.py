"""What all inverted files share."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._neighbors import Metric, Neighbors, adopt
from nearwise._progress import ProgressArgument
from nearwise._recall import RecallEstimate
from nearwise._savable import Savable
from nearwise._vector_file import Path

Vectors: TypeAlias = Literal["keep", "f16", "u8", "none"]


class RecallWarning(UserWarning):
    """Searches of an index find fewer of the nearest vectors than was asked for when it was built."""


class Calibration(NamedTuple):
    """The default probes and candidates of an index, and the recall they reach (`Ivf.calibrate`)."""

    probes: int
    candidates: int | None  #: re-ranked; None: without re-ranking
    recall: RecallEstimate
    recall_without_rerank: RecallEstimate  #: with the same probes
    target_recall: float
    neighbors: int  #: 10, or all other vectors
    rows: int  #: size of the index when it was calibrated

    @property
    def reached(self) -> bool:
        """Whether the recall of the sample is at least the target."""
        return self.recall.value >= self.target_recall


class Ivf(Savable):
    """Vectors in lists around k-means centroids; a search scans the lists nearest to the query.

    `IvfFlat` stores the vectors, `IvfPq` a PQ code of each vector's residual, `IvfLsq` an additive code, which
    loses less and takes longer to make. `build` makes an index of all vectors and calibrates it. `train` makes
    an empty one, to which `add` adds vectors; then call `calibrate`. `nearwise.load` opens a saved one.

    The result of a search is defined: the lists are those whose centroids `nearwise.knn` finds, and the
    neighbors are the best vectors in them, by the distance to what the index stores. It is the same, bit for
    bit, on every instruction set, with any number of threads and whatever other queries are in the call.

    Copies (`copy.copy`, `copy.deepcopy`, pickling) are independent indexes. Several threads may search at the same
    time. Methods that change the index wait for searches, and searches for them.
    """

    _index: _core.Ivf
    _context: Context
    _warned: bool

    def __init__(self) -> None:
        raise TypeError("an index is made by build or train of IvfFlat, IvfPq or IvfLsq, or by nearwise.load")

    @classmethod
    def _of(cls, index: _core.Ivf, context: Context) -> Self:
        made = object.__new__(cls)
        made._index = index
        made._context = dataclasses.replace(context, device=index.device, progress=None)
        made._warned = False
        return made

    @classmethod
    def _make(
        cls, codec: str, rows: Any, context: Context | None, *, target_recall: float | None = None, **options: Any
    ) -> Self:
        """`options` are those of _core.make_ivf. Without a target recall, the index is trained and stays empty."""
        with Call("train" if target_recall is None else "build", context) as call:
            made = _core.make_ivf(
                rows=call.rows(rows, "rows"),
                codec=codec,
                target_recall=target_recall,
                **options,
                settings=call.settings,
                progress=call.report,
            )
        # The index and its calls count on what the converted copy leaves of the limit.
        index = cls._of(made, call.remaining())
        index._warn_if_missed(stacklevel=5)
        return index

    def _warn_if_missed(self, stacklevel: int) -> None:
        found = self.calibration
        if found is not None and not found.reached:
            self._warned = True
            warnings.warn(
                f"target recall {found.target_recall} cannot be reached: {found.recall.value:.3f} of the "
                f"{found.neighbors} nearest found in {found.probes} of {self.lists} lists",
                RecallWarning,
                stacklevel=stacklevel,
            )

    @operation
    def add(
        self,
        rows: Any,
        ids: Any = None,
        *,
        on_duplicate: Literal["refuse", "replace", "keep"] | None = "refuse",
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> int:
        """Adds vectors, each to the list of its nearest centroid. If anything is wrong, none is added.

        Returns the number of vectors that are new or replaced.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `nearwise.knn`, in host memory. An `IvfFlat` takes the element type it was trained with.
        ids : array [rows] of integers, optional
            What searches return for these vectors: 0 or larger, all different. Default: consecutive numbers after the
            largest id so far.
        on_duplicate : {"refuse", "replace", "keep"}
            What to do with ids that the index holds already: an error, or the new vector replaces the old one, or
            the old one stays.
        context, progress
            See `nearwise.Context`; progress counts vectors.
        """
        with Call("add", context) as call:
            return self._index.add(
                rows=call.rows(rows, "rows"),
                ids=None if ids is None else _options.ids(ids),
                on_duplicate=_options.choice(on_duplicate, "on_duplicate", ("refuse", "replace", "keep")),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )

    @operation
    def remove(self, ids: Any, *, context: Context | None = None, progress: ProgressArgument = None) -> int:
        """Removes all vectors with one of these ids, and returns their number. Their space is used again."""
        with Call("remove", context) as call:
            return self._index.remove(
                ids=_options.ids(ids), settings=call.settings_on(self._index.device), progress=call.report
            )

    @operation
    def update(
        self, ids: Any, rows: Any, *, context: Context | None = None, progress: ProgressArgument = None
    ) -> None:
        """Replaces the vectors with these ids, which the index must hold."""
        wanted = _options.ids(ids)
        missing = next((int(one) for one in wanted if int(one) not in self), None)
        if missing is not None:
            raise ValueError(f"update: id {missing} is not in the index")
        self.add(rows, wanted, on_duplicate="replace", context=context, progress=progress)

    @operation
    def compact(self) -> None:
        """Gives the space of removed vectors back to the system."""
        self._index.compact()

    @operation
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids of all vectors, ascending."""
        return self._index.ids()

    @operation
    def get(self, ids: Any) -> npt.NDArray[np.float32]:
        """The vectors with these ids, float32 [ids, dim].

        They are the ones that were added if `keeps_vectors`, else what the index kept of them: rounded vectors, or
        reconstructions from their codes. An id that the index does not hold is an error.
        """
        return self._index.get(ids=_options.ids(ids))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, (int, np.integer)) and 0 <= int(id) < 2**63 and self._index.contains(id=int(id))

    @operation
    def merge(self, other: Ivf, *, context: Context | None = None, progress: ProgressArgument = None) -> None:
        """Adds the vectors of another index, under their ids. Both must come from one training (see `empty_copy`)."""
        if not isinstance(other, Ivf):
            raise TypeError(f"other: expected an index, got {type(other).__name__}")
        with Call("merge", context) as call:
            self._index.merge(other=other._index, settings=call.settings_on(self._index.device), progress=call.report)

    @operation
    def empty_copy(self) -> Self:
        """An index of the same training without vectors, with the same context."""
        return self._of(self._index.empty_copy(), self._context)

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int | None = None,
        codes_only: bool | None = False,
        rerank: Any = None,
        candidates: int | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best vectors in the lists nearest to each query.

        Parameters
        ----------
        queries : array [queries, dim], or one vector [dim]
            As in `nearwise.knn`, in host memory.
        k : int
            At least 1. If the lists hold fewer vectors, rows end in id -1 at distance +inf (-inf for inner_product).
        probes : int, optional
            Lists to scan: more take longer and find more. Default: `Ivf.probes`, which `build` calibrates.
        codes_only : bool
            By default the best `candidates` by their codes are compared with the query again, by the vectors that the
            index keeps, and the best k returned with the distances to those. True: codes decide.
        rerank : array [rows, dim], optional
            Vectors to re-rank by instead: row i has id i. An array, or a mapped file (`read_vectors`). A sample is
            compared with the index.
        candidates : int, optional
            Vectors to re-rank, at least k. Default: `Ivf.candidates`, in proportion for k above 10.
        context, progress
            See `nearwise.Context`; progress counts queries.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k]; [k] for one vector.
        """
        with Call("search", context) as call:
            found = self._index.search(
                queries=call.rows(queries, "queries"),
                k=_options.count(k, "k"),
                probes=_options.optional_count(probes, "probes"),
                codes_only=_options.flag(codes_only, "codes_only"),
                rerank=None if rerank is None else call.rows(rerank, "rerank"),
                candidates=_options.optional_count(candidates, "candidates"),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )
        if not self._warned and probes is None:
            self._warn_of_recall(bool(codes_only) and rerank is None, stacklevel=4)
        return adopt(found, call)

    def _warn_of_recall(self, codes_only: bool, stacklevel: int) -> None:
        """Once per index, if searches with default probes find less than its calibration promised."""
        found = self.calibration
        if found is None:
            return
        recall = found.recall_without_rerank if codes_only else found.recall
        if recall.value < found.target_recall:
            self._warned = True
            warnings.warn(
                f"searches of this index find {recall.value:.3f} of the {found.neighbors} nearest vectors, less than "
                f"its target recall {found.target_recall}",
                RecallWarning,
                stacklevel=stacklevel,
            )

    @operation
    def rerank(
        self, queries: Any, candidates: Any, k: int, *, context: Context | None = None
    ) -> Neighbors:
        """The best k of each query's candidates, by the distance to the vectors that the index keeps.

        Parameters
        ----------
        candidates : array [queries, n] of ids, or [n] for one vector
            From any source, such as a search by words. -1 and ids that the index does not hold are left out.
        """
        with Call("rerank", context) as call:
            rows = call.rows(queries, "queries")
            given = np.atleast_2d(candidates) if call.one_query else candidates
            found = self._index.rerank(
                queries=rows,
                candidates=_options.id_matrix(given, "candidates"),
                k=_options.count(k, "k"),
                settings=call.settings_on(self._index.device),
            )
        return adopt(found, call)

    @operation
    def calibrate(
        self,
        rows: Any = None,
        *,
        target_recall: float | None = 0.9,
        queries: int | None = 500,
        rerank: bool | None = True,
        context: Context | None = None,
        seed: int | None = None,
        progress: ProgressArgument = None,
    ) -> Calibration:
        """Sets the default probes and candidates to the cheapest that reach the target recall.

        Measured against exact search on vectors of the index, none of which counts as its own neighbor. `build`
        calls it; call it after `add`, and again when many vectors were added or removed. Warns if even all
        lists do not reach the target; the probes are then those that find the same share of what all lists
        find.

        Parameters
        ----------
        rows : array [rows, dim], optional
            The vectors by id, to compare with. Default: the vectors that the index keeps.
        target_recall : float
            Share of the 10 nearest vectors among the first 10 results. The lower end of its 95 % interval must reach it
            where possible, so that it holds for vectors outside the sample.
        queries : int
            Size of the sample. The error of the recall is about 0.3 / sqrt(queries).
        rerank : bool
            Whether searches will re-rank; if so, `candidates` is calibrated as well. False: for `codes_only`.
        context, seed, progress
            See `nearwise.Context`. The default seed is that of the training.
        """
        with Call("calibrate", context) as call:
            found = _calibration(
                self._index.calibrate(
                    rows=None if rows is None else call.rows(rows, "rows"),
                    target_recall=_options.target_recall(target_recall),
                    queries=_options.count(queries, "queries"),
                    rerank=_options.flag(rerank, "rerank"),
                    settings=call.settings_on(self._index.device),
                    progress=call.report,
                )
            )
        self._warn_if_missed(stacklevel=4)
        return found

    @operation
    def save(self, path: Path) -> None:
        """Saves the index in a .nw file, atomically, with `provenance` and calibration; `nearwise.load` opens it."""
        self._index.save(path=os.fspath(path))

    @operation
    def list_size(self, list: int) -> int:
        """The number of vectors in one list."""
        return self._index.list_size(list=_options.whole(list, "list"))

    @property
    def size(self) -> int:
        """The number of vectors."""
        return self._index.size

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self._index.dim

    @property
    def lists(self) -> int:
        """The number of lists."""
        return self._index.lists

    @property
    def code_bytes(self) -> int:
        """Bytes of a code, or of a vector of an `IvfFlat`; each has 8 more for its id, and `vector_bytes`."""
        return self._index.code_bytes

    @property
    def vector_bytes(self) -> int:
        """Bytes kept per vector beside its code, for re-ranking and `get`."""
        return self._index.vector_bytes

    @property
    def vectors(self) -> Vectors:
        """What the index keeps of the vectors: "keep", "f16", "u8" or "none"."""
        return cast("Vectors", self._index.vectors)

    @property
    def keeps_vectors(self) -> bool:
        """Whether the index holds the vectors exactly as they were added."""
        return self._index.keeps_vectors

    @property
    def metric(self) -> Metric:
        """The metric of all searches."""
        return cast("Metric", self._index.metric)

    @property
    def centroids(self) -> npt.NDArray[np.float32]:
        """The centroids of the lists, [lists, dim], read-only."""
        return self._index.centroids

    @property
    def probes(self) -> int:
        """The default number of lists to scan: calibrated, or assigned. It is saved."""
        return self._index.probes

    @probes.setter
    @operation
    def probes(self, probes: int) -> None:
        self._index.probes = _options.count(probes, "probes")

    @property
    def candidates(self) -> int:
        """The default number of vectors to re-rank, for k up to 10."""
        return self._index.candidates

    @property
    def provenance(self) -> dict[str, str]:
        """Free text, saved with the index; "version", "training" and "seed" are set by the training. Assignable."""
        return self._index.provenance

    @provenance.setter
    @operation
    def provenance(self, provenance: Mapping[str, str]) -> None:
        self._index.provenance = _options.texts(provenance, "provenance")

    @property
    def calibration(self) -> Calibration | None:
        """The last calibration; None before the first one, or after `probes` was assigned.

        It does not follow later changes of the index: compare its `rows` with `size`.
        """
        fields = self._index.calibration
        return None if fields is None else _calibration(fields)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        place = "" if self._index.device == "cpu" else f", {self._index.device}"
        return (
            f"<nearwise.{type(self).__name__}: {self.size} vectors of {self.dim} elements in {self.lists} lists, "
            f"{self.code_bytes} bytes each, {self.metric}{place}>"
        )


def _calibration(fields: Any) -> Calibration:
    probes, candidates, recall, without_rerank, *others = fields
    return Calibration(probes, candidates, RecallEstimate(*recall), RecallEstimate(*without_rerank), *others)


# Users see them as nearwise.Ivf and so on.
for _class in (Ivf, Calibration, RecallWarning):
    _class.__module__ = "nearwise"
