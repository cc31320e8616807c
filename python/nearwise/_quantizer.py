"""What all quantizers share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, CallSettings, Context, operation
from nearwise._rows import as_array
from nearwise._savable import Savable
from nearwise._vector_file import Path

TableMetric = Literal["sqeuclidean", "inner_product"]
TableMetricArgument = TableMetric | Literal["l2", "l2sq", "ip", "dot"]


class Quantizer(Savable):
    """Encodes vectors as codes of a few bytes. Trained once and not changed afterwards; threads may share it."""

    _bound: Any  # the C++ object
    _context: Context

    @classmethod
    def _of(cls, bound: Any, context: Context) -> Self:
        made = object.__new__(cls)
        made._bound = bound
        made._context = context.remembered()
        return made

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return int(self._bound.dim)

    @property
    def code_bytes(self) -> int:
        """Bytes of a code."""
        return int(self._bound.code_bytes)

    @operation
    def decode(self, codes: Any, **settings: Unpack[CallSettings]) -> npt.NDArray[np.float32]:
        """The reconstructions of codes, float32 [codes, dim]."""
        call = Call("decode", settings)
        rows: npt.NDArray[np.float32] = call.run(self._bound.decode, {"codes": as_codes(call, codes)})
        return rows

    @operation
    def save(self, path: Path, *, provenance: Mapping[str, str] | None = None) -> None:
        """Saves the quantizer in a .nw file, atomically; `nearwise.load` reads it."""
        self._bound.save(path=os.fspath(path), provenance=_options.texts(provenance, "provenance"))


def as_codes(call: Call, codes: Any) -> _core.Rows:
    given = as_array(codes, "codes")
    if given.dtype != "uint8":
        raise ValueError(f"codes: expected dtype uint8, got {given.dtype}")
    return call.rows(given, "codes")
