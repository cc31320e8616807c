"""Arrays as the library takes them: vectors of one of five element types, without a copy where possible.

Arrays on a CUDA device are used in place or refused: only the library that owns them can copy them there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._device_array import DeviceArray, device_row, from_device
from nearwise._error import Error
from nearwise._log import logger

# Large arrays are converted in pieces, so that Ctrl-C takes effect in between.
_ELEMENTS_AT_ONCE = 1 << 20

_TYPES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16", np.dtype(np.uint8): "u8", np.dtype(np.int8): "i8"}

_ACCEPTED = (
    "accepted are float32, float16, bfloat16 (ml_dtypes), uint8 and int8, "
    "float64 (rounded to float32) and other integers that float32 holds exactly"
)

# By kinds of numpy's types.
_HINTS = {
    **dict.fromkeys("US", "; texts become vectors by an encoder first"),
    "b": "; astype(np.uint8) makes numbers of it",
}

_DEVICE_TYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "uint8": "u8", "int8": "i8"}

_HOST_DEVICES = (1, 3)  # DLPack's numbers for host memory, plain and page-locked


Array: TypeAlias = npt.NDArray[Any]


class Rows(NamedTuple):
    array: Array | DeviceArray  # 2-D, native, aligned, elements of a row adjacent; bfloat16 as uint16
    type: str  # the C++ element type's name
    copied_bytes: int  # 0: the caller's own memory

    def bound(self, name: str) -> _core.Rows:
        """For C++; `name` is that of the argument."""
        return _core.Rows(array=self.array, type=self.type, name=name)


def as_rows(values: Any, name: str, memory_limit: int = 0) -> Rows:
    """The argument `name` as vectors; a conversion that alone exceeds memory_limit (0: none) is refused."""
    return rows_of(as_array(values, name), name, memory_limit)


def rows_of(array: Array | DeviceArray, name: str, memory_limit: int = 0) -> Rows:
    """As `as_rows`, of an array from `as_array`."""
    if isinstance(array, DeviceArray):
        return _device_rows(array, name)
    usual = _TYPES.get(array.dtype)
    if usual is not None and array.ndim == 2 and usable_in_place(array):
        return Rows(array, usual, 0)  # the common case
    dtype = array.dtype.newbyteorder("=") if array.dtype.kind in "fiu" else array.dtype
    target: np.dtype[Any]
    if _is_bfloat16(dtype):
        kind, target = "bf16", np.dtype(np.uint16)
        _require_two_dimensional(array, name)
        array = array.view(target)
    elif dtype in _TYPES:
        kind, target = _TYPES[dtype], dtype
    elif dtype == np.float64 or dtype.kind in "iu":
        kind, target = "f32", np.dtype(np.float32)
    else:
        raise ValueError(f"{name}: dtype {array.dtype} is not accepted; {_ACCEPTED}{_HINTS.get(dtype.kind, '')}")
    _require_two_dimensional(array, name)
    if array.dtype == target and usable_in_place(array):
        return Rows(array, kind, 0)
    copied_bytes = array.size * target.itemsize
    if memory_limit and copied_bytes >= memory_limit:
        raise Error(
            f"{name}: a converted copy of {array.dtype} {array.shape} takes {copied_bytes} bytes: "
            f"the memory limit of {memory_limit} B is too small, the copy alone needs at least {copied_bytes + 1} B; "
            f"pass an array that needs no copy (C order, {_shown(kind)})",
            "out_of_memory",
        )
    logger.debug("%s: a copy of %s %s of %d bytes", name, array.dtype, array.shape, copied_bytes)
    return Rows(_converted(array, target, name), kind, copied_bytes)


def one_row(vector: Array | DeviceArray) -> Array | DeviceArray:
    """A 1-D array from `as_array` as a matrix [1, dim], in place."""
    return device_row(vector) if isinstance(vector, DeviceArray) else vector[None, :]


def portable(array: Array, type: str) -> Array:
    """The array of a `Rows` for another process, in an element type that `as_rows` accepts."""
    return array.view(BFLOAT16_BITS) if type == "bf16" else array


def as_array(values: Any, name: str) -> Array | DeviceArray:
    if type(values) is np.ndarray:
        return _stacked(values, name) if values.dtype.hasobject else values  # the common case
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.is_masked(values):
            raise ValueError(f"{name}: a masked array with masked elements is not accepted; fill or drop them")
        return values.data
    if isinstance(values, np.ndarray):
        return values.view(np.ndarray)
    column = _arrow_column(values)
    if column is not None:
        from nearwise._arrow_rows import array_of

        return array_of(column, name)
    _refuse_no_array(values, name)
    on_device = from_device(values, name)
    if on_device is not None:
        return on_device
    if hasattr(values, "__dlpack__") and hasattr(values, "__dlpack_device__"):
        return _from_dlpack(values, name)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        reason = _different_lengths(values) or error
        raise ValueError(f"{name}: {type(values).__name__} does not convert to an array: {reason}") from error
    return _stacked(array, name) if array.dtype.hasobject else array


def _arrow_column(values: Any) -> Any:
    """Arrow's array of a value that is one, or a column of pandas that holds one; None for others."""
    package = type(values).__module__.partition(".")[0]
    if package == "pyarrow":
        return values
    if package == "pandas" and type(getattr(values, "dtype", None)).__name__ == "ArrowDtype":
        return getattr(values, "array", values).__arrow_array__()
    return None


def _refuse_no_array(values: Any, name: str) -> None:
    """Words for what people pass instead of an array of vectors."""
    if values is None:
        raise ValueError(f"{name}: expected an array of vectors [rows, dim], got None")
    if isinstance(values, (str, bytes, os.PathLike)):
        path = os.fspath(values)
        raise ValueError(
            f"{name}: expected an array, got the text {path!r}; if it is the path of a file of vectors, "
            f"nearwise.read_vectors({path!r}) maps it"
        )
    if isinstance(values, (dict, set, frozenset)):
        raise ValueError(f"{name}: expected an array of vectors [rows, dim], got a {type(values).__name__}")
    if isinstance(values, Iterator):
        raise ValueError(
            f"{name}: expected an array of vectors [rows, dim], got a {type(values).__name__}; "
            f"np.stack(list({name})) makes one"
        )
    if hasattr(values, "nnz") and hasattr(values, "shape") and not hasattr(values, "__array__"):
        method = next((each for each in ("toarray", "todense") if hasattr(values, each)), "toarray")
        raise ValueError(
            f"{name}: a sparse matrix ({type(values).__name__} of shape {tuple(values.shape)}) is not accepted; "
            f"{name}.{method}() makes an array of it"
        )


def _different_lengths(values: Any) -> str | None:
    """Where a sequence of sequences does not make a matrix."""
    if not isinstance(values, (list, tuple)) or not all(hasattr(each, "__len__") for each in values):
        return None
    lengths = [len(each) for each in values]
    row = next((row for row, length in enumerate(lengths) if length != lengths[0]), None)
    if row is None:
        return None
    return f"row {row} has {lengths[row]} elements, row 0 has {lengths[0]}: vectors of one length expected"


def _stacked(array: Array, name: str) -> Array:
    """The vectors of a 1-D array of arrays or sequences, such as a column of pandas, as one array [rows, dim].

    Anything else, such as an array of Python's numbers, is returned as it is.
    """
    if array.ndim != 1 or array.dtype != object:
        return array
    vectors = [np.asarray(each) for each in array]
    if not vectors or vectors[0].ndim != 1:
        return array
    for row, vector in enumerate(vectors):
        if vector.shape != vectors[0].shape:
            found = f"has {vector.size} elements" if vector.ndim == 1 else f"holds {array[row]!r}"
            raise ValueError(
                f"{name}: row {row} {found}, row 0 has {vectors[0].size}: vectors of one length expected"
            )
    return np.stack(vectors)


def _from_dlpack(tensor: Any, name: str) -> Array:
    device = int(tensor.__dlpack_device__()[0])
    if device not in _HOST_DEVICES:
        raise ValueError(
            f"{name}: the {type(tensor).__name__} is neither in host memory nor on a CUDA device "
            f"(DLPack device type {device}); move it to the CPU first"
        )
    try:
        # From the capsule, not the tensor, so that the exporter's own error reaches the user.
        array, is_bfloat16 = _core.view_dlpack(tensor=tensor.__dlpack__(), name=name)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ValueError(f"{name}: {type(tensor).__name__} cannot be used in place: {error}") from error
    return array.view(BFLOAT16_BITS) if is_bfloat16 else array


# bfloat16 without ml_dtypes: the name of the only field identifies it.
BFLOAT16_BITS = np.dtype([("bfloat16", np.uint16)])


def _is_bfloat16(dtype: np.dtype[Any]) -> bool:
    return dtype == BFLOAT16_BITS or (dtype.name == "bfloat16" and dtype.itemsize == 2)


def _device_rows(array: DeviceArray, name: str) -> Rows:
    kind = _DEVICE_TYPES.get(array.dtype)
    if kind is None:
        raise ValueError(
            f"{name}: dtype {array.dtype} on {array.device} is not accepted; "
            f"convert it there to one of {', '.join(_DEVICE_TYPES)}"
        )
    _require_two_dimensional(array, name)
    require_in_place(array, name)
    return Rows(array, kind, 0)


def require_in_place(array: Array | DeviceArray, name: str) -> None:
    if not usable_in_place(array):
        hint = "; np.ascontiguousarray makes a copy that is accepted"
        if isinstance(array, DeviceArray):
            hint = f" on {array.device}; a contiguous copy is accepted"
        raise ValueError(
            f"{name}: the elements of a row must be adjacent and rows aligned and disjoint, got strides "
            f"{array.strides} of shape {array.shape}{hint}"
        )


def _require_two_dimensional(array: Array | DeviceArray, name: str) -> None:
    if array.ndim == 2:
        return
    hint = f"; for one vector pass {name}[None, :]" if array.ndim == 1 else ""
    if array.shape[:1] == (0,):
        hint = "; it is empty"
    expected = "a 2-D array [rows, dim]" + (" or one vector [dim]" if name == "queries" else "")
    raise ValueError(f"{name}: expected {expected}, got {array.ndim}-D of shape {array.shape}{hint}")


def usable_in_place(array: Array | DeviceArray) -> bool:
    if isinstance(array, np.ndarray) and (flags := array.flags).c_contiguous and flags.aligned:
        return True  # the common case
    # A 1-D array is one row.
    rows, dim = (1, *array.shape)[-2:]
    if isinstance(array, DeviceArray):
        aligned, empty_fits = array.address % array.itemsize == 0, True
    else:
        aligned, empty_fits = array.flags.aligned, array.flags.c_contiguous
    if not aligned or 0 in array.shape:
        return aligned and empty_fits
    adjacent = dim == 1 or array.strides[-1] == array.itemsize
    # Overlapping or repeated rows (broadcasts, sliding windows) and reversed ones are not used in place.
    apart = rows == 1 or array.strides[0] >= dim * array.itemsize
    return adjacent and apart


def copied(array: Array, dtype: npt.DTypeLike) -> Array:
    """As `np.array(array, dtype, order="C")`."""
    if array.ndim == 0 or array.size <= _ELEMENTS_AT_ONCE:
        return np.array(array, dtype=dtype, order="C")
    result = np.empty(array.shape, dtype)
    step = max(1, _ELEMENTS_AT_ONCE * array.shape[0] // array.size)
    for first in range(0, array.shape[0], step):
        result[first : first + step] = array[first : first + step]
    return result


def contiguous(array: Array, dtype: npt.DTypeLike) -> Array:
    """As `np.ascontiguousarray(array, dtype)`: the array itself where that will do."""
    if array.ndim != 0 and array.dtype == dtype and array.flags.c_contiguous:
        return array
    return copied(np.atleast_1d(array), dtype)


def _converted(array: Array, target: np.dtype[Any], name: str) -> Array:
    try:
        result = np.empty(array.shape, target)
    except MemoryError as error:
        raise Error(f"{name}: {error}", "out_of_memory") from None
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


def _require_exact(part: Array, first: int, name: str) -> None:
    """Integers are converted to float32 only if that is exact: 24 significant bits."""
    if part.size == 0 or (part.min() >= -(1 << 24) and part.max() <= (1 << 24)):
        return
    native = part.astype(part.dtype.newbyteorder("="))
    # The magnitude of the lowest number is correct as an unsigned one.
    magnitude = np.where(native < 0, np.negative(native.astype(np.uint64)), native.astype(np.uint64))
    lowest_bit = magnitude & (~magnitude + np.uint64(1))
    inexact = magnitude // np.maximum(lowest_bit, np.uint64(1)) >= np.uint64(1 << 24)
    if inexact.any():
        row, column = np.argwhere(inexact)[0]
        raise ValueError(
            f"{name}: row {first + row} holds {part[row, column]}, which float32 cannot hold exactly "
            f"(dtype {part.dtype}); convert the array to float32 yourself if rounding is acceptable"
        )


def _too_large(part: Array, first: int, name: str) -> ValueError:
    outside = np.isfinite(part) & (np.abs(part) > np.finfo(np.float32).max)
    # Close to the largest float32, rounding decides: then report the largest number.
    row, column = np.argwhere(outside)[0] if outside.any() else np.unravel_index(np.abs(part).argmax(), part.shape)
    return ValueError(f"{name}: row {first + row} holds {part[row, column]}, too large for float32")


def _shown(kind: str) -> str:
    return {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "u8": "uint8", "i8": "int8"}[kind]
