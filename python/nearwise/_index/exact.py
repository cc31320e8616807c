"""Exact search."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Unpack, cast

from nearwise import _core, _options
from nearwise._context import Call, CallSettings, Settings, operation
from nearwise._device_array import DeviceArray
from nearwise._index.filter import as_filter
from nearwise._neighbors import Metric, MetricArgument, Neighbors, RangeNeighbors, adopt, adopt_range
from nearwise._progress import ProgressArgument
from nearwise._rows import portable
from nearwise._suggest import RefusesSettings


@operation
def knn(
    queries: Any,
    base: Any,
    k: int,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    pad: bool | None = False,
    exclude_self: bool | None = False,
    filter: Any = None,
    exclude: Any = None,
    **settings: Unpack[Settings],
) -> Neighbors:
    """The k nearest vectors of `base` for every vector of `queries`, by exact search.

    The result is the same, bit for bit, on every device and instruction set, with any number of threads. Ctrl-C
    stops the search and raises KeyboardInterrupt. Other Python threads run meanwhile; they must not write to
    the arrays.

    Parameters
    ----------
    queries, base : array [rows, dim]
        numpy arrays, or any object with `__dlpack__` in host memory (PyTorch, JAX), of float32, float16,
        bfloat16 (an array of `ml_dtypes.bfloat16`, or a tensor), uint8 or int8; the two may differ in type.

        They are read in place, also memory-mapped or with gaps between rows (`x[::2]`, `x[:, :64]`). Other
        layouts (Fortran order, steps within a row, negative steps, foreign byte order, unaligned or overlapping
        rows), float64 (rounded to float32) and other integers (float32 must hold them exactly) are copied once.
        NaN and infinity are refused with the row's number.

        Arrays on a CUDA device (with `__dlpack__`, as in PyTorch, CuPy and JAX, or with
        `__cuda_array_interface__`, as in Numba) are read there and never copied to the host: they must have one
        of the five types and C order, with or without gaps between rows. Work that their library has queued for
        them is waited for.

        Columns of Arrow and pandas that hold arrays are taken as well (docs/reference/python.md).

        Queries may be one vector [dim]: the result then has the shape [k].
    k : int
        At least 1, and at most the size of the base unless `pad`.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        inner_product is returned as it is, largest first. cosine is 1 - cos; a zero vector has distance 1 to all.
        Names of other libraries are accepted: "l2" and "l2sq" for sqeuclidean, "ip" and "dot" for inner_product,
        "cos" for cosine.
    pad : bool
        If k exceeds the size of the base, end each result row in id -1 at distance +inf (-inf for
        inner_product) instead of raising ValueError.
    exclude_self : bool
        The queries are the base, and no vector is its own neighbor (a duplicate is). `exact_knn_graph` gives the same
        result, often in half the time.
    filter, exclude : optional
        Vectors of the base that may be returned, and that may not: a boolean mask, row numbers, one sequence of row
        numbers for each query, or a `nearwise.Filter`. The result is that of a search of the allowed vectors alone;
        rows end as with `pad` where fewer than k are allowed.
    context, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k]: numpy arrays, wherever
        the queries are. [k] for one vector.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> ids, distances = nearwise.knn(base[:1], base, k=2)
    >>> ids
    array([[0, 2]])
    >>> distances
    array([[0., 1.]], dtype=float32)

    >>> nearwise.knn(base[:1], base, k=3, metric="euclidean").distances
    array([[0., 1., 5.]], dtype=float32)

    The neighbors of one vector:

    >>> nearwise.knn(base[1], base, k=2).ids
    array([1, 2])
    """
    call = Call("knn", settings)
    found = call.run(
        _core.knn,
        {"filter": as_filter(filter, exclude)},
        queries=queries,
        base=base,
        k=k,
        metric=metric,
        pad=pad,
        exclude_self=exclude_self,
    )
    return adopt(found, call)


@operation
def exact_knn_graph(
    base: Any,
    k: int,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    pad: bool | None = False,
    **settings: Unpack[Settings],
) -> Neighbors:
    """The k nearest other vectors of every vector of `base`, by exact search.

    The result is that of `knn(base, base, k, exclude_self=True)`, bit for bit; every pair is compared only once
    where the machine's matrix units and `memory_limit` allow it.

    Parameters
    ----------
    base : array [rows, dim]
        As in `nearwise.knn`.
    k : int
        At least 1, and at most the number of other vectors unless `pad`.
    metric, pad, context, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; progress counts pairs of vectors.

    Returns
    -------
    Neighbors
        A named tuple of ids, int64 [rows, k], and distances, float32 [rows, k].

    Examples
    --------
    >>> import numpy as np, nearwise
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
    return adopt(Call("exact_knn_graph", settings).run(_core.exact_knn_graph, base=base, k=k, metric=metric, pad=pad))


@operation
def range_search(
    queries: Any,
    base: Any,
    radius: float,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    filter: Any = None,
    exclude: Any = None,
    **settings: Unpack[Settings],
) -> RangeNeighbors:
    """All vectors of `base` within `radius` of each vector of `queries`, by exact search.

    Those whose reported distance is at most `radius`; for inner_product, at least. The result is the same, bit
    for bit, on every instruction set and with any number of threads.

    Parameters
    ----------
    queries, base : array [rows, dim]
        As in `nearwise.knn`.
    radius : float
        In the metric's own unit (sqeuclidean: a squared distance), rounded to float32 as distances are. Infinity is
        accepted, NaN is not.
    metric, filter, exclude, context, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; CUDA devices do not support it (`Error` code unsupported). The size of the result
        is not known in advance: `memory_limit` is checked while it grows.

    Returns
    -------
    RangeNeighbors
        A named tuple of offsets, int64 [queries + 1], ids, int64, and distances, float32. If the query was one
        vector, ids and distances are all its own.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> found = nearwise.range_search(base[:2], base, radius=1.5, metric="euclidean")
    >>> found.offsets
    array([0, 2, 3])
    >>> found.ids
    array([0, 2, 1])
    >>> ids, distances = found.of(0)
    >>> distances
    array([0., 1.], dtype=float32)
    """
    call = Call("range_search", settings)
    ready = {"filter": as_filter(filter, exclude)}
    return adopt_range(call.run(_core.range_search, ready, queries=queries, base=base, radius=radius, metric=metric))


class Exact(RefusesSettings):
    """A base prepared once for many exact searches.

    Results are those of `knn` and `range_search`, bit for bit. Worthwhile for many searches of few queries
    each: the base is converted once into the form that the machine multiplies fastest.

    The base is not copied unless it had to be converted: do not change it while this object is in use. The
    object keeps it alive. Several threads may search at the same time. `copy.copy` shares base and prepared form;
    `copy.deepcopy` and pickles copy the vectors, metric and context, and prepare them again. A base on a CUDA
    device cannot be pickled.

    Parameters
    ----------
    base : array [rows, dim]
        As in `nearwise.knn`. The prepared form takes about as much memory as uint8 and int8 vectors, half of
        float32 ones. Queries of the base's element type use it, and so do float32, float16 and bfloat16 among
        each other; for other queries the base is converted again in every search, as `knn` does it.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        Of all searches.
    context, device, threads, memory_limit, isa, progress
        See `nearwise.Context`, for the preparation and all searches; `to` prepares it on another device.
        memory_limit covers a converted copy of the base, the prepared form and one search; concurrent searches
        count separately.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> base = np.array([[0, 0], [3, 4], [1, 0]], dtype=np.float32)
    >>> prepared = nearwise.Exact(base, metric="euclidean")
    >>> prepared
    <nearwise.Exact: 3 vectors of 2 elements, euclidean>
    >>> prepared.search(base[:1], k=2).ids
    array([[0, 2]])
    >>> prepared.range_search(base[1:], radius=2).ids
    array([1, 2, 0])
    >>> len(prepared), prepared.shape, prepared.metric, prepared.device
    (3, (3, 2), 'euclidean', 'cpu')
    """

    _knob = "index.search(queries, k), which is exact and has nothing to tune"

    @operation
    def __init__(
        self, base: Any, *, metric: MetricArgument | None = "sqeuclidean", **settings: Unpack[Settings]
    ) -> None:
        call = Call("Exact", settings)
        self._base = call.array(base, "base")
        self._prepared = call.run(_core.PreparedBase, {"base": self._base.bound("base")}, metric=metric)
        # Searches count on what the converted copy of the base leaves of the limit.
        self._context = call.remaining().remembered()

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        pad: bool | None = False,
        filter: Any = None,
        exclude: Any = None,
        **settings: Unpack[CallSettings],
    ) -> Neighbors:
        """The k nearest vectors of the base for every vector of `queries`, as `nearwise.knn` finds them."""
        call = Call("Exact.search", settings)
        ready = {"filter": as_filter(filter, exclude)}
        return adopt(call.run(self._prepared.search, ready, on=self.device, queries=queries, k=k, pad=pad), call)

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        filter: Any = None,
        exclude: Any = None,
        **settings: Unpack[CallSettings],
    ) -> RangeNeighbors:
        """All vectors of the base within `radius` of each query, as `nearwise.range_search` finds them."""
        call = Call("Exact.range_search", settings)
        ready = {"filter": as_filter(filter, exclude)}
        found = call.run(self._prepared.range_search, ready, on=self.device, queries=queries, radius=radius)
        return adopt_range(found)

    @operation
    def to(self, device: str, *, isa: str | None = None, progress: ProgressArgument = None) -> Exact:
        """The same base prepared on another device, with the same metric, threads and memory_limit.

        This one stays as it is. A base in host memory can be prepared on every device, one on a CUDA device
        only there. `isa` is kept between CUDA devices and on the CPU, unless given; otherwise it is the
        default.
        """
        if isa is None and _options.word(device, "device").startswith("cuda") == self.device.startswith("cuda"):
            isa = self._context.isa
        context = dataclasses.replace(self._context, device=device, isa=isa, progress=progress)
        moved = object.__new__(Exact)
        moved._context = context.remembered()
        moved._base = self._base
        moved._prepared = Call("Exact.to", context).run(self._prepared.to)
        return moved

    def __copy__(self) -> Exact:
        copied = object.__new__(Exact)
        copied._context, copied._base, copied._prepared = self._context, self._base, self._prepared
        return copied

    def __reduce__(self) -> Any:
        array = self._base.array
        if isinstance(array, DeviceArray):
            raise TypeError(
                f"Exact: expected a base in host memory to pickle, got one on {array.device}; pickle a copy of its "
                "vectors in host memory"
            )
        made = functools.partial(Exact, metric=self.metric, context=self._context)
        return made, (portable(array, self._base.type),)

    @property
    def device(self) -> str:
        """Where it was prepared and searches run: "cpu" or "cuda:N"."""
        return self._prepared.device

    @property
    def metric(self) -> Metric:
        """The metric of all searches."""
        return cast("Metric", self._prepared.metric)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of vectors and their dimension."""
        return self._prepared.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        rows, dim = self.shape
        place = "" if self.device == "cpu" else f", {self.device}"
        return f"<nearwise.Exact: {rows} vectors of {dim} elements, {self.metric}{place}>"
