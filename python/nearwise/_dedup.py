"""Pairs of vectors within a threshold, and the removal of near-duplicates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import Call, Context, Settings, operation
from nearwise._deduplication import Deduplication, adopt_deduplication
from nearwise._error import ArgumentError
from nearwise._neighbors import MetricArgument, RangeNeighbors, adopt_range
from nearwise._plan import Plan, files_of_plan
from nearwise._rows import contiguous
from nearwise._vector_file import Path

GROUPINGS = ("star", "connected")
KEPT = ("first", "medoid")
METHODS = ("auto", "partitions", "pairs")
Method = Literal["auto", "partitions", "pairs"]


def _threshold(operation: str, radius: Any, similarity: Any, metric: Any) -> tuple[float, str]:
    """The threshold of reported distances, and the metric."""
    if (radius is None) == (similarity is None):
        raise TypeError(f"{operation}() takes radius= or similarity=, one of the two")
    if radius is not None:
        return _options.rounded(radius, "radius"), _options.metric("sqeuclidean" if metric is None else metric)
    own = _options.metric("cosine" if metric is None else metric)
    return _core.threshold_of_similarity(metric=own, similarity=_options.number(similarity, "similarity")), own


@operation
def threshold_join(
    rows: Any,
    *,
    radius: float | None = None,
    similarity: float | None = None,
    metric: MetricArgument | None = None,
    work: Path | None = None,
    output: Path | None = None,
    method: Method | None = "auto",
    **settings: Unpack[Settings],
) -> RangeNeighbors:
    """All pairs of vectors within a threshold, each once, by exact search.

    A pair is in the result if and only if its reported distance is within the threshold: the same decision, to the
    last bit, on every instruction set and with any number of threads.

    Parameters
    ----------
    rows : array [rows, dim], or path
        As in `nearwise.knn`; or a file of vectors, which may be larger than memory, with `work` and `output`.
    radius : float
        Largest distance of a pair (inner_product: smallest product), in the metric's own unit.
    similarity : float
        In place of radius, for cosine and inner_product: the smallest similarity of a pair. For cosine a distance of
        at most 1 - similarity, rounded to float32 as distances are.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        Default: cosine with similarity, sqeuclidean with radius.
    work, output : path
        For a file of vectors: runs `nearwise.plan_threshold_join` within `memory_limit` in the folder `work`, where the
        same call resumes after an interruption, removes the intermediate files, and loads the result, `output` (.nw).
    method : {"auto", "partitions", "pairs"}
        For a file of vectors: how `nearwise.plan_threshold_join` finds the pairs. The result is the same.
    context, device, threads, memory_limit, isa, progress
        As in `nearwise.knn`; CUDA devices do not support it (`Error` code unsupported). The number of pairs is not
        known in advance: `memory_limit` is checked while it grows.

    Returns
    -------
    RangeNeighbors
        Of row i, the rows above i that it forms a pair with, ascending; `pairs()` lists all pairs.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[0, 0], [3, 4], [0, 1], [3, 3]], dtype=np.float32)
    >>> nearwise.threshold_join(rows, radius=1.5, metric="euclidean").pairs()
    array([[0, 2],
           [1, 3]])
    """
    if files := _files(rows, work, output, method):
        plan = plan_threshold_join(
            *files, radius=radius, similarity=similarity, metric=metric, method=method,
            context=settings.get("context"),
        )  # fmt: skip
        return cast("RangeNeighbors", _loaded(plan, settings.get("context")))
    threshold, own = _threshold("threshold_join", radius, similarity, metric)
    call = Call("threshold_join", settings)
    return adopt_range(call.run(_core.threshold_join, {"threshold": threshold, "metric": own}, rows=rows))


@operation
def dedup(
    rows: Any,
    *,
    similarity: float | None = None,
    radius: float | None = None,
    metric: MetricArgument | None = None,
    keep: Literal["first", "medoid"] | npt.ArrayLike | None = "first",
    grouping: Literal["star", "connected"] | None = "star",
    work: Path | None = None,
    output: Path | None = None,
    method: Method | None = "auto",
    **settings: Unpack[Settings],
) -> Deduplication:
    """Removes near-duplicate vectors: those within a threshold of a vector that is kept.

    All pairs are compared (`threshold_join`), so none is missed, and decisions do not depend on instruction set or
    threads.

    Parameters
    ----------
    rows : array [rows, dim], or path
        As in `threshold_join`.
    similarity, radius, metric
        What a duplicate is, as in `threshold_join`.
    keep : {"first", "medoid"} or array of scores [rows]
        Which row of a group is kept: the first, the one with the most duplicates, or the one with the highest score;
        the lowest row in a tie.
    grouping : {"star", "connected"}
        star: rows are considered in the order in which `keep` prefers them; a row is kept unless it is a duplicate of
        one that has been kept already, and the nearest such row removes it. So every removed row is a duplicate of the
        row that is kept for it. connected: the connected components of all pairs; one row of each is kept. A removed
        row may be far from the kept one, at the end of a chain of duplicates.
    work, output, method
        For a file of vectors, as in `threshold_join`; the plan is `nearwise.plan_dedup`.
    context, device, threads, memory_limit, isa, progress
        As in `threshold_join`.

    Returns
    -------
    Deduplication
        A named tuple of kept, groups, removed_by, distances and pairs.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 2]], dtype=np.float32)
    >>> found = nearwise.dedup(rows, similarity=0.95)
    >>> found.kept
    array([0, 1])
    >>> found.removed_by
    array([-1, -1,  0,  1])
    """
    if files := _files(rows, work, output, method):
        plan = plan_dedup(
            *files, similarity=similarity, radius=radius, metric=metric, keep=keep, grouping=grouping, method=method,
            context=settings.get("context"),
        )  # fmt: skip
        return cast("Deduplication", _loaded(plan, settings.get("context")))
    ready = _options_of_dedup("dedup", radius, similarity, metric, keep, grouping)
    return adopt_deduplication(Call("dedup", settings).run(_core.dedup, ready, rows=rows))


@operation
def plan_threshold_join(
    vectors: Path,
    work: Path,
    output: Path,
    *,
    radius: float | None = None,
    similarity: float | None = None,
    metric: MetricArgument | None = None,
    method: Method | None = "auto",
    provenance: Mapping[str, str] | None = None,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    isa: str | None = None,
) -> Plan:
    """All pairs of vectors of a file within a threshold, both of which may be larger than memory, as tasks over files.

    The result is that of `threshold_join`, whatever the method.

    Parameters
    ----------
    vectors, work, output, provenance, context, seed, threads, memory_limit, isa
        As in `nearwise.plan_graph`. `nearwise.load` reads the output.
    radius, similarity, metric
        As in `threshold_join`.
    method : {"auto", "partitions", "pairs"}
        "partitions": the vectors of each k-means partition are compared, into which those near its borders are
        copied; for tight thresholds, and not for inner_product. "pairs": all vectors, block by block, in time
        proportional to the square of their number. "auto": the one with the lower cost by a prediction on a sample.
        `Plan.join_report` tells which it is, and the copies.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.array([[0, 0], [3, 4], [0, 1], [3, 3]], dtype=np.float32))
    >>> work, output = os.path.join(folder, "work"), os.path.join(folder, "pairs.nw")
    >>> plan = nearwise.plan_threshold_join(path, work, output, radius=1.5, metric="euclidean", memory_limit="64MiB")
    >>> [task.name for task in plan.tasks]
    ['input', 'join-0000-0000', 'finish']
    >>> plan.run()
    >>> plan.load().pairs()
    array([[0, 2],
           [1, 3]])
    """
    threshold, own = _threshold("plan_threshold_join", radius, similarity, metric)
    arguments = files_of_plan(vectors, work, output, provenance) | {
        "metric": own,
        "threshold": threshold,
        "method": _options.choice(method, "method", METHODS),
    }
    return Plan("threshold_join", arguments, Call("plan_threshold_join", context).context)


@operation
def plan_dedup(
    vectors: Path,
    work: Path,
    output: Path,
    *,
    similarity: float | None = None,
    radius: float | None = None,
    metric: MetricArgument | None = None,
    keep: Literal["first", "medoid"] | npt.ArrayLike | None = "first",
    grouping: Literal["star", "connected"] | None = "star",
    method: Method | None = "auto",
    provenance: Mapping[str, str] | None = None,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    isa: str | None = None,
) -> Plan:
    """The near-duplicates in a file of vectors that may be larger than memory, as tasks over files.

    The result is that of `dedup`, whatever the method.

    Parameters
    ----------
    vectors, work, output, provenance, context, seed, threads, memory_limit, isa
        As in `nearwise.plan_graph`. `nearwise.load` reads the output.
    similarity, radius, metric, keep, grouping
        As in `dedup`.
    method
        As in `plan_threshold_join`.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.array([[1, 0], [0, 1], [1, 0.1], [0.1, 2]], dtype=np.float32))
    >>> work, output = os.path.join(folder, "work"), os.path.join(folder, "dedup.nw")
    >>> plan = nearwise.plan_dedup(path, work, output, similarity=0.95, memory_limit="64MiB")
    >>> plan.run()
    >>> plan.load().kept
    array([0, 1])
    """
    arguments = files_of_plan(vectors, work, output, provenance)
    arguments |= _options_of_dedup("plan_dedup", radius, similarity, metric, keep, grouping)
    arguments["method"] = _options.choice(method, "method", METHODS)
    return Plan("dedup", arguments, Call("plan_dedup", context).context)


def _files(rows: Any, work: Path | None, output: Path | None, method: Any) -> tuple[Path, Path, Path] | None:
    """Those of a plan, if the vectors are a file, to be read block by block."""
    by = _options.choice(method, "method", METHODS)
    if not isinstance(rows, (str, os.PathLike)):
        if work is not None or output is not None or by != "auto":
            raise ArgumentError("work, output and method are for the path of a file of vectors, got an array")
        return None
    if work is None or output is None:
        raise ArgumentError(
            f"rows: the path of a file of vectors needs work=, output= and memory_limit=; "
            f"nearwise.read_vectors({os.fspath(rows)!r}) maps it for a call in memory"
        )
    return rows, work, output


def _loaded(plan: Plan, context: Context | None) -> Any:
    """Runs a plan and loads its result."""
    plan.run(progress=None if context is None else context.progress)
    plan.remove_work()
    return plan.load()


def _options_of_dedup(
    operation: str, radius: Any, similarity: Any, metric: Any, keep: Any, grouping: Any
) -> dict[str, Any]:
    """The arguments of C++ that say what is removed."""
    threshold, own = _threshold(operation, radius, similarity, metric)
    by_name = isinstance(keep, str)
    if by_name:
        _options.choice(keep, "keep", KEPT)
    return {
        "threshold": threshold,
        "metric": own,
        "keeps_medoids": by_name and keep == "medoid",
        "scores": None if by_name else _scores(keep),
        "connected": _options.choice(grouping, "grouping", GROUPINGS) == "connected",
    }


def _scores(values: Any) -> npt.NDArray[np.float64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise ArgumentError(
            f"keep: expected 'first', 'medoid' or a 1-D array of scores, got {array.ndim}-D of dtype {array.dtype}"
        )
    return contiguous(array, np.float64)
