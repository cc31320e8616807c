"""What all inverted files share."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._index import ivf_search
from nearwise._index.index_base import Index
from nearwise._progress import ProgressArgument

Vectors: TypeAlias = str  # "keep", "f16", "u8", "none" or "file:PATH"


class Ivf(ivf_search.Ivf, Index):
    """Vectors in lists around k-means centroids; a search scans the lists nearest to the query.

    `IvfFlat` stores the vectors, `IvfPq` a PQ code of each vector's residual, `IvfLsq` an additive code, which
    loses less and takes longer to make. `build` makes an index of all vectors and calibrates it. `train` makes
    an empty one, to which `add` adds vectors; then call `calibrate`. `nearwise.load` opens a saved one.

    The result of a search is defined: the lists are those whose centroids `nearwise.knn` finds, and the
    neighbors are the best vectors in them, by the distance to what the index stores. It is the same, bit for
    bit, on every instruction set, with any number of threads and whatever other queries are in the call.

    Copies (`copy.copy`, `copy.deepcopy`, pickling) are independent indexes. Any thread may call any method at any
    time. A search sees the index as it was before or after each call that changes it, never a mixture. A change
    prepares its part while searches go on, and waits for those that run before it puts it in place; changes wait for
    one another.
    """

    _knob = "index.search(queries, k, probes=..., candidates=...)"
    _context: Context
    _index: _core.Ivf

    def __init__(self, *_: Any, **__: Any) -> None:
        name = "IvfFlat" if type(self) is Ivf else type(self).__name__
        raise TypeError(
            "an index is made by build or train of IvfFlat, IvfPq or IvfLsq, or by nearwise.load: "
            f"nearwise.{name}.build(rows)"
        )

    @classmethod
    def _of(cls, index: _core.Ivf, context: Context) -> Self:
        made = object.__new__(cls)
        made._index = index
        made._context = dataclasses.replace(context, device=index.device, progress=None)
        made._warned = False
        made._checked = set()
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
        index._log_choice(f"{cls.__name__}.build")
        index._warn_if_missed(stacklevel=5)
        return index

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
        return self._add(rows, ids, on_duplicate, context)

    @operation
    def compact(self) -> None:
        """Gives the space of removed vectors back to the system."""
        self._index.compact()

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
    def to(self, device: str, *, isa: str | None = None) -> Self:
        """Moves searches and changes to a device, and keeps a copy of the lists there. Returns the index itself.

        Searches on a CUDA device then copy queries to it and answers back, and nothing that grows with the lists. A
        change drops the copy, and the next search makes another. `device_bytes` tells what the copy takes, within the
        memory_limit of the index. If the kept vectors do not fit, candidates are re-ranked on the host; if the lists
        do not fit, it is an error. Searches with `rerank`, `filter` or `exclude` for all queries read the lists on the
        host, as do all if the lists have grown too large.

        `to("cpu")` frees the copies. Files, copies of the index and pickles hold none. `isa` is kept between CUDA
        devices and on the CPU, unless given; otherwise it is the default. Call it while no other thread uses the index.
        """
        if isa is None and _options.word(device, "device").startswith("cuda") == self._index.device.startswith("cuda"):
            isa = self._context.isa
        context = dataclasses.replace(self._context, device=device, isa=isa, progress=None)
        Call("Ivf.to", context).run(self._move)
        self._context = dataclasses.replace(context, device=self._index.device)
        return self

    def _move(self, *, settings: _core.Settings, progress: object) -> None:
        self._index.to(settings=settings)

    @property
    def device(self) -> str:
        """Where searches and changes run: "cpu", "cuda:0", ..."""
        return self._index.device

    @property
    def device_bytes(self) -> int:
        """Bytes of the copy of the lists on the device (`to`). 0: none; searches there copy the lists they probe."""
        return self._index.device_bytes

    @operation
    def list_size(self, list: int) -> int:
        """The number of vectors in one list."""
        return self._index.list_size(list=_options.whole(list, "list"))

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
        """Bytes kept per vector in addition to its code, for re-ranking and `get`."""
        return self._index.vector_bytes

    @property
    def vectors(self) -> Vectors:
        """What the index keeps of the vectors: "keep", "f16", "u8", "none" or "file:PATH"."""
        storage = self._index.vectors
        return f"file:{self._index.vector_file}" if storage == "file" else storage

    @property
    def keeps_vectors(self) -> bool:
        """Whether the index holds the vectors exactly as they were added."""
        return self._index.keeps_vectors

    @property
    def centroids(self) -> npt.NDArray[np.float32]:
        """The centroids of the lists, [lists, dim], read-only."""
        return self._index.centroids

    def __repr__(self) -> str:
        place = "" if self._index.device == "cpu" else f", {self._index.device}"
        return (
            f"<nearwise.{type(self).__name__}: {self.size} vectors of {self.dim} elements in {self.lists} lists, "
            f"{self.code_bytes} bytes each, {self.metric}{place}>"
        )
