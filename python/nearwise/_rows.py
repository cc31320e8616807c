"""Arrays as the library takes them: rows of one of five element types, without a copy where that is possible."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nearwise import _core
from nearwise._error import Error

# Converted piece by piece, so that Ctrl-C is answered in the middle of a large conversion.
_ELEMENTS_AT_ONCE = 1 << 20

_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8"}

_ACCEPTED = (
    "accepted are float32, float16, bfloat16 (ml_dtypes), uint8 and int8, "
    "float64 (rounded to float32) and other integers that float32 holds exactly"
)

_HOST_DEVICES = (1, 3)  # DLPack's numbers for host memory, plain and page-locked


class Rows(NamedTuple):
    array: np.ndarray  # 2-D, native, aligned, elements of a row adjacent; bfloat16 as uint16
    type: str  # the C++ element type's name
    copied_bytes: int  # 0: the caller's own memory


def as_rows(values: Any, name: str, memory_limit: int = 0) -> Rows:
    """The argument `name` as rows; a conversion that alone exceeds memory_limit (0: none) is refused."""
    array = as_array(values, name)
    if array.dtype in _TYPES and array.ndim == 2 and usable_in_place(array):
        return Rows(array, _TYPES[array.dtype], 0)  # the usual case
    dtype = array.dtype.newbyteorder("=") if array.dtype.kind in "fiu" else array.dtype
    target: np.dtype[Any]
    if _is_bfloat16(dtype):
        kind, target = "bf16", np.dtype(np.uint16)
        array = _two_dimensional(array, name).view(target)
    elif dtype in _TYPES:
        kind, target = _TYPES[dtype], dtype
    elif dtype == np.float64 or dtype.kind in "iu":
        kind, target = "f32", np.dtype(np.float32)
    else:
        raise ValueError(f"{name}: dtype {array.dtype} is not accepted; {_ACCEPTED}")
    array = _two_dimensional(array, name)
    if array.dtype == target and usable_in_place(array):
        return Rows(array, kind, 0)
    copied_bytes = array.size * target.itemsize
    if memory_limit and copied_bytes >= memory_limit:
        raise Error(
            f"{name}: a converted copy of {array.dtype} {array.shape} takes {copied_bytes} bytes, "
            f"memory_limit is {memory_limit}; pass rows that need no copy (C order, {_shown(kind)})",
            "out_of_memory",
        )
    return Rows(_converted(array, target, name), kind, copied_bytes)


def rest_of_limit(memory_limit: int, operation: str, *given: Rows) -> int:
    """What converted copies leave of memory_limit (0: none) to C++."""
    copied_bytes = sum(rows.copied_bytes for rows in given)
    if memory_limit and copied_bytes >= memory_limit:
        raise Error(
            f"{operation}: the converted copies take {copied_bytes} bytes, memory_limit is {memory_limit}",
            "out_of_memory",
        )
    return memory_limit and memory_limit - copied_bytes


def as_array(values: Any, name: str) -> np.ndarray:
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name}: a masked array with masked elements is not accepted; fill or drop them")
        return values.data
    if isinstance(values, np.ndarray):
        return values.view(np.ndarray)
    if hasattr(values, "__dlpack__") and hasattr(values, "__dlpack_device__"):
        return _from_dlpack(values, name)
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {type(values).__name__} does not convert to an array: {error}") from error


def _from_dlpack(tensor: Any, name: str) -> np.ndarray:
    device = int(tensor.__dlpack_device__()[0])
    if device not in _HOST_DEVICES:
        raise ValueError(
            f"{name}: the {type(tensor).__name__} is not in host memory (DLPack device type {device}); "
            "move it to the CPU first"
        )
    try:
        # The capsule and not the tensor: what the exporter has to say then reaches the user.
        array, is_bfloat16 = _core.view_dlpack(tensor.__dlpack__(), name)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: {type(tensor).__name__} cannot be used in place: {error}") from error
    return array.view(_Bfloat16Bits) if is_bfloat16 else array


# Stands for bfloat16 where ml_dtypes may not be installed: the one field's name says what the bits mean.
_Bfloat16Bits = np.dtype([("bfloat16", np.uint16)])


def _is_bfloat16(dtype: np.dtype) -> bool:
    return dtype == _Bfloat16Bits or (dtype.name == "bfloat16" and dtype.itemsize == 2)


def _two_dimensional(array: np.ndarray, name: str) -> np.ndarray:
    if array.ndim == 2:
        return array
    # What people mean by a single vector: one query, or one row of the base.
    hint = f"; for one vector pass {name}[None, :]" if array.ndim == 1 else ""
    raise ValueError(f"{name}: expected a 2-D array [rows, dim], given {array.ndim}-D of shape {array.shape}{hint}")


def usable_in_place(array: np.ndarray) -> bool:
    rows, dim = array.shape
    if not array.flags.aligned:
        return False
    if array.size == 0:
        return array.flags.c_contiguous
    adjacent = dim == 1 or array.strides[1] == array.itemsize
    # Rows that overlap or repeat (broadcasts, sliding windows) or run backwards are not rows of a matrix.
    apart = rows == 1 or array.strides[0] >= dim * array.itemsize
    return adjacent and apart


def _converted(array: np.ndarray, target: np.dtype, name: str) -> np.ndarray:
    result = np.empty(array.shape, target)
    step = max(1, _ELEMENTS_AT_ONCE // max(1, array.shape[1]))
    for first in range(0, array.shape[0], step):
        part = array[first : first + step]
        if target == np.float32 and array.dtype.kind in "iu":
            _require_exact(part, first, name)
        try:
            with np.errstate(over="raise"):
                result[first : first + step] = part
        except FloatingPointError:
            raise _too_large(part, first, name) from None
    return result


def _require_exact(part: np.ndarray, first: int, name: str) -> None:
    """Integers become float32 only where that loses nothing: 24 significant bits."""
    if part.size == 0 or (part.min() >= -(1 << 24) and part.max() <= (1 << 24)):
        return
    native = part.astype(part.dtype.newbyteorder("="))
    # Two's complement: the magnitude of the lowest number is right again as an unsigned one.
    magnitude = np.where(native < 0, np.negative(native.astype(np.uint64)), native.astype(np.uint64))
    lowest_bit = magnitude & (~magnitude + np.uint64(1))
    inexact = magnitude // np.maximum(lowest_bit, np.uint64(1)) >= np.uint64(1 << 24)
    if inexact.any():
        row, column = np.argwhere(inexact)[0]
        raise ValueError(
            f"{name}: row {first + row} holds {part[row, column]}, which float32 cannot hold exactly "
            f"(dtype {part.dtype}); convert the array to float32 yourself if rounding is acceptable"
        )


def _too_large(part: np.ndarray, first: int, name: str) -> ValueError:
    outside = np.isfinite(part) & (np.abs(part) > np.finfo(np.float32).max)
    # Rounding decides at the very edge; then the largest number is the one.
    row, column = np.argwhere(outside)[0] if outside.any() else np.unravel_index(np.abs(part).argmax(), part.shape)
    return ValueError(f"{name}: row {first + row} holds {part[row, column]}, too large for float32")


def _shown(kind: str) -> str:
    return {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "i8": "int8"}[kind]
