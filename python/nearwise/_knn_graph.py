"""Graphs of every row's nearest other rows."""

from __future__ import annotations

import os
from typing import Any, Literal, Mapping, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._exact import Metric
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


class KnnGraph:
    """What `build_knn_graph` returns. Unpacks as (ids, distances).

    Every row has `degree` different neighbours and never itself, best first, the lower id first in a tie; only where there
    are no more other rows does it end in -1. Distances are those of exact search.

    Attributes
    ----------
    ids : int64 [rows, degree]
    distances : float32 [rows, degree]
    metric : str
    method : "exact" or "descent"
    recall : RecallEstimate
    reached : bool
        Whether recall.low is at least what was asked for.
    rounds : list of GraphRound
    """

    def __init__(self, graph: tuple[Any, str, Any]) -> None:
        neighbors, self.metric, report = graph
        self.neighbors: Neighbors = adopt(neighbors)
        self.method: Literal["exact", "descent"] = report[0]
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
    of threads and on every instruction set. Ctrl-C stops it and raises KeyboardInterrupt.

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
