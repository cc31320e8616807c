"""Selection of the best values of every row."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, Settings, operation
from nearwise._device_array import DeviceArray
from nearwise._rows import Array, as_array, require_in_place


class Selection(NamedTuple):
    """The best values of every row, best first, the lower id first in a tie.

    ids : int64 [rows, k]
        Column numbers, or the caller's ids; -1 where `pad` filled a row.
    values : float32 [rows, k]
    """

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


@operation
def select_k(
    values: Any,
    k: int,
    *,
    largest: bool | None = False,
    ids: Any = None,
    pad: bool | None = False,
    **settings: Unpack[Settings],
) -> Selection:
    """The k smallest (or largest) values of every row, and their ids.

    Best first, the lower id first in a tie; -0 and +0 tie; infinities are ordinary values. NaNs come last, ordered
    by id, if a row has fewer than k numbers. The result is the same, bit for bit, on every instruction set and
    with any number of threads.

    Parameters
    ----------
    values : array [rows, columns]
        float32, in C order, in host memory or on a CUDA device as in `nearwise.knn`; gaps between rows are fine
        (`x[::2]`, `x[:, :64]`). It is read in place and never copied: other types and layouts are refused.
    k : int
        At least 1, and at most the number of columns unless `pad`.
    largest : bool
        Select the largest values instead, largest first.
    ids : array [rows, columns], [1, columns] or [columns], optional
        int64 or uint32: what to return, and to order ties by, in place of column numbers. One row applies to all rows.
        In host memory or on the same device as the values.
    pad : bool
        If k exceeds the number of columns, end each row in id -1 and +inf (-inf if `largest`) instead of
        raising ValueError.
    context, device, threads, memory_limit, isa, progress
        See `nearwise.Context`; progress counts values.

    Returns
    -------
    Selection
        A named tuple of ids, int64 [rows, k], and values, float32 [rows, k]: numpy arrays.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> values = np.array([[3, 1, 2, 1]], dtype=np.float32)
    >>> ids, best = nearwise.select_k(values, 3)
    >>> ids
    array([[1, 3, 2]])
    >>> best
    array([[1., 1., 2.]], dtype=float32)

    >>> nearwise.select_k(values, 1, largest=True, ids=np.array([40, 30, 20, 10])).ids
    array([[40]])
    """
    array, column_ids = _values(values), _ids(ids)
    call = Call("select_k", settings)
    call.place(array)
    call.place(column_ids)
    given = {"values": _core.Rows(array=array, type="f32", name="values"), "ids": column_ids}
    found = call.run(_core.select_k, given, k=k, largest=largest, pad=pad)
    return Selection(found[0].view(np.int64), found[1])


def _values(values: Any) -> Array | DeviceArray:
    array = as_array(values, "values")
    if array.dtype != "float32":
        raise ValueError(f"values: expected dtype float32, got {array.dtype}; convert it first")
    if array.ndim != 2:
        hint = "; for one row pass values[None, :]" if array.ndim == 1 else ""
        raise ValueError(f"values: expected a 2-D array [rows, columns], got shape {array.shape}{hint}")
    require_in_place(array, "values")
    return array


def _ids(ids: Any) -> Array | DeviceArray | None:
    if ids is None:
        return None
    array = as_array(ids, "ids")
    if array.dtype != "int64" and array.dtype != "uint32":
        raise ValueError(f"ids: expected dtype int64 or uint32, got {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"ids: expected an array [rows, columns] or [columns], got shape {array.shape}")
    require_in_place(array, "ids")
    return array
