"""Exact search."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

from nearwise import _core, _options
from nearwise._neighbors import Neighbors, adopt
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit

Metric = Literal["sqeuclidean", "euclidean", "inner_product", "cosine"]


def knn(
    queries: Any,
    base: Any,
    k: int,
    *,
    metric: Metric = "sqeuclidean",
    short_rows: Literal["refuse", "pad"] = "refuse",
    exclude_self: bool = False,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> Neighbors:
    """The k nearest rows of `base` for every row of `queries`, exactly.

    The answer is the same, bit for bit, on every device and instruction set, with any number of threads. Ctrl-C stops it
    and raises KeyboardInterrupt. Other Python threads run meanwhile; do not let them write to the arrays.

    Parameters
    ----------
    queries, base : array [rows, dim]
        numpy arrays, or any object with `__dlpack__` in host memory (PyTorch, JAX), of float32, float16, bfloat16
        (an array of `ml_dtypes.bfloat16`, or a tensor), uint8 or int8; the two may differ in type.

        They are read where they lie, also memory-mapped or with gaps between rows (`x[::2]`, `x[:, :64]`). One
        copy is made of other layouts (Fortran order, steps within a row, negative steps, foreign byte order,
        unaligned or overlapping rows), of float64 (rounded to float32) and of other integers (which float32 must
        hold exactly). NaN and infinity are refused with the row's number.

        Arrays on a CUDA device (with `__dlpack__`, as those of PyTorch, CuPy and JAX, or with
        `__cuda_array_interface__`, as Numba's) are read there and never copied to the host: other types and layouts
        than the five, in C order with or without gaps between rows, are refused. What their library has queued for
        them is waited for.
    k : int
        At least 1, and at most the number of base rows unless `short_rows="pad"`.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        inner_product is returned raw, largest first. cosine is 1 - cos; a zero vector is at distance 1 of all.
    short_rows : {"refuse", "pad"}
        What to do if k exceeds the number of base rows: "pad" ends each result row in id -1 at distance +inf
        (-inf for inner_product).
    exclude_self : bool
        The queries are the base, row by row, and no row is its own neighbour (another with the same elements is).
        `exact_knn_graph` gives the same answer, often in half the time.
    device : str, optional
        Where to search: "cpu", "cuda" (the first) or "cuda:N"; by default where the arrays are. Arrays in host
        memory are accepted everywhere, and come to a CUDA device piece by piece; those on a CUDA device only there.
        `info()["devices"]` lists the devices of this build and machine.
    threads : int
        0: as many as this process may use. A forked child process searches with one.
    memory_limit : int or str
        Bytes of working memory, results and converted copies together: 2147483648, "2GiB", "500MB"; 0: no limit.
        What does not fit is refused with `Error` code out_of_memory.
    isa : str
        Caps the instruction set (a name of `info()["instruction_sets"]`); empty: the best there is. On a CUDA device
        what is multiplied: "f32" (also if empty), or "tf32" and "bf16" by tensor cores. The answer is the same.
    progress : None, True or callable
        True shows a line on stderr if the search lasts over a second. A callable gets (done, total) on this
        thread; what it raises stops the search.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k]: numpy arrays, wherever the
        queries are.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> ids, distances = nearwise.knn(base[:1], base, k=2)
    >>> ids
    array([[0, 2]])
    >>> distances
    array([[0., 1.]], dtype=float32)

    >>> nearwise.knn(base[:1], base, k=3, metric="euclidean").distances
    array([[0., 1., 5.]], dtype=float32)

    A single vector is a matrix of one row:

    >>> nearwise.knn(base[1][None, :], base, k=1).ids
    array([[1]])
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    query_rows = as_rows(queries, "queries", limit)
    base_rows = as_rows(base, "base", limit)
    rest = rest_of_limit(limit, "knn", query_rows, base_rows)
    with reporting(progress, "knn") as report:
        found = _core.knn(
            query_rows.array,
            query_rows.type,
            base_rows.array,
            base_rows.type,
            _options.neighbor_count(k),
            _options.word(metric, "metric"),
            _options.word(short_rows, "short_rows"),
            _options.flag(exclude_self, "exclude_self"),
            device_for(device, query_rows.array, base_rows.array),
            _options.thread_count(threads),
            rest,
            _options.word(isa, "isa"),
            report,
        )
    return adopt(found)


def exact_knn_graph(
    base: Any,
    k: int,
    *,
    metric: Metric = "sqeuclidean",
    short_rows: Literal["refuse", "pad"] = "refuse",
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> Neighbors:
    """The k nearest other rows of every row of `base`, exactly.

    The answer is that of `knn(base, base, k, exclude_self=True)`, bit for bit; every pair of rows is multiplied only
    once where the machine's matrix units and `memory_limit` allow it.

    Parameters
    ----------
    base : array [rows, dim]
        As in `nearwise.knn`.
    k : int
        At least 1, and at most the number of other rows unless `short_rows="pad"`.
    metric, short_rows, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; what progress counts is pairs of rows.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [rows, k], and distances, float32 [rows, k].

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0], [0, 0]], dtype=np.float32)
    >>> graph = nearwise.exact_knn_graph(base, k=2, metric="euclidean")
    >>> graph.ids
    array([[3, 2],
           [2, 0],
           [0, 3],
           [0, 2]])
    >>> graph.distances[0]
    array([0., 1.], dtype=float32)
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    rows = as_rows(base, "base", limit)
    rest = rest_of_limit(limit, "exact_knn_graph", rows)
    with reporting(progress, "exact_knn_graph") as report:
        found = _core.exact_knn_graph(
            rows.array,
            rows.type,
            _options.neighbor_count(k),
            _options.word(metric, "metric"),
            _options.word(short_rows, "short_rows"),
            device_for(device, rows.array),
            _options.thread_count(threads),
            rest,
            _options.word(isa, "isa"),
            report,
        )
    return adopt(found)
