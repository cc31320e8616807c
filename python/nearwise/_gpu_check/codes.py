"""Cases of k-means, quantizers and rotations."""

from __future__ import annotations

from typing import Literal

import numpy as np

import nearwise
from nearwise import Context
from nearwise._gpu_check.case import Answers, Case, Shapes, named, vectors
from nearwise._kmeans import KMeansMetric

_METRICS: tuple[KMeansMetric, ...] = ("sqeuclidean", "cosine")
_BITS: tuple[Literal[4, 8], ...] = (4, 8)


def kmeans(shapes: Shapes, device: str) -> Answers:
    rows = vectors(11, shapes.rows, shapes.dim)
    found: Answers = {}
    for metric in _METRICS:
        trained = nearwise.train_kmeans(rows, shapes.clusters, metric=metric, iterations=2, seed=4, device=device)
        found |= named(metric, trained)
        nearest = nearwise.assign(rows, trained.centroids, metric=metric, device=device)
        found |= named(f"{metric}, assignment", nearest)
    return found


def product_codes(shapes: Shapes, device: str) -> Answers:
    rows = vectors(12, min(shapes.rows, 200_000), 8 if shapes.name == "quick" else shapes.dim)
    context = Context(device=device)
    found: Answers = {}
    for bits in _BITS:
        some = rows if bits == 4 or len(rows) >= 256 else np.tile(rows, (3, 1))  # one for each codeword
        place = device if bits == 4 else "cpu"  # training is many steps
        quantizer = nearwise.ProductQuantizer.train(some, parts=2, bits=bits, iterations=1, seed=4, device=place)
        codes = quantizer.encode(rows, context=context)
        found |= {
            f"{bits} bits: codes": codes,
            f"{bits} bits: tables": quantizer.tables(rows[: shapes.queries], context=context),
            f"{bits} bits: vectors": quantizer.decode(codes, context=context),
        }
    return found


def rotations(shapes: Shapes, device: str) -> Answers:
    rows = vectors(13, min(shapes.rows, 100_000), shapes.dim)
    context = Context(device=device)
    rotation = nearwise.Rotation.pca(rows, shapes.dim // 2, device=device)
    rotated = rotation.apply(rows, context=context)
    found: Answers = {"axes": rotation.matrix, "rotated": rotated, "back": rotation.reverse(rotated, context=context)}
    some = vectors(14, min(shapes.rows, 20_000), 8)
    quantizer = nearwise.OptimizedProductQuantizer.train(
        some, parts=2, bits=4, iterations=1, rounds=2, seed=4, device="cpu"
    )
    return found | {"OPQ: codes": quantizer.encode(some, context=context)}


def additive_codes(shapes: Shapes, device: str) -> Answers:
    rows = vectors(15, shapes.additive_rows, shapes.additive_dim)
    codebooks = 2 if shapes.name == "quick" else 7
    quantizer = nearwise.AdditiveQuantizer.train(rows, codebooks=codebooks, rounds=1, seed=4, device="cpu")
    context = Context(device=device)
    some = rows if shapes.name == "full" else rows[:40]
    codes = quantizer.encode(some, seed=4, context=context)
    found: Answers = {"codes": codes, "vectors": quantizer.decode(codes, context=context)}
    found["error"] = quantizer.error(some, seed=4, context=context)
    return found | named("search", quantizer.search(rows[: shapes.queries], codes, shapes.k, context=context))


CASES = (
    Case("kmeans", "clusters", ("assign_costs", "assign", "centroid_means_bytes", "centroid_means"), kmeans),
    Case(
        "product_codes", "codes", ("part_codes_bytes", "part_codes", "part_tables_bytes", "part_tables"), product_codes
    ),
    Case("rotations", "codes", ("rotate_bytes", "rotate", "cross_products"), rotations),
    Case(
        "additive_codes",
        "codes",
        ("additive_codes_bytes", "additive_codes", "additive_search_bytes", "additive_search"),
        additive_codes,
    ),
)
