"""Graphs of every row's nearest other rows."""

from __future__ import annotations

import os
from typing import Any, Literal, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._graph_uses import GraphUses
from nearwise._neighbors import Neighbors, adopt, as_neighbors
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit
from nearwise._vector_file import Path


class RecallEstimate(NamedTuple):
    """The share of true neighbours that a graph holds, measured on a sample of rows.

    value : float
        A neighbour counts if it is no farther than the last of the exact ones.
    low, high : float
        The interval that holds the recall of the whole graph with 95 % confidence.
    rows : int
        Rows of the sample.
    """

    value: float
    low: float
    high: float
    rows: int


class GraphRound(NamedTuple):
    """One pass over the rows: round 0 is their cells, the others are rounds of descent."""

    round: int
    updates: int
    recall: RecallEstimate


class KnnGraph(GraphUses):
    """What `build_knn_graph` returns. Unpacks as (ids, distances).

    Every row has `degree` different neighbours and never itself, best first, the lower id first in a tie; only where there
    are no more other rows does it end in -1. Distances are those of exact search.

    Attributes
    ----------
    ids : int64 [rows, degree]
    distances : float32 [rows, degree]
    metric : str
    method : "exact" or "nn_descent"
    recall : RecallEstimate
    reached : bool
        Whether recall.low is at least what was asked for.
    rounds : list of GraphRound
    """

    def __init__(self, graph: tuple[Any, str, Any]) -> None:
        neighbors, self.metric, report = graph
        self.neighbors: Neighbors = adopt(neighbors)
        self.method: Literal["exact", "nn_descent"] = report[0]
        self.recall = RecallEstimate(*report[1])
        self.reached: bool = report[2]
        self.rounds = [GraphRound(number, updates, RecallEstimate(*recall)) for number, updates, recall in report[3]]

    @property
    def ids(self) -> npt.NDArray[np.int64]:
        return self.neighbors.ids

    @property
    def distances(self) -> npt.NDArray[np.float32]:
        return self.neighbors.distances

    def __iter__(self) -> Any:
        return iter(self.neighbors)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        rows, degree = self.ids.shape
        recall = f"{self.recall.value:.4f} [{self.recall.low:.4f}, {self.recall.high:.4f}]"
        return f"KnnGraph({rows} x {degree}, {self.metric}, {self.method}, recall {recall})"

    def _report(self) -> tuple[Any, ...]:
        return (self.method, tuple(self.recall), self.reached, [(n, u, tuple(r)) for n, u, r in self.rounds])

    def validate(self) -> None:
        """Raises `Error` with code corrupt, naming the first row that breaks the contract."""
        pair = as_neighbors(self.neighbors)
        _core.validate_knn_graph(pair.ids, pair.distances, self.metric, self._report())

    def _given(self) -> tuple[Any, ...]:
        pair = as_neighbors(self.neighbors)
        return (pair.ids, pair.distances, self.metric, self._report())

    def add(
        self,
        rows: Any,
        *,
        recall: float = 0.95,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> KnnGraph:
        """The graph of more rows; this one is left as it is.

        A few thousand new rows meet all rows, and an exact graph stays exact. Of more the graph is built and merged, as by
        `nearwise.merge_knn_graphs`.

        Parameters
        ----------
        rows : array [rows, dim]
            Those of this graph, then those that are new.
        recall, seed, device, threads, memory_limit, isa, progress
            As in `nearwise.build_knn_graph`.

        Examples
        --------
        >>> import numpy as np
        >>> import nearwise
        >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows[:3], degree=1).add(rows).ids.ravel()
        array([1, 3, 3, 1])
        """
        change = [self._given(), _options.number(recall, "recall")]
        return _changed("add_to_knn_graph", rows, change, seed, device, threads, memory_limit, isa, progress)

    def remove(
        self,
        rows: Any,
        ids: Any,
        *,
        recall: float = 0.95,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> KnnGraph:
        """The graph without some rows; this one is left as it is.

        The others keep their order and are numbered from 0 again: the result is of `np.delete(rows, ids, axis=0)`. Rows that
        lost neighbours get others: few of them meet all rows, and an exact graph stays exact; many meet the neighbours of
        their neighbours.

        Parameters
        ----------
        rows : array [rows, dim]
            All those of this graph.
        ids : integers [removed]
            Different numbers of rows.
        recall, seed, device, threads, memory_limit, isa, progress
            As in `nearwise.build_knn_graph`.

        Examples
        --------
        >>> import numpy as np
        >>> import nearwise
        >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=1).remove(rows, [1]).ids.ravel()
        array([2, 2, 1])
        """
        change = [self._given(), _options.ids(ids), _options.number(recall, "recall")]
        return _changed("remove_from_knn_graph", rows, change, seed, device, threads, memory_limit, isa, progress)

    def save(self, path: Path, *, provenance: Optional[Mapping[str, str]] = None) -> None:
        """Saves the graph in a .nw file, atomically; `nearwise.load_knn_graph` brings it back."""
        pair = as_neighbors(self.neighbors)
        texts = {} if provenance is None else _options.texts(provenance, "provenance")
        _core.save_knn_graph(os.fspath(path), pair.ids, pair.distances, self.metric, self._report(), texts)


def build_knn_graph(
    rows: Any,
    degree: int = 10,
    *,
    metric: Metric = "sqeuclidean",
    recall: float = 0.95,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> KnnGraph:
    """The nearest other rows of every row, without comparing all pairs, at a recall that is measured.

    Rows meet in overlapping k-means cells, then meet the neighbours of their neighbours (NN-Descent), until a sample of rows,
    compared with exact search, shows the recall that was asked for. Where exact search is faster (some ten thousand rows),
    or nothing else gets there, the graph is exact. The same rows, options and seed give the same bytes with any number
    of threads, on every instruction set and on CUDA devices. Ctrl-C stops it and raises KeyboardInterrupt.

    Parameters
    ----------
    rows : array [rows, dim]
        In host memory, otherwise as in `nearwise.knn`.
    degree : int
        Neighbours of each row.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        As in `nearwise.knn`.
    recall : float
        The share of true neighbours that the graph must hold: the build goes on until the lower end of the measured 95 %
        interval is there. 1: exact search. Whether it was reached is `KnnGraph.reached`.
    seed : int
        Of all random numbers.
    device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; progress counts the units of each step in turn.

    Returns
    -------
    KnnGraph
        Unpacks as ids, int64 [rows, degree], and distances, float32 [rows, degree].

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.array([[0, 0], [3, 4], [1, 0], [0, 0]], dtype=np.float32)
    >>> graph = nearwise.build_knn_graph(rows, degree=2, metric="euclidean")
    >>> graph
    KnnGraph(4 x 2, euclidean, exact, recall 1.0000 [1.0000, 1.0000])
    >>> ids, distances = graph
    >>> ids
    array([[3, 2],
           [2, 0],
           [0, 3],
           [0, 2]])
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    own_rows = as_rows(rows, "rows", limit)
    rest = rest_of_limit(limit, "build_knn_graph", own_rows)
    with reporting(progress, "build_knn_graph") as report:
        return KnnGraph(
            _core.build_knn_graph(
                own_rows.array,
                own_rows.type,
                _options.count(degree, "degree"),
                _options.word(metric, "metric"),
                _options.number(recall, "recall"),
                _options.seed(seed),
                device_for(device, own_rows.array),
                _options.thread_count(threads),
                rest,
                _options.word(isa, "isa"),
                report,
            )
        )


def _changed(
    operation: str,
    rows: Any,
    change: Sequence[Any],
    seed: int,
    device: Optional[str],
    threads: int,
    memory_limit: Union[int, str],
    isa: str,
    progress: ProgressArgument,
) -> KnnGraph:
    limit = _options.byte_count(memory_limit, "memory_limit")
    own_rows = as_rows(rows, "rows", limit)
    rest = rest_of_limit(limit, operation, own_rows)
    with reporting(progress, operation) as report:
        return KnnGraph(
            getattr(_core, operation)(
                own_rows.array,
                own_rows.type,
                *change,
                _options.seed(seed),
                device_for(device, own_rows.array),
                _options.thread_count(threads),
                rest,
                _options.word(isa, "isa"),
                report,
            )
        )


def merge_knn_graphs(
    rows: Any,
    left: KnnGraph,
    right: KnnGraph,
    *,
    recall: float = 0.95,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> KnnGraph:
    """The graph of two sets of rows of which each has a graph.

    Rows of one side meet those of the other only, so that merging takes less than building. The recall is measured as in
    `nearwise.build_knn_graph`, and the merge goes on until it is there.

    Parameters
    ----------
    rows : array [rows of both, dim]
        Those of `left`, then those of `right`, whose ids are increased by the number of the former.
    left, right : KnnGraph
        Of the same degree and metric. A graph of other rows is refused.
    recall, seed, device, threads, memory_limit, isa, progress
        As in `nearwise.build_knn_graph`.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.array([[0], [10], [20], [11]], dtype=np.float32)
    >>> left, right = (nearwise.build_knn_graph(half, degree=1) for half in (rows[:2], rows[2:]))
    >>> nearwise.merge_knn_graphs(rows, left, right).ids.ravel()
    array([1, 3, 3, 1])
    """
    for graph, name in ((left, "left"), (right, "right")):
        if not isinstance(graph, KnnGraph):
            raise TypeError(f"{name}: expected a KnnGraph, given {type(graph).__name__}")
    change = [left._given(), right._given(), _options.number(recall, "recall")]
    return _changed("merge_knn_graphs", rows, change, seed, device, threads, memory_limit, isa, progress)


def load_knn_graph(path: Path) -> KnnGraph:
    """Loads what `KnnGraph.save` wrote. Checksums and the contract are verified: damage is an `Error` with code corrupt."""
    return KnnGraph(_core.load_knn_graph(os.fspath(path)))


def measure_recall(
    rows: Any,
    neighbors: Any,
    *,
    metric: Metric = "sqeuclidean",
    sample: int = 2000,
    seed: int = 0,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
    progress: ProgressArgument = None,
) -> RecallEstimate:
    """The recall of a graph of `rows`, found by whatever means, against exact search.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.build_knn_graph`.
    neighbors : KnnGraph, Neighbors or pair (ids, distances)
        Of every row. Distances are computed again; a row itself, -1 and a neighbour's second mention do not count.
    sample : int
        Rows that are looked at, drawn by `seed`; 0: all.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.arange(10, dtype=np.float32)[:, None]
    >>> nearwise.measure_recall(rows, nearwise.exact_knn_graph(rows, k=3), sample=0).value
    1.0
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    own_rows = as_rows(rows, "rows", limit)
    pair = as_neighbors(neighbors)
    rest = rest_of_limit(limit, "measure_recall", own_rows)
    with reporting(progress, "measure_recall") as report:
        return RecallEstimate(
            *_core.measure_recall(
                own_rows.array,
                own_rows.type,
                pair.ids,
                pair.distances,
                _options.word(metric, "metric"),
                _options.integer(sample, "sample", 0, 2**62),
                _options.seed(seed),
                device_for(device, own_rows.array),
                _options.thread_count(threads),
                rest,
                _options.word(isa, "isa"),
                report,
            )
        )
