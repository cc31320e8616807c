"""Columns of Arrow as matrices of vectors, in place. Imported only for objects of pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_ELEMENTS = (pa.float16(), pa.float32(), pa.float64(), pa.uint8(), pa.int8())


def vectors_of(column: Any, name: str, first_row: int = 0) -> npt.NDArray[Any]:
    """The lists of a column as an array [rows, dim] over the column's own memory.

    column: an Array of fixed-size lists, of lists of one length or of 1-D tensors, or a ChunkedArray of them, which is
    copied if it has several chunks. first_row: number of its first row in messages.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage  # of tensors
    kind = column.type
    if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        raise ValueError(f"{name}: expected a column of lists of numbers, got {kind}")
    if kind.value_type not in _ELEMENTS:
        accepted = ", ".join(map(str, _ELEMENTS))
        raise ValueError(f"{name}: expected lists of {accepted}, got {kind}")
    _refuse_null(column, name, first_row, 1)
    dim = _dimension(column, name, first_row)
    values = column.flatten()
    _refuse_null(values, name, first_row, dim)
    return np.asarray(values.to_numpy(zero_copy_only=True)).reshape(len(column), dim)


def array_of(values: Any, name: str) -> npt.NDArray[Any]:
    """A column of vectors as `vectors_of`; columns of numbers and tables as numpy takes them."""
    kind = getattr(values, "type", None)
    if isinstance(kind, pa.ExtensionType) or (kind is not None and pa.types.is_nested(kind)):
        return vectors_of(values, name)
    return np.asarray(values)


def _refuse_null(array: Any, name: str, first_row: int, elements: int) -> None:
    """elements: of the array for each row."""
    if array.null_count:
        row = first_row + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))) // elements
        raise ValueError(f"{name}: row {row} holds a null")


def _dimension(column: Any, name: str, first_row: int) -> int:
    if pa.types.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    lengths = np.diff(column.offsets.to_numpy())
    if len(lengths) == 0:
        return 0
    different = np.flatnonzero(lengths != lengths[0])
    if len(different):
        row = different[0]
        raise ValueError(
            f"{name}: row {first_row + row} has {lengths[row]} elements, row {first_row} has {lengths[0]}: "
            "lists of one length expected"
        )
    return int(lengths[0])
