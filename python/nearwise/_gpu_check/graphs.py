"""Cases of k-NN graphs and graph indexes."""

from __future__ import annotations

from typing import Any

import numpy as np

import nearwise
from nearwise import Context, KnnGraph, Neighbors
from nearwise._gpu_check.case import Answers, Case, Shapes, named, vectors


def _of_graph(prefix: str, graph: KnnGraph) -> Answers:
    return {
        f"{prefix}: ids": graph.ids,
        f"{prefix}: distances": graph.distances,
        f"{prefix}: report": repr((graph.method, graph.recall, graph.rounds)),
    }


def knn_graphs(shapes: Shapes, device: str) -> Answers:
    """A build, and a few vectors more, which are compared with all."""
    rows = vectors(31, shapes.graph_rows, shapes.dim)
    built = nearwise.build_knn_graph(rows[: -(shapes.graph_rows // 10)], shapes.degree, seed=4, device=device)
    return _of_graph("built", built) | _of_graph("more", built.with_rows(rows, seed=4))


def nn_descent(shapes: Shapes, device: str) -> Answers:
    """An NN-Descent iteration of few vectors, which a build would search exactly.

    Lists begin with neighbors that are not the nearest: recall 0. A few more vectors, compared with all, raise it to
    0.1, and the iteration beyond the target, so that its lists are the answer.
    """
    rows = vectors(32, min(shapes.graph_rows, 5000), shapes.dim)
    before, degree = rows[: -(len(rows) // 18)], shapes.degree
    near = nearwise.exact_knn_graph(before, 2 * degree, device="cpu")
    poor = Neighbors(np.ascontiguousarray(near.ids[:, degree:]), np.ascontiguousarray(near.distances[:, degree:]))
    unmeasured: Any = ("nn_descent", (0.0, 0.0, 0.0, len(before)), False, [])
    graph = KnnGraph((poor, "sqeuclidean", unmeasured), Context(device=device))
    return _of_graph("descent", graph.with_rows(rows, target_recall=0.15, seed=4))


def graph_index(shapes: Shapes, device: str) -> Answers:
    rows, queries = vectors(33, shapes.graph_rows // 2, shapes.dim), vectors(34, shapes.queries, shapes.dim)
    more = len(rows) // 10
    index = nearwise.GraphIndex.build(rows[:-more], degree=16, seed=4, device=device)
    found: Answers = {"calibration": repr(index.calibration)} | named("built", index.search(queries, shapes.k))
    index.add(rows[-more:])
    found |= named("added", index.search(queries, shapes.k))
    index.remove(range(more))
    found |= named("removed", index.search(queries, shapes.k))
    index.compact()
    return found | named("compacted", index.search(queries[0], shapes.k))


CASES = (
    Case("knn_graphs", "graphs", ("join_costs", "start_join", "join_groups"), knn_graphs),
    Case("nn_descent", "graphs", ("join_neighborhoods_bytes", "join_neighborhoods"), nn_descent),
    Case("graph_index", "graphs", ("prune_edges", "prepare_graph", "search_graph"), graph_index),
)
