"""Cases of inverted files: lists that are copied for every search, and lists that stay on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

import nearwise
from nearwise._gpu_check.case import TYPES, Answers, Case, Shapes, named, vectors

_COPIED = ("list_search_costs", "list_search")
_RESIDENT = ("prepare_lists", "search_prepared_lists")


def _filled(shapes: Shapes, device: str, codec: str, rows: Any, **options: Any) -> Any:
    """An index of an encoding, with all vectors added on the device.

    Small ones are trained by the CPU: training is many steps, which other cases compare.
    """
    place = "cpu" if shapes.name == "quick" else device
    common: dict[str, Any] = {"lists": shapes.lists, "iterations": 1, "seed": 4, "device": place} | options
    if codec == "flat":
        index: Any = nearwise.IvfFlat.train(rows, **common)
    elif codec == "lsq":
        few: dict[str, Any] = {"rounds": 1, "train_iterations": 1, "encode_iterations": 1}
        index = nearwise.IvfLsq.train(rows, code_bytes=1 if shapes.name == "quick" else 8, **few, **common)
    else:
        index = nearwise.IvfPq.train(rows, code_bytes=2 if shapes.name == "quick" else 16, bits=4, **common)
    if place != device:
        index = nearwise.from_bytes(index.to_bytes(), device=device)
    index.add(rows)
    return index


def _dim(shapes: Shapes) -> int:
    return 8 if shapes.name == "quick" else shapes.dim


def _search(index: Any, queries: Any, shapes: Shapes) -> Any:
    return index.search(queries, shapes.k, probes=max(2, shapes.lists // 50))


def flat_lists(shapes: Shapes, device: str) -> Answers:
    found: Answers = {}
    for kind in TYPES:
        rows = vectors(21, shapes.rows, _dim(shapes), kind)
        index = _filled(shapes, device, "flat", rows)
        found |= named(kind, _search(index, vectors(22, shapes.queries, _dim(shapes), kind), shapes))
    return found


def coded_lists(shapes: Shapes, device: str) -> Answers:
    """Product codes, with kept vectors of every type and without; metrics; re-ranking by vectors of the caller."""
    rows, queries = vectors(23, shapes.rows, _dim(shapes)), vectors(24, shapes.queries, _dim(shapes))
    found: Answers = {}
    for kept in ("keep", "f16", "u8", "none"):
        some = np.clip(rows + 50, 0, 100).round() if kept == "u8" else rows  # u8 keeps integers only
        index = _filled(shapes, device, "pq", some, vectors=kept)
        found |= named(f"vectors {kept}", _search(index, queries, shapes))
    for metric in ("inner_product", "cosine"):
        found |= named(metric, _search(_filled(shapes, device, "pq", rows, metric=metric), queries, shapes))
    index = _filled(shapes, device, "pq", rows, vectors="none")
    found |= named("re-ranked", index.search(queries, shapes.k, probes=2, rerank=rows, candidates=4 * shapes.k))
    return found


def additive_lists(shapes: Shapes, device: str) -> Answers:
    rows = vectors(25, shapes.additive_rows, shapes.additive_dim)
    index = _filled(shapes, device, "lsq", rows, lists=4)
    return named("search", index.search(vectors(26, shapes.queries, shapes.additive_dim), shapes.k, probes=2))


def resident_lists(shapes: Shapes, device: str) -> Answers:
    """Lists that stay on the device, between changes of every kind. Training and changes are the CPU's."""
    rows, queries = vectors(27, shapes.rows, _dim(shapes)), vectors(28, shapes.queries, _dim(shapes))
    found: Answers = {}
    for codec in ("flat", "pq"):
        index = _filled(shapes, "cpu", codec, rows[: -(shapes.rows // 4)]).to(device)
        found |= named(f"{codec}: first", _search(index, queries, shapes))
        index.add(rows[-(shapes.rows // 4) :])
        found |= named(f"{codec}: added", _search(index, queries, shapes))
        index.remove(range(0, shapes.rows, 5))
        found |= named(f"{codec}: removed", _search(index, queries, shapes))
        index.update([1, 2], rows[3:5])
        found |= named(f"{codec}: updated", _search(index, queries, shapes))
        found |= named(f"{codec}: one query", _search(index, queries[0], shapes))
    return found


CASES = (
    Case("flat_lists", "lists", _COPIED, flat_lists),
    Case("coded_lists", "lists", _COPIED, coded_lists),
    Case("additive_lists", "lists", _COPIED, additive_lists),
    Case("resident_lists", "lists", _RESIDENT, resident_lists),
)
