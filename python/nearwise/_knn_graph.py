"""k-NN graphs: the nearest other vectors of every vector."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, Unpack, cast

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, SeededCallSettings, SeededSettings, operation
from nearwise._graph_uses import GraphUses
from nearwise._log import logger
from nearwise._neighbors import MetricArgument, Neighbors, adopt, as_neighbors
from nearwise._recall import RecallEstimate
from nearwise._savable import Savable
from nearwise._suggest import NamesGraphWays
from nearwise._vector_file import Path


class GraphRound(NamedTuple):
    """One pass over the vectors: round 0 is the local joins in partitions, the others are NN-Descent iterations."""

    round: int
    updates: int
    recall: RecallEstimate


class KnnGraph(NamesGraphWays, GraphUses, Savable):
    """The result of `build_knn_graph`. Unpacks as (ids, distances).

    Every vector has `degree` different neighbors and never itself, best first, the lower id first in a tie; a
    row ends in -1 only if there are no more other vectors. Distances are those of exact search. A graph does
    not change: `with_rows` and `without_rows` return new ones. It can be copied and pickled.

    Attributes
    ----------
    ids : int64 [rows, degree]
    distances : float32 [rows, degree]
    metric : str
    method : "exact" or "nn_descent"
    recall : RecallEstimate
    reached : bool
        Whether recall.low is at least the target recall.
    rounds : list of GraphRound
    """

    def __init__(self, graph: tuple[Any, str, Any], context: Context) -> None:
        if not isinstance(context, Context):
            raise TypeError("a KnnGraph is made by nearwise.build_knn_graph(rows, degree) or nearwise.load(path)")
        neighbors, self.metric, report = graph
        self.neighbors: Neighbors = adopt(neighbors)
        self.method = cast('Literal["exact", "nn_descent"]', report[0])
        self.recall = RecallEstimate(*report[1])
        self.reached: bool = report[2]
        self.rounds = [GraphRound(number, updates, RecallEstimate(*recall)) for number, updates, recall in report[3]]
        self._context = context.remembered()

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        return self.neighbors.ids

    @property
    def distances(self) -> npt.NDArray[np.float32]:
        return self.neighbors.distances

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return iter(self.neighbors)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        rows, degree = self.ids.shape
        return f"<nearwise.KnnGraph: {rows} x {degree}, {self.metric}, {self.method}, recall {self.recall}>"

    def _given(self) -> tuple[Any, ...]:
        """The graph as C++ takes it: ids, distances, metric and report."""
        pair = as_neighbors(self.neighbors)
        rounds = [(number, updates, tuple(recall)) for number, updates, recall in self.rounds]
        report = (self.method, tuple(self.recall), self.reached, rounds)
        return pair.ids, pair.distances, self.metric, report

    @operation
    def validate(self) -> None:
        """Raises `Error` with code corrupt, naming the first row that is no valid list of neighbors."""
        _core.validate_knn_graph(graph=self._given())

    @operation
    def with_rows(
        self, rows: Any, *, target_recall: float | None = 0.95, **settings: Unpack[SeededCallSettings]
    ) -> KnnGraph:
        """A new graph of this graph's vectors and more.

        A few thousand new vectors are compared with all, and an exact graph stays exact. More of them get a
        graph of their own, which is merged as by `nearwise.merge_knn_graphs`.

        Parameters
        ----------
        rows : array [rows, dim]
            All vectors: those of this graph, then the new ones.
        target_recall, context, seed, progress
            As in `nearwise.build_knn_graph`.

        Examples
        --------
        >>> import numpy as np, nearwise
        >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows[:3], degree=1).with_rows(rows).ids.ravel()
        array([1, 3, 3, 1])
        """
        call, given = Call("with_rows", settings), {"graph": self._given()}
        graph = call.run(_core.add_to_knn_graph, given, rows=rows, target_recall=target_recall)
        return _logged(KnnGraph(graph, call.context), call, target_recall)

    @operation
    def without_rows(
        self, rows: Any, ids: Any, *, target_recall: float | None = 0.95, **settings: Unpack[SeededCallSettings]
    ) -> KnnGraph:
        """A new graph without some of the vectors.

        The others keep their order and are numbered from 0: it is the graph of `np.delete(rows, ids, axis=0)`.
        Vectors that lost neighbors get others. A few of them are compared with all, and an exact graph stays
        exact; many are compared with the neighbors of their neighbors.

        Parameters
        ----------
        rows : array [rows, dim]
            All vectors of this graph.
        ids : integers [removed]
            Different row numbers.
        target_recall, context, seed, progress
            As in `nearwise.build_knn_graph`.

        Examples
        --------
        >>> import numpy as np, nearwise
        >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=1).without_rows(rows, [1]).ids.ravel()
        array([2, 2, 1])
        """
        call, given = Call("without_rows", settings), {"graph": self._given(), "ids": _options.ids(ids)}
        changed = call.run(_core.remove_from_knn_graph, given, rows=rows, target_recall=target_recall)
        return _logged(KnnGraph(changed, call.context), call, target_recall)

    @operation
    def save(self, path: Path, *, provenance: Mapping[str, str] | None = None) -> None:
        """Saves the graph in a .nw file, atomically; `nearwise.load` reads it."""
        _core.save_knn_graph(
            path=os.fspath(path), graph=self._given(), provenance=_options.texts(provenance, "provenance")
        )


@operation
def build_knn_graph(
    rows: Any,
    degree: int | None = 10,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    target_recall: float | None = 0.95,
    **settings: Unpack[SeededSettings],
) -> KnnGraph:
    """The approximate k-NN graph of the vectors, at a recall that is measured.

    Vectors are compared within overlapping k-means partitions, then with the neighbors of their neighbors
    (NN-Descent), until a sample of vectors, compared with exact search, shows the target recall. The graph is
    exact where exact search is faster (some ten thousand vectors) or the target is not reached otherwise. The
    same vectors, options and seed give the same bytes with any number of threads, on every instruction set and
    on CUDA devices. Ctrl-C stops it and raises KeyboardInterrupt.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`.
    degree : int
        Neighbors of each vector.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        As in `nearwise.knn`.
    target_recall : float
        Share of the true neighbors in the graph. The build ends when the lower end of the 95 % confidence
        interval reaches it; `KnnGraph.reached` tells whether it did. 1: exact search.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

    Returns
    -------
    KnnGraph
        Unpacks as ids, int64 [rows, degree], and distances, float32 [rows, degree].

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [3, 4], [1, 0], [0, 0]], dtype=np.float32)
    >>> graph = nearwise.build_knn_graph(rows, degree=2, metric="euclidean")
    >>> graph
    <nearwise.KnnGraph: 4 x 2, euclidean, exact, recall 1.0000 [1.0000, 1.0000]>
    >>> ids, distances = graph
    >>> ids
    array([[3, 2],
           [2, 0],
           [0, 3],
           [0, 2]])
    """
    call = Call("build_knn_graph", settings)
    graph = call.run(_core.build_knn_graph, rows=rows, degree=degree, metric=metric, target_recall=target_recall)
    return _logged(KnnGraph(graph, call.context), call, target_recall)


def _logged(graph: KnnGraph, call: Call, target_recall: float | None) -> KnnGraph:
    logger.info("%s: %r, %d rounds", call.operation, graph, len(graph.rounds))
    if not graph.reached:
        logger.warning("%s: target recall %s is not reached: recall %s", call.operation, target_recall, graph.recall)
    return graph


@operation
def merge_knn_graphs(
    rows: Any,
    left: KnnGraph,
    right: KnnGraph,
    *,
    target_recall: float | None = 0.95,
    **settings: Unpack[SeededSettings],
) -> KnnGraph:
    """The graph of the vectors of two graphs.

    Vectors of one graph are compared with those of the other only, so merging takes less time than building.
    The recall is measured as in `nearwise.build_knn_graph`.

    Parameters
    ----------
    rows : array [rows of both, dim]
        Those of `left`, then those of `right`; ids of `right` are increased by the number of the former.
    left, right : KnnGraph
        Of the same degree and metric. A graph of other vectors is refused.
    target_recall, context, seed, device, threads, memory_limit, isa, progress
        As in `nearwise.build_knn_graph`.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
    >>> left, right = (nearwise.build_knn_graph(half, degree=1) for half in (rows[:2], rows[2:]))
    >>> nearwise.merge_knn_graphs(rows, left, right).ids.ravel()
    array([1, 3, 3, 1])
    """
    for graph, name in ((left, "left"), (right, "right")):
        if not isinstance(graph, KnnGraph):
            raise TypeError(f"{name}: expected a KnnGraph, got {type(graph).__name__}")
    call, given = Call("merge_knn_graphs", settings), {"left": left._given(), "right": right._given()}
    merged = call.run(_core.merge_knn_graphs, given, rows=rows, target_recall=target_recall)
    return _logged(KnnGraph(merged, call.context), call, target_recall)


def _ids_of(neighbors: Any) -> npt.NDArray[np.int64]:
    """The ids of neighbors: an array or nested sequences of integers, or the first of a pair."""
    if not isinstance(neighbors, (KnnGraph, tuple)):
        try:
            array = np.asarray(neighbors)
        except (TypeError, ValueError):  # a pair in a list, of different shapes
            array = np.empty(0)
        if array.ndim == 2 and array.dtype.kind in "iu":
            return _options.id_matrix(array, "neighbors")
    return as_neighbors(neighbors).ids


@operation
def measure_recall(
    rows: Any,
    neighbors: Any,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    sample: int | Literal["all"] | None = 2000,
    **settings: Unpack[SeededSettings],
) -> RecallEstimate:
    """The recall of a k-NN graph of `rows`, built by any library, against exact search.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.build_knn_graph`.
    neighbors : array [rows, k] of ids, KnnGraph, Neighbors or pair (ids, distances)
        Ids of the neighbors of every vector. Distances, if there are any, are computed again; the vector itself, -1 and
        repeated neighbors do not count.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        As in `nearwise.knn`.
    sample : int or "all"
        Vectors to measure, drawn by `seed`.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.arange(10, dtype=np.float32)[:, None]
    >>> nearwise.measure_recall(rows, nearwise.exact_knn_graph(rows, k=3), sample="all").value
    1.0
    >>> nearwise.measure_recall(rows, [[1]] + [[row - 1] for row in range(1, 10)], sample="all").value
    1.0
    """
    call, given = Call("measure_recall", settings), {"ids": _ids_of(neighbors)}
    return RecallEstimate(*call.run(_core.measure_recall, given, rows=rows, metric=metric, sample=sample))
