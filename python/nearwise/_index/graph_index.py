"""Graph indexes, for single queries at low latency."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Literal, NamedTuple, Self

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._index.filter import as_filter
from nearwise._index.index_base import Index
from nearwise._index.ivf_search import RecallWarning
from nearwise._knn_graph import KnnGraph
from nearwise._log import logger, warn
from nearwise._neighbors import MetricArgument, Neighbors, RangeNeighbors, adopt, adopt_range
from nearwise._progress import ProgressArgument
from nearwise._recall import RecallEstimate
from nearwise._vector_file import Path


class GraphCalibration(NamedTuple):
    """The default beam of a graph index, and the recall it reaches (`GraphIndex.calibrate`)."""

    target_recall: float
    neighbors: int  #: 10, or all other vectors
    beam: int  #: for k up to 10
    recall: RecallEstimate
    beam_of_100: int  #: for k up to 100, in proportion between and above
    recall_of_100: RecallEstimate

    @property
    def reached(self) -> bool:
        """Whether both recalls of the sample are at least the target."""
        return min(self.recall.value, self.recall_of_100.value) >= self.target_recall


class GraphIndex(Index):
    """A graph of the vectors that searches follow towards the query.

    A search keeps a beam of the nearest vectors found so far: a wider beam finds more of the neighbors and takes
    longer. `build` chooses it for a target recall. Vectors are compared by 8-bit codes in integer arithmetic, and the
    best of the beam by the vectors themselves, which the index keeps. So results are the same, bit for bit, on every
    instruction set, and with any number of threads.

    `add`, `update` and `remove` change the graph without building it anew.

    Copies (`copy.copy`, `copy.deepcopy`, pickling) are independent indexes. Any thread may call any method at any
    time. A search sees the index as it was before or after each call that changes it, never a mixture. A change
    prepares its part while searches go on, and waits for those that run before it puts it in place; changes wait for
    one another.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.random.default_rng(0).standard_normal((2000, 16), dtype=np.float32)
    >>> index = nearwise.GraphIndex.build(rows, target_recall=0.95)
    >>> index
    <nearwise.GraphIndex: 2000 vectors of 16 elements, 48 edges each, sqeuclidean>
    >>> index.search(rows[7], k=3).ids[0], index.calibration.reached
    (np.int64(7), True)
    >>> index.add(rows[:3] + 0.5), index.remove([7]), len(index)
    (3, 1, 2002)
    """

    _knob = "index.search(queries, k, beam=...)"
    _context: Context
    _index: _core.GraphIndex
    _warned: bool

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("a GraphIndex is made by GraphIndex.build(rows), from_knn_graph or nearwise.load(path)")

    @classmethod
    def _of(cls, index: _core.GraphIndex, context: Context) -> Self:
        made = object.__new__(cls)
        made._index = index
        made._context = dataclasses.replace(context, device=index.device, progress=None)
        made._warned = False
        return made

    @classmethod
    def _make(cls, operation: str, rows: Any, context: Context | None, queries: Any, **options: Any) -> Self:
        with Call(operation, context) as call:
            made = _core.make_graph_index(
                rows=call.rows(rows, "rows"),
                queries=None if queries is None else call.rows(queries, "calibration_queries"),
                **options,
                settings=call.settings,
                progress=call.report,
            )
        index = cls._of(made, call.remaining())
        index._log_choice(f"GraphIndex.{operation}")
        index._warn_if_missed(stacklevel=5)
        return index

    @classmethod
    @operation
    def build(
        cls,
        rows: Any,
        *,
        target_recall: float | None = 0.95,
        metric: MetricArgument | None = "sqeuclidean",
        ids: Any = None,
        degree: int | None = 48,
        graph_recall: float | None = 0.95,
        calibration_queries: Any = None,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> GraphIndex:
        """Builds the graph of the vectors, which the index copies, and calibrates the beam.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `nearwise.knn`, in host memory.
        target_recall : float
            Share of the 10 (and of the 100) nearest vectors that a search with the default beam finds; see `calibrate`.
        metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
            Of all searches, as in `nearwise.knn`.
        ids : array [rows] of integers, optional
            What searches return for the vectors: 0 or larger, all different. Default: row numbers.
        degree : int
            Edges per vector, at most: a multiple of 16 up to 128. More take more memory and need a narrower beam.
        graph_recall : float
            Recall of the k-NN graph that edges are chosen from.
        calibration_queries : array [queries, dim], optional
            Queries as they will be asked, to calibrate with: where they differ from the vectors, as questions differ
            from passages, vectors of the index are too easy to find. Default: a sample of the vectors.
        context, seed, device, threads, memory_limit, isa, progress
            See `nearwise.Context`. The index remembers them for all its methods.
        """
        options = _build_options(target_recall, metric, ids, degree, graph_recall)
        return cls._make("build", rows, context, calibration_queries, graph=None, **options)

    @classmethod
    @operation
    def from_knn_graph(
        cls,
        graph: KnnGraph,
        rows: Any,
        *,
        target_recall: float | None = 0.95,
        ids: Any = None,
        degree: int | None = 48,
        calibration_queries: Any = None,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> GraphIndex:
        """Chooses the edges from a k-NN graph of the same vectors, 30 to 60 neighbors each.

        Parameters
        ----------
        graph : KnnGraph
            Of `nearwise.build_knn_graph` or `nearwise.load`. Its metric is that of the index. A sample of its
            distances is compared with the vectors.
        rows : array [rows, dim]
            The vectors of the graph.
        target_recall, ids, degree, calibration_queries, context, seed, device, threads, memory_limit, isa, progress
            As in `build`; ids ascend.
        """
        if not isinstance(graph, KnnGraph):
            raise TypeError(f"graph: expected a KnnGraph, got {type(graph).__name__}")
        given_ids, distances, metric, _ = graph._given()
        options = _build_options(target_recall, metric, ids, degree, 0.95)
        return cls._make("from_knn_graph", rows, context, calibration_queries, graph=(given_ids, distances), **options)

    @operation
    def add(
        self,
        rows: Any,
        ids: Any = None,
        *,
        on_duplicate: Literal["refuse", "replace", "keep"] | None = "refuse",
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> int:
        """Adds vectors to the graph. If anything is wrong, none is added.

        Returns the number of vectors added or replaced. New vectors are encoded like the existing ones: elements
        outside the range of those are clamped. The whole graph is rebuilt, with `graph_recall` 0.95, if there are more
        new vectors than old ones; if the index has fewer than 8,192 vectors and their number passes a power of two; if
        all elements so far were integers of one byte and a new one is not; or, for inner_product, if a new vector is
        more than 5 % longer than all old ones. A calibrated index is calibrated again, for the same target recall, on a
        sample of its vectors, whenever their number passes a power of two; the beam never becomes narrower.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `nearwise.knn`, in host memory, of the element type of the index.
        ids : array [rows] of integers, optional
            What searches return for these vectors: 0 or larger, all different. Default: consecutive numbers from
            `next_id`.
        on_duplicate : {"refuse", "replace", "keep"}
            What to do with ids that the index holds already: an error, or the new vector replaces the old one, or
            the old one stays.
        context, progress
            See `nearwise.Context`.
        """
        return self._add(rows, ids, on_duplicate, context)

    @operation
    def compact(self, *, context: Context | None = None, progress: ProgressArgument = None) -> None:
        """Takes removed vectors out of the graph and returns their space to the system."""
        with Call("compact", context) as call:
            self._index.compact(settings=call.settings_on(self._index.device), progress=call.report)

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        beam: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k nearest vectors that the search finds for each query.

        Parameters
        ----------
        queries : array [queries, dim], or one vector [dim]
            As in `nearwise.knn`, in host memory.
        k : int
            At least 1. If there are fewer vectors, rows end in id -1 at distance +inf (-inf for inner_product).
        beam : int, optional
            At least k. Default: that of the calibration.
        filter, exclude : optional
            Ids that may be returned, and that may not, as in `Ivf.search`. If few are allowed, they are compared
            exactly; else the beam becomes wider.
        context, progress
            See `nearwise.Context`; progress counts queries.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k]; [k] for one vector.
        """
        with Call("search", context) as call:
            found = self._index.search(
                queries=call.rows(queries, "queries"),
                k=_options.count(k, "k"),
                beam=_options.optional_count(beam, "beam"),
                filter=as_filter(filter, exclude),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )
        if not self._warned and beam is None:
            self._warn_if_missed(stacklevel=4)
        return adopt(found, call)

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        beam: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> RangeNeighbors:
        """The vectors within `radius` of each query that searches with growing k find.

        A query with very many is answered by exact search.

        Parameters
        ----------
        queries : array [queries, dim]
        radius : float
            As in `nearwise.range_search`.
        beam, filter, exclude, context, progress
            As in `search`.

        Returns
        -------
        RangeNeighbors
            A named tuple of offsets, int64 [queries + 1], ids, int64, and distances, float32.
        """
        with Call("range_search", context) as call:
            found = self._index.range_search(
                queries=call.rows(queries, "queries"),
                radius=_options.rounded(radius, "radius"),
                beam=_options.optional_count(beam, "beam"),
                filter=as_filter(filter, exclude),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )
        return adopt_range(found)

    @operation
    def calibrate(
        self,
        calibration_queries: Any = None,
        *,
        target_recall: float | None = 0.95,
        sample: int | None = 1000,
        context: Context | None = None,
        seed: int | None = None,
        progress: ProgressArgument = None,
    ) -> GraphCalibration:
        """Sets the default beam to the smallest that reaches the target recall.

        Measured against exact search. Warns if the target is not reached; the beam is then the best one tried.

        Parameters
        ----------
        calibration_queries : array [queries, dim], optional
            Default: a sample of the vectors, each searched for as if it were not in the index.
        target_recall : float
            Share of the 10, and of the 100, nearest vectors that are found. The lower end of its 95 % interval must
            reach it where possible, so that it holds for other queries.
        sample : int
            Vectors to search for.
        context, seed, progress
            See `nearwise.Context`.
        """
        with Call("calibrate", context) as call:
            found = _calibration(
                self._index.calibrate(
                    queries=None
                    if calibration_queries is None
                    else call.rows(calibration_queries, "calibration_queries"),
                    target_recall=_options.target_recall(target_recall),
                    sample=_options.count(sample, "sample"),
                    settings=call.settings_on(self._index.device),
                    progress=call.report,
                )
            )
        self._log_choice("GraphIndex.calibrate")
        self._warn_if_missed(stacklevel=4)
        return found

    def _log_choice(self, operation: str) -> None:
        found = self.calibration
        if found is not None:
            logger.info("%s: %r: beam %d, recall %s of %d", operation, self, found.beam, found.recall, found.neighbors)

    def _warn_if_missed(self, stacklevel: int) -> None:
        found = self.calibration
        if found is not None and not found.reached:
            self._warned = True
            warn(
                f"target recall {found.target_recall} is not reached: searches find {found.recall.value:.3f} of the "
                f"{found.neighbors} nearest vectors, and {found.recall_of_100.value:.3f} of the 100 nearest",
                RecallWarning,
                stacklevel,
            )

    @operation
    def export_hnswlib(self, path: Path) -> None:
        """Writes a file that hnswlib loads: build here, serve there.

        `hnswlib.Index(space, dim).load_index(path)` with space "l2" (for sqeuclidean and euclidean), "ip" or "cosine".
        Vectors become float32; labels are the ids.
        """
        self._index.export_hnswlib(path=os.fspath(path))

    @operation
    def export_svs(self, folder: Path) -> None:
        """Writes a folder that SVS loads (package scalable-vs, 0.5): build here, serve there.

        `svs.Vamana(f"{folder}/config", svs.GraphLoader(f"{folder}/graph"), vectors, distance)`, with `vectors` a loader
        of "vectors.fvecs", compressed or not, and distance L2, or MIP for inner_product. Vectors become float32,
        of length 1 for cosine. SVS returns row numbers: places in `ids()`. After changes, `compact()` comes first.
        """
        self._index.export_svs(folder=os.fspath(folder))

    @operation
    def export_diskann(self, folder: Path) -> None:
        """Writes a folder that DiskANN loads in memory (package diskannpy, 0.7): build here, serve there.

        `diskannpy.StaticMemoryIndex(folder, num_threads=1, initial_search_complexity=64)`. Vectors become float32, of
        length 1 for cosine; queries of cosine must have length 1 too. DiskANN returns row numbers: places in `ids()`.
        """
        self._index.export_diskann(folder=os.fspath(folder))

    @property
    def next_id(self) -> int:
        """One above the largest id ever added: the first that `add` gives to vectors without ids."""
        return self._index.next_id

    @property
    def degree(self) -> int:
        """Edges per vector, at most."""
        return self._index.degree

    @property
    def entries(self) -> int:
        """Vectors that searches may begin with."""
        return self._index.entries

    @property
    def bytes_per_vector(self) -> int:
        """Bytes of edges and codes per vector, in addition to the vector itself and its id."""
        return self._index.bytes_per_vector

    @property
    def beam(self) -> int:
        """The default beam for k up to 10: calibrated, or assigned. It is saved."""
        return self._index.beam

    @beam.setter
    @operation
    def beam(self, beam: int) -> None:
        self._index.beam = _options.count(beam, "beam")

    @property
    def calibration(self) -> GraphCalibration | None:
        """The last calibration; None before the first one, or after `beam` was assigned."""
        fields = self._index.calibration
        return None if fields is None else _calibration(fields)

    def __repr__(self) -> str:
        return (
            f"<nearwise.GraphIndex: {self.size} vectors of {self.dim} elements, {self.degree} edges each, "
            f"{self.metric}>"
        )


def _build_options(target_recall: Any, metric: Any, ids: Any, degree: Any, graph_recall: Any) -> dict[str, Any]:
    return {
        "target_recall": _options.target_recall(target_recall),
        "metric": _options.metric(metric),
        "ids": None if ids is None else _options.ids(ids),
        "degree": _options.count(degree, "degree"),
        "graph_recall": _options.target_recall(graph_recall, "graph_recall"),
    }


def _calibration(fields: Any) -> GraphCalibration:
    target, neighbors, beam, recall, beam_of_100, recall_of_100 = fields
    return GraphCalibration(
        target, neighbors, beam, RecallEstimate(*recall), beam_of_100, RecallEstimate(*recall_of_100)
    )
