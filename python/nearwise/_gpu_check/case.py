"""What a case is: a public call that runs on the CPU and on the device and must give the same bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from nearwise._neighbors import Metric
from nearwise._rows import BFLOAT16_BITS

Answers = dict[str, Any]  # arrays, numbers and texts, by name

METRICS: tuple[Metric, ...] = ("sqeuclidean", "euclidean", "inner_product", "cosine")
TYPES = ("f32", "f16", "bf16", "u8", "i8")

_CENTRES = 64  # of the clusters in the vectors


@dataclasses.dataclass(frozen=True)
class Shapes:
    """How much a case searches."""

    name: str
    queries: int
    rows: int
    dim: int
    wide_rows: int  # of a search of long vectors
    wide_dim: int
    k: int
    largest_k: int
    columns: int  # of a selection
    clusters: int
    lists: int
    graph_rows: int
    degree: int
    additive_dim: int
    additive_rows: int


QUICK = Shapes(
    name="quick", queries=9, rows=120, dim=17, wide_rows=60, wide_dim=70, k=5, largest_k=60, columns=1100, clusters=6,
    lists=4, graph_rows=90, degree=6, additive_dim=4, additive_rows=260,
)  # fmt: skip
FULL = Shapes(
    name="full", queries=1000, rows=1_000_000, dim=128, wide_rows=200_000, wide_dim=768, k=10, largest_k=2000,
    columns=128_000, clusters=1024, lists=1000, graph_rows=100_000, degree=32, additive_dim=128, additive_rows=20_000,
)  # fmt: skip
SHAPES = {shapes.name: shapes for shapes in (QUICK, FULL)}


@dataclasses.dataclass(frozen=True)
class Case:
    """`run(shapes, device)` returns what must be the same bytes on "cpu" and on the device.

    `operations` are those of the backend that it is there for, by the names of `nearwise info --verbose`. They count as
    checked only if they have run on the device meanwhile.
    """

    name: str
    section: str
    operations: tuple[str, ...]
    run: Callable[[Shapes, str], Answers]


def vectors(seed: int, rows: int, dim: int, kind: str = "f32") -> npt.NDArray[Any]:
    """Vectors around centres, which depend on `dim` alone: queries are near the vectors that are searched."""
    centres = np.random.default_rng(dim).standard_normal((_CENTRES, dim), np.float32)
    random = np.random.default_rng([seed, dim])
    values = random.standard_normal((rows, dim), np.float32)
    values += centres[random.integers(0, _CENTRES, rows)]
    values *= 16
    if kind in ("u8", "i8"):
        return np.clip(values + 50, 0, 100).astype(np.uint8 if kind == "u8" else np.int8)
    if kind == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(BFLOAT16_BITS)
    return values.astype(np.float16) if kind == "f16" else values


def named(prefix: str, answer: Any) -> Answers:
    """The fields of a named tuple."""
    return {f"{prefix}: {name}": value for name, value in zip(answer._fields, answer)}


def difference(expected: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The first answer whose bytes differ, and where; None if all are the same."""
    if list(expected) != list(found):
        return {"answer": "names", "cpu": ", ".join(expected), "device": ", ".join(found)}
    for name, of_cpu in expected.items():
        left, right = np.ascontiguousarray(of_cpu), np.ascontiguousarray(found[name])
        if (left.dtype, left.shape) != (right.dtype, right.shape):
            return {"answer": name, "cpu": f"{left.dtype} {left.shape}", "device": f"{right.dtype} {right.shape}"}
        if left.tobytes() == right.tobytes():
            continue
        width = left.itemsize
        differs = (left.reshape(-1).view(np.uint8) != right.reshape(-1).view(np.uint8)).reshape(-1, width).any(axis=1)
        first = int(differs.argmax())
        return {
            "answer": name,
            "elements": int(differs.sum()),
            "of": int(differs.size),
            "first": [int(each) for each in np.unravel_index(first, left.shape)],
            "cpu": str(left.reshape(-1)[first]),
            "device": str(right.reshape(-1)[first]),
        }
    return None
