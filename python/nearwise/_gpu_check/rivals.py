"""Exact search by Faiss and cuVS on the same vectors, where they are installed with support for GPUs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from nearwise._gpu_check.case import Shapes, vectors

_TURNS = 5


class LeftOut(Exception):
    """Why a library is not measured."""


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise LeftOut(f"not installed ({error})") from error


def _faiss(queries: Any, base: Any, k: int, ordinal: int) -> tuple[str, Callable[[], Any]]:
    faiss = _imported("faiss")
    if not hasattr(faiss, "get_num_gpus") or faiss.get_num_gpus() <= ordinal:
        raise LeftOut("its package has no support for this GPU")
    index = faiss.GpuIndexFlatL2(faiss.StandardGpuResources(), base.shape[1], faiss.GpuIndexFlatConfig())
    index.add(base)
    return str(faiss.__version__), lambda: index.search(queries, k)


def _cuvs(queries: Any, base: Any, k: int, ordinal: int) -> tuple[str, Callable[[], Any]]:
    cuvs, cupy = _imported("cuvs"), _imported("cupy")
    brute_force = _imported("cuvs.neighbors.brute_force")
    with cupy.cuda.Device(ordinal):
        index = brute_force.build(cupy.asarray(base), metric="sqeuclidean")

    def search() -> Any:
        with cupy.cuda.Device(ordinal):
            distances, ids = brute_force.search(index, cupy.asarray(queries), k)
            return cupy.asnumpy(cupy.asarray(distances)), cupy.asnumpy(cupy.asarray(ids))

    return str(cuvs.__version__), search


RIVALS = {"faiss": _faiss, "cuvs": _cuvs}


def measure(name: str, shapes: Shapes, ordinal: int) -> dict[str, Any]:
    """Queries per second of the batch that `exact_batch_f32` searches, answers on the host."""
    queries, base = vectors(1, shapes.queries, shapes.dim), vectors(2, shapes.rows, shapes.dim)
    try:
        version, call = RIVALS[name](queries, base, shapes.k, ordinal)
    except LeftOut as reason:
        return {"left_out": str(reason)}
    call()
    seconds = []
    for _ in range(_TURNS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    what = f"{shapes.queries} queries in {shapes.rows} x {shapes.dim} f32, k = {shapes.k}"
    value = shapes.queries / statistics.median(seconds)
    return {"version": version, "of": what, "unit": "queries/s", "value": value, "seconds": seconds}
