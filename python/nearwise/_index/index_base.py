"""What indexes that hold their vectors and can be changed share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._neighbors import Metric
from nearwise._progress import ProgressArgument
from nearwise._savable import Savable
from nearwise._suggest import RefusesSettings
from nearwise._vector_file import Path


class Index(RefusesSettings, Savable):
    """Vectors by id. `Ivf` and `GraphIndex` have the searches."""

    _index: _core.Ivf | _core.GraphIndex

    def _add(self, rows: Any, ids: Any, on_duplicate: str | None, context: Context | None) -> int:
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
        """Removes all vectors with one of these ids, and returns their number.

        Inverted files use their space again. In a `GraphIndex` they stay, and searches pass them without returning
        them, until a quarter of the vectors is removed.
        """
        with Call("remove", context) as call:
            return self._index.remove(
                ids=_options.ids(ids), settings=call.settings_on(self._index.device), progress=call.report
            )

    @operation
    def update(self, ids: Any, rows: Any, *, context: Context | None = None, progress: ProgressArgument = None) -> None:
        """Replaces the vectors with these ids, which the index must hold."""
        with Call("update", context) as call:
            self._index.update(
                ids=_options.ids(ids),
                rows=call.rows(rows, "rows"),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )

    @operation
    def ids(self) -> npt.NDArray[np.int64]:
        """The ids of all vectors, ascending."""
        return self._index.ids()

    @operation
    def get(self, ids: Any) -> npt.NDArray[np.float32]:
        """The vectors with these ids, float32 [ids, dim]. An id that the index does not hold is an error.

        They are the ones that were added, but for an inverted file without `keeps_vectors`: it returns what it kept of
        them, rounded vectors or reconstructions from their codes.
        """
        return self._index.get(ids=_options.ids(ids))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, (int, np.integer)) and 0 <= int(id) < 2**63 and self._index.contains(id=int(id))

    @operation
    def save(self, path: Path) -> None:
        """Saves the index in a .nw file, atomically, with `provenance` and calibration; `nearwise.load` opens it."""
        self._index.save(path=os.fspath(path))

    @property
    def size(self) -> int:
        """The number of vectors, without removed ones."""
        return self._index.size

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self._index.dim

    @property
    def metric(self) -> Metric:
        """The metric of all searches."""
        return cast("Metric", self._index.metric)

    @property
    def provenance(self) -> dict[str, str]:
        """Free text, saved with the index; "version", "seed" and others are set by what makes it. Assignable."""
        return self._index.provenance

    @provenance.setter
    @operation
    def provenance(self, provenance: Mapping[str, str]) -> None:
        self._index.provenance = _options.texts(provenance, "provenance")

    def __len__(self) -> int:
        return self.size
