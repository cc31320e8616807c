"""What public calls take, next to the estimates of the kernels in them.

A call takes longer than its kernels: launches, copies of queries and answers, and what `note` names.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from typing import Any

import nearwise
from nearwise import Context, _core
from nearwise._gpu_check import estimates
from nearwise._gpu_check.case import Shapes, vectors

_TURNS = 5
_LEAST_SECONDS = 0.05  # of a turn: short calls are repeated in it

Call = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class Timing:
    """`prepare(shapes, device)` returns the call, how much it works on, and what that is.

    The value is `amount` per second, or with `is_time` seconds per amount, in `unit`.
    """

    name: str
    unit: str
    prepare: Callable[[Shapes, str], tuple[Call, float, str]]
    estimate: Callable[[str | None], float | None] = lambda gpu: None
    is_time: bool = False
    note: str = ""


def measure(timing: Timing, shapes: Shapes, device: str, gpu: str | None) -> dict[str, Any]:
    """The median of some turns, after a warm-up."""
    call, amount, what = timing.prepare(shapes, device)
    call()
    start = time.perf_counter()
    call()
    calls = max(1, int(_LEAST_SECONDS / max(1e-6, time.perf_counter() - start)))
    seconds = []
    for _ in range(_TURNS):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        seconds.append((time.perf_counter() - start) / calls)
    median = statistics.median(seconds)
    value = median / amount if timing.is_time else amount / median
    estimate = timing.estimate(gpu)
    return {
        "of": what,
        "unit": timing.unit,
        "value": value,
        "seconds": seconds,
        "calls_of_a_turn": calls,
        "estimate": estimate,
        "ratio": None if estimate is None else value / estimate,
        "note": timing.note,
    }


def _copy(shapes: Shapes, device: str) -> tuple[Call, float, str]:
    array = vectors(41, 1 << 19, 128)
    return lambda: _core.copy_to_device(array=array, device=device), array.nbytes / 1e9, "268 MB of pageable memory"


def _selection(k: int) -> Callable[[Shapes, str], tuple[Call, float, str]]:
    def prepare(shapes: Shapes, device: str) -> tuple[Call, float, str]:
        values = vectors(42, 512, estimates.SELECTION_COLUMNS)
        there = _core.copy_to_device(array=values, device=device)
        return (
            lambda: nearwise.select_k(there, k, device=device),
            values.nbytes / 1e9,
            f"512 rows of {estimates.SELECTION_COLUMNS} values on the device, k = {k}",
        )

    return prepare


def _batch(isa: str) -> Callable[[Shapes, str], tuple[Call, float, str]]:
    def prepare(shapes: Shapes, device: str) -> tuple[Call, float, str]:
        index = nearwise.Exact(vectors(2, shapes.rows, shapes.dim), device=device, isa=isa)
        queries = vectors(1, shapes.queries, shapes.dim)
        what = f"{shapes.queries} queries in {shapes.rows} x {shapes.dim} f32, k = {shapes.k}, isa {isa}"
        return lambda: index.search(queries, shapes.k), float(shapes.queries), what

    return prepare


def _single(shapes: Shapes, device: str) -> tuple[Call, float, str]:
    index = nearwise.Exact(vectors(2, shapes.rows, shapes.dim), device=device)
    query = vectors(1, 1, shapes.dim)[0]
    return lambda: index.search(query, shapes.k), 1e-3, f"a query in {shapes.rows} x {shapes.dim} f32, k = {shapes.k}"


def _list_scan(shapes: Shapes, device: str) -> tuple[Call, float, str]:
    rows, queries = vectors(43, shapes.rows, shapes.dim), vectors(44, shapes.queries, shapes.dim)
    index = nearwise.IvfPq.train(
        rows, lists=shapes.lists, iterations=1, code_bytes=16, bits=8, vectors="none", seed=4, device=device
    )
    index.add(rows)
    index.to(device)
    what = f"{shapes.queries} queries, all {shapes.lists} lists of {shapes.rows} codes of 16 bytes"
    return lambda: index.search(queries, shapes.k, probes=shapes.lists), shapes.queries * len(rows) / 1e9, what


def _additive(shapes: Shapes, device: str) -> tuple[Call, float, str]:
    rows = vectors(45, shapes.additive_rows, shapes.additive_dim)
    quantizer = nearwise.AdditiveQuantizer.train(rows, codebooks=7, rounds=1, seed=4, device=device)
    context = Context(device=device)
    what = f"{len(rows)} vectors of {shapes.additive_dim} elements, 7 codebooks, 16 iterations"
    return lambda: quantizer.encode(rows, context=context), len(rows) / 1e6, what


def _graph(shapes: Shapes, device: str) -> tuple[Call, float, str]:
    rows = vectors(46, shapes.rows, shapes.dim, "u8")
    what = f"{shapes.rows} x {shapes.dim} u8, degree 10"
    return lambda: nearwise.build_knn_graph(rows, 10, seed=4, device=device), 1.0, what


def _selection_of(k: int) -> Timing:
    return Timing(f"select_k_{k}", "GB/s", _selection(k), lambda gpu: estimates.selection(gpu, k))


TIMINGS = (
    Timing("copy_to_device", "GB/s", _copy,
           note="allocation, and copies through pinned memory as searches send vectors: not the rate of the bus"),
    _selection_of(10),
    _selection_of(100),
    _selection_of(1000),
    Timing("exact_batch_f32", "queries/s", _batch("f32")),
    Timing("exact_batch_tf32", "queries/s", _batch("tf32")),
    Timing("exact_batch_bf16", "queries/s", _batch("bf16")),
    Timing("exact_single", "ms", _single, is_time=True),
    Timing("list_scan", "10^9 vectors/s", _list_scan, lambda gpu: estimates.list_scan(gpu, 16),
           note="estimate: the scan alone, without tables and selection"),
    Timing("additive_encode", "us per vector", _additive, lambda gpu: estimates.additive(gpu, 7), is_time=True,
           note="estimate: the search for codes, without copies"),
    Timing("graph_build", "s", _graph, estimates.graph_products, is_time=True,
           note="estimate: products of pairs alone"),
)  # fmt: skip
