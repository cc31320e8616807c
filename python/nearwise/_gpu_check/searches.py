"""Cases of exact search, selection, and arrays that are on the device already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nearwise
from nearwise import _core
from nearwise._gpu_check.case import METRICS, TYPES, Answers, Case, Shapes, named, vectors

_SEARCH = ("knn_costs", "prepare_rows", "start_top_k", "knn_block", "finish_top_k")
_SELECTION = ("select_k_bytes", "select_k")


def _problem(shapes: Shapes, kind: str = "f32") -> tuple[Any, Any]:
    """Queries and base."""
    return vectors(1, shapes.queries, shapes.dim, kind), vectors(2, shapes.rows, shapes.dim, kind)


def element_types(shapes: Shapes, device: str) -> Answers:
    found: Answers = {}
    for kind in TYPES:
        queries, base = _problem(shapes, kind)
        found |= named(kind, nearwise.knn(queries, base, shapes.k, device=device))
    return found


def metrics(shapes: Shapes, device: str) -> Answers:
    queries, base = _problem(shapes)
    found: Answers = {}
    for metric in METRICS:
        found |= named(metric, nearwise.knn(queries, base, shapes.k, metric=metric, device=device))
    return found


def tensor_cores(shapes: Shapes, device: str) -> Answers:
    queries, base = _problem(shapes)
    found: Answers = {}
    for isa in ("tf32", "bf16"):
        index = nearwise.Exact(base, device=device, isa=None if device == "cpu" else isa)
        found |= named(isa, index.search(queries, shapes.k))
    return found


def long_vectors(shapes: Shapes, device: str) -> Answers:
    queries = vectors(3, shapes.queries, shapes.wide_dim)
    base = vectors(4, shapes.wide_rows, shapes.wide_dim)
    return named("cosine", nearwise.knn(queries, base, shapes.k, metric="cosine", device=device))


def many_neighbors(shapes: Shapes, device: str) -> Answers:
    queries, base = _problem(shapes)
    found: Answers = {}
    for k in (1, min(100, shapes.largest_k), shapes.largest_k):
        found |= named(f"k = {k}", nearwise.knn(queries[:100], base, k, device=device))
    return found


def one_query(shapes: Shapes, device: str) -> Answers:
    """The second search of an index finds what the first has made."""
    queries, base = _problem(shapes)
    index = nearwise.Exact(base, device=device)
    return named("first", index.search(queries[0], shapes.k)) | named("second", index.search(queries[1], shapes.k))


def self_search(shapes: Shapes, device: str) -> Answers:
    base = vectors(5, shapes.graph_rows, shapes.dim)
    return named("graph", nearwise.exact_knn_graph(base, shapes.degree, device=device))


def selection(shapes: Shapes, device: str) -> Answers:
    values = vectors(6, 4, shapes.columns)
    values[:, 1::7] = values[:, ::7][:, : values[:, 1::7].shape[1]]  # ties
    ids = np.random.default_rng(7).permutation(shapes.columns)
    found: Answers = {}
    for k in (1, 32, 100, 1000, min(2000, shapes.columns - 50)):
        found |= named(f"k = {k}", nearwise.select_k(values, k, device=device))
    found |= named("largest", nearwise.select_k(values, 10, largest=True, device=device))
    return found | named("ids", nearwise.select_k(values, 10, ids=ids, device=device))


def _by_dlpack(array: np.ndarray[Any, Any], device: str) -> Any:
    return _core.copy_to_device(array=array, device=device)


class Shared:
    """An array on a device that offers the CUDA array interface, as Numba's do; its work is in the default stream."""

    def __init__(self, array: np.ndarray[Any, Any], device: str) -> None:
        self._held = _core.DeviceArray(_core.copy_to_device(array=array, device=device).__dlpack__())
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self._held.address, False),
            "strides": None,
            "version": 3,
            "stream": 1,
        }


def shared_arrays(shapes: Shapes, device: str) -> Answers:
    """Arrays that other libraries have on the device: by DLPack, and by the CUDA array interface."""
    queries, base = _problem(shapes)
    values = vectors(8, 4, shapes.columns)
    protocols: dict[str, Callable[[Any, str], Any]] = {"DLPack": _by_dlpack, "CUDA array interface": Shared}
    found: Answers = {}
    for protocol, share in protocols.items():
        some, all_of_them, rows = (
            array if device == "cpu" else share(array, device) for array in (queries, base, values)
        )
        found |= named(protocol, nearwise.knn(some, all_of_them, shapes.k))
        allowed = range(0, shapes.rows, 3)
        found |= named(f"{protocol}, filter", nearwise.knn(some, all_of_them, shapes.k, filter=allowed))
        found |= named(f"{protocol}, selection", nearwise.select_k(rows, 10))
    return found


CASES = (
    Case("element_types", "exact", _SEARCH, element_types),
    Case("metrics", "exact", _SEARCH, metrics),
    Case("tensor_cores", "exact", _SEARCH, tensor_cores),
    Case("long_vectors", "exact", _SEARCH, long_vectors),
    Case("many_neighbors", "exact", _SEARCH, many_neighbors),
    Case("one_query", "exact", _SEARCH, one_query),
    Case("self_search", "exact", _SEARCH, self_search),
    Case("selection", "selection", _SELECTION, selection),
    Case("shared_arrays", "arrays", ("fetch_rows", "stream_handle", "wait_for_stream"), shared_arrays),
)
