"""Searches of inverted files, and the calibration of their defaults."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._index.filter import as_filter
from nearwise._log import logger, warn
from nearwise._neighbors import Neighbors, RangeNeighbors, adopt, adopt_range
from nearwise._progress import ProgressArgument
from nearwise._recall import RecallEstimate


class RecallWarning(UserWarning):
    """Searches of an index find fewer of the nearest vectors than was asked for when it was built."""


class RecallAtK(NamedTuple):
    """The recall of searches for k neighbors (`Calibration.other_k`)."""

    k: int
    probes: int
    recall: RecallEstimate
    recall_without_rerank: RecallEstimate  #: with the same probes


class Calibration(NamedTuple):
    """The default probes and candidates of an index, and the recall they reach (`Ivf.calibrate`)."""

    probes: int
    candidates: int | None  #: re-ranked; None: without re-ranking
    recall: RecallEstimate
    recall_without_rerank: RecallEstimate  #: with the same probes
    target_recall: float
    neighbors: int  #: 10, or all other vectors
    rows: int  #: size of the index when it was calibrated
    other_k: tuple[RecallAtK, ...]  #: k = 1 and the largest k; searches for other k take probes in between

    @property
    def reached(self) -> bool:
        """Whether the recall of the sample is at least the target, for k = `neighbors`."""
        return self.recall.value >= self.target_recall


class SearchPlan(NamedTuple):
    """How a search under a filter runs (`Ivf.search` with `explain=True`)."""

    exact: bool  #: all allowed vectors are compared by their distances; else by lists
    allowed: int  #: vectors of the index that the filter allows
    lists: int  #: that hold them
    probes: int  #: of these lists, for a query with average lists; 0 if exact
    scanned: int  #: allowed vectors to scan for each query
    exact_cost: float  #: estimated ns of a query on one thread; infinite without vectors
    lists_cost: float


class Ivf:
    """The searches of `nearwise.Ivf`, which adds the rest to it; the name is that of error messages."""

    _index: _core.Ivf
    _warned: bool  # of the recall, once
    _checked: set[tuple[int, bool]]  # k and codes_only of searches that need no warning

    @overload
    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int | None = None,
        codes_only: bool | None = False,
        rerank: Any = None,
        candidates: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        scanned: int | None = None,
        explain: Literal[False] | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors: ...

    @overload
    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int | None = None,
        codes_only: bool | None = False,
        rerank: Any = None,
        candidates: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        scanned: int | None = None,
        explain: Literal[True],
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> SearchPlan: ...

    @operation
    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int | None = None,
        codes_only: bool | None = False,
        rerank: Any = None,
        candidates: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        scanned: int | None = None,
        explain: bool | None = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> Neighbors | SearchPlan:
        """The k best vectors in the lists nearest to each query.

        Parameters
        ----------
        queries : array [queries, dim], or one vector [dim]
            As in `nearwise.knn`, in host memory.
        k : int
            At least 1. If the lists hold fewer vectors, rows end in id -1 at distance +inf (-inf for inner_product).
        probes : int, optional
            Lists to scan: more take longer and find more. Default: calibrated by `build`, for k up to 100.
        codes_only : bool
            By default the best `candidates` by their codes are compared with the query again, by the vectors that the
            index keeps, and the best k returned with the distances to those. True: codes decide.
        rerank : array [rows, dim], optional
            Vectors to re-rank by instead: row i has id i. An array, or a mapped file (`read_vectors`). A sample is
            compared with the index.
        candidates : int, optional
            Vectors to re-rank, at least k. Default: `Ivf.candidates`, in proportion for k above 10.
        filter, exclude : optional
            Ids that may be returned, and that may not: a boolean mask by id, ids, one sequence of ids for each query,
            or a `nearwise.Filter`, which remembers the vectors of this index that it allows. Lists without any are not
            probed. Without `probes`, each query probes as many lists as it takes to scan `scanned` allowed vectors, or
            all allowed vectors are compared exactly where that is faster. Ids excluded for single queries, and up to
            256 for all, change the search only where they are near: a query with 50 of them among its nearest is
            searched as if for k + 50. Rows are padded where fewer than k are allowed.
        scanned : int, optional
            Under a filter: allowed vectors to scan for each query. Default: as many as a search without a filter scans.
        explain : bool, optional
            Return the plan of the search under a filter instead of searching.
        context, progress
            See `nearwise.Context`; progress counts queries.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k]; [k] for one vector. With
            `explain`: a `nearwise.SearchPlan`.
        """
        with Call("search", context) as call:
            given = call.array(queries, "queries")
            rows = given.bound("queries")
            explains = explain is not None and _options.flag(explain, "explain")
            options: dict[str, Any] = {
                "k": _options.count(k, "k"),
                "probes": _options.optional_count(probes, "probes"),
                "codes_only": _options.flag(codes_only, "codes_only"),
                "rerank": None if rerank is None else call.rows(rerank, "rerank"),
                "candidates": _options.optional_count(candidates, "candidates"),
                "filter": as_filter(filter, exclude, None if explains else given.array.shape[0]),
                "scanned": _options.optional_count(scanned, "scanned"),
            }
            settings = call.settings_on(self._index.device)
            if explains:
                return SearchPlan(*self._index.explain(queries=rows, settings=settings, **options))
            found = self._index.search(queries=rows, settings=settings, progress=call.report, **options)
        if not self._warned and probes is None:
            kind = (options["k"], bool(codes_only) and rerank is None)
            if kind not in self._checked:
                self._warn_of_recall(*kind, stacklevel=4)
        return adopt(found, call)

    @operation
    def range_search(
        self,
        queries: Any,
        radius: float,
        *,
        probes: int | None = None,
        filter: Any = None,
        exclude: Any = None,
        context: Context | None = None,
        progress: ProgressArgument = None,
    ) -> RangeNeighbors:
        """All vectors within `radius` of each query, in the lists nearest to it.

        By the distance to the vectors that the index keeps, or else to the decoded ones.

        Parameters
        ----------
        queries : array [queries, dim]
        radius : float
            As in `nearwise.range_search`.
        probes, filter, exclude, context, progress
            As in `search`; progress counts lists.

        Returns
        -------
        RangeNeighbors
            A named tuple of offsets, int64 [queries + 1], ids, int64, and distances, float32.
        """
        with Call("range_search", context) as call:
            found = self._index.range_search(
                queries=call.rows(queries, "queries"),
                radius=_options.rounded(radius, "radius"),
                probes=_options.optional_count(probes, "probes"),
                filter=as_filter(filter, exclude),
                settings=call.settings_on(self._index.device),
                progress=call.report,
            )
        return adopt_range(found)

    def _warn_of_recall(self, k: int, codes_only: bool, stacklevel: int) -> None:
        """Once per index, if searches with default probes find less than its calibration promised, or nobody knows."""
        found = self.calibration
        message = None if found is None else _doubts(found, k, codes_only)
        if message is None:
            self._checked.add((k, codes_only))
        else:
            self._warned = True
            warn(message, RecallWarning, stacklevel)

    @operation
    def rerank(
        self, queries: Any, candidates: Any, k: int, *, context: Context | None = None
    ) -> Neighbors:
        """The best k of each query's candidates, by the distance to the vectors that the index keeps.

        Parameters
        ----------
        candidates : array [queries, n] of ids, or [n] for one vector
            From any source, such as a search by words. -1 and ids that the index does not hold are left out.
        """
        with Call("rerank", context) as call:
            rows = call.rows(queries, "queries")
            given = np.atleast_2d(candidates) if call.one_query else candidates
            found = self._index.rerank(
                queries=rows,
                candidates=_options.id_matrix(given, "candidates"),
                k=_options.count(k, "k"),
                settings=call.settings_on(self._index.device),
            )
        return adopt(found, call)

    @operation
    def calibrate(
        self,
        rows: Any = None,
        *,
        target_recall: float | None = 0.9,
        queries: int | None = 500,
        rerank: bool | None = True,
        largest_k: int | None = 100,
        context: Context | None = None,
        seed: int | None = None,
        progress: ProgressArgument = None,
    ) -> Calibration:
        """Sets the default probes and candidates to the cheapest that reach the target recall.

        Measured against exact search on vectors of the index, none of which counts as its own neighbor. `build`
        calls it; call it after `add`, and again when many vectors were added or removed. Warns if even all
        lists do not reach the target; the probes are then those that find the same share of what all lists
        find.

        Parameters
        ----------
        rows : array [rows, dim], optional
            The vectors by id, to compare with. Default: the vectors that the index keeps.
        target_recall : float
            Share of the k nearest vectors among the first k results, for k = 10, k = 1 and `largest_k`. The lower end
            of its 95 % interval must reach it where possible, so that it holds for vectors outside the sample.
        queries : int
            Size of the sample. The error of the recall is about 0.3 / sqrt(queries).
        rerank : bool
            Whether searches will re-rank; if so, `candidates` is calibrated as well. False: for `codes_only`.
        largest_k : int
            Searches for up to as many neighbors reach the target. Those for more probe lists in proportion, and warn.
        context, seed, progress
            See `nearwise.Context`. The default seed is that of the training.
        """
        with Call("calibrate", context) as call:
            self._checked.clear()
            found = _calibration(
                self._index.calibrate(
                    rows=None if rows is None else call.rows(rows, "rows"),
                    target_recall=_options.target_recall(target_recall),
                    queries=_options.count(queries, "queries"),
                    rerank=_options.flag(rerank, "rerank"),
                    largest_k=_options.count(largest_k, "largest_k"),
                    settings=call.settings_on(self._index.device),
                    progress=call.report,
                )
            )
        self._log_choice(f"{type(self).__name__}.calibrate")
        self._warn_if_missed(stacklevel=4)
        return found

    @property
    def probes(self) -> int:
        """The default number of lists to scan: calibrated, or assigned. It is saved.

        That of searches for 10 neighbors; calibrated ones for more probe more lists (`Calibration.other_k`).
        """
        return self._index.probes

    @probes.setter
    @operation
    def probes(self, probes: int) -> None:
        self._checked.clear()
        self._index.probes = _options.count(probes, "probes")

    @property
    def candidates(self) -> int:
        """The default number of vectors to re-rank, for k up to 10."""
        return self._index.candidates

    @property
    def calibration(self) -> Calibration | None:
        """The last calibration; None before the first one, or after `probes` was assigned.

        It does not follow later changes of the index: compare its `rows` with `size`.
        """
        fields = self._index.calibration
        return None if fields is None else _calibration(fields)

    def _log_choice(self, operation: str) -> None:
        found = self.calibration
        if found is not None:
            logger.info(
                "%s: %r: %d probes, %s candidates, recall %s of %d",
                *(operation, self, found.probes, found.candidates or "no", found.recall, found.neighbors),
            )

    def _warn_if_missed(self, stacklevel: int) -> None:
        found = self.calibration
        if found is not None and not found.reached:
            self._warned = True
            warn(
                f"target recall {found.target_recall} cannot be reached: {found.recall.value:.3f} of the "
                f"{found.neighbors} nearest found in {found.probes} of {self._index.lists} lists",
                RecallWarning,
                stacklevel,
            )


def _doubts(found: Calibration, k: int, codes_only: bool) -> str | None:
    """Why searches for k may find less than the target recall: the next k below and above decide their probes."""
    own = RecallAtK(found.neighbors, found.probes, found.recall, found.recall_without_rerank)
    every = sorted((own, *found.other_k))
    measured = [one for one in every if one.k <= k][-1:] + [one for one in every if one.k >= k][:1]
    for one in measured:
        recall = one.recall_without_rerank if codes_only else one.recall
        if recall.value < found.target_recall:
            nearest = "nearest vectors" if one.k == 1 else f"{one.k} nearest vectors"
            return (
                f"searches of this index find {recall.value:.3f} of the {nearest}, less than its target recall "
                f"{found.target_recall}"
            )
    largest = measured[-1].k
    if largest < k and largest + 1 < found.rows:
        return (
            f"the recall of this index is calibrated for k up to {largest}, and not known for k = {k}: call "
            f"calibrate(largest_k={k})"
        )
    return None


def _calibration(fields: Any) -> Calibration:
    probes, candidates, recall, without_rerank, target, neighbors, rows, others = fields
    other_k = tuple(
        RecallAtK(k, of_k, RecallEstimate(*one), RecallEstimate(*other)) for k, of_k, one, other in others
    )
    return Calibration(
        probes,
        candidates,
        RecallEstimate(*recall),
        RecallEstimate(*without_rerank),
        target,
        neighbors,
        rows,
        other_k,
    )
