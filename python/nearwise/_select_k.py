"""Selection of the best values of every row."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._device_array import DeviceArray
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_array, device_for, require_in_place


class Selection(NamedTuple):
    """The best values of every row, best first, the lower id first in a tie.

    ids : int64 [rows, k]
        Column numbers, or the caller's ids; -1 where `short_rows="pad"` filled a row.
    values : float32 [rows, k]
    """

    ids: npt.NDArray[np.int64]
    values: npt.NDArray[np.float32]


def select_k(
    values: Any,
    k: int,
    *,
    largest: bool = False,
    ids: Any = None,
    short_rows: Literal["refuse", "pad"] = "refuse",
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> Selection:
    """The k smallest (or largest) values of every row, and their ids.

    Best first, the lower id first in a tie; -0 and +0 tie; infinities are ordinary values. NaNs come last, ordered
    by id, where a row has fewer than k numbers. The answer is the same, bit for bit, on every instruction set and
    with any number of threads.

    Parameters
    ----------
    values : array [rows, columns]
        float32, in C order, in host memory or on a CUDA device as in `nearwise.knn`; gaps between rows are fine
        (`x[::2]`, `x[:, :64]`). It is read where it lies and never copied: other types and layouts are refused.
    k : int
        At least 1, and at most the number of columns unless `short_rows="pad"`.
    largest : bool
        Select the largest values instead, largest first.
    ids : array [rows, columns], [1, columns] or [columns], optional
        int64 or uint32: what to return, and to order ties by, in place of column numbers. One row serves all rows.
        In host memory or on the same device as the values.
    short_rows : {"refuse", "pad"}
        What to do if k exceeds the number of columns: "pad" ends each row in id -1 and +inf (-inf if `largest`).
    device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; progress counts values.

    Returns
    -------
    Selection
        A named tuple of ids, int64 [rows, k], and values, float32 [rows, k]: numpy arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> values = np.array([[3, 1, 2, 1]], dtype=np.float32)
    >>> ids, best = nearwise.select_k(values, 3)
    >>> ids
    array([[1, 3, 2]])
    >>> best
    array([[1., 1., 2.]], dtype=float32)

    >>> nearwise.select_k(values, 1, largest=True, ids=np.array([40, 30, 20, 10])).ids
    array([[40]])
    """
    is_largest = _options.flag(largest, "largest")
    array = _values(values)
    columns_ids = _ids(ids)
    with reporting(progress, "select_k") as report:
        found = _core.select_k(
            array,
            columns_ids,
            _options.neighbor_count(k),
            is_largest,
            _options.word(short_rows, "short_rows"),
            device_for(device, array, columns_ids),
            _options.thread_count(threads),
            _options.byte_count(memory_limit, "memory_limit"),
            _options.word(isa, "isa"),
            report,
        )
    # C++'s 64-bit integers arrive as C's `long long`, which numpy shows as a type of its own.
    return Selection(found[0].view(np.int64), found[1])


def _values(values: Any) -> Union[np.ndarray, DeviceArray]:
    array = as_array(values, "values")
    if array.dtype != "float32":
        raise ValueError(f"values: expected dtype float32, given {array.dtype}; convert it first")
    if array.ndim != 2:
        hint = "; for one row pass values[None, :]" if array.ndim == 1 else ""
        raise ValueError(f"values: expected a 2-D array [rows, columns], given shape {array.shape}{hint}")
    require_in_place(array, "values")
    return array


def _ids(ids: Any) -> Union[None, np.ndarray, DeviceArray]:
    if ids is None:
        return None
    array = as_array(ids, "ids")
    if array.dtype != "int64" and array.dtype != "uint32":
        raise ValueError(f"ids: expected dtype int64 or uint32, given {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"ids: expected an array [rows, columns] or [columns], given shape {array.shape}")
    require_in_place(array, "ids")
    return array
