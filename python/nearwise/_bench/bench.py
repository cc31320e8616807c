"""Indexes and libraries compared on the caller's own vectors."""

from __future__ import annotations

import datetime
import os
import tempfile
import time
import warnings
from collections.abc import Sequence
from typing import Any, Unpack, cast, get_args

import numpy as np

from nearwise import _options
from nearwise._bench import choice, methods, report
from nearwise._bench.report import BenchReport
from nearwise._bench.task import Task, prepare
from nearwise._context import Call, SeededSettings, operation
from nearwise._error import ArgumentError, Error
from nearwise._neighbors import Metric, MetricArgument
from nearwise._verb.output import require_creatable

_MOST_VECTORS = 100_000  # by default: some minutes
_MOST_TURNS = 1000


@operation
def bench(
    rows: Any,
    *,
    queries: Any = None,
    k: int | None = 10,
    metric: MetricArgument | None = "sqeuclidean",
    target_recalls: Sequence[float] | None = (0.9, 0.95, 0.99),
    kinds: Sequence[str] | str | None = methods.OWN,
    against: Sequence[str] | str | None = None,
    limit: int | str | None = _MOST_VECTORS,
    query_count: int | None = 1000,
    repeat: int | None = 3,
    output: str | os.PathLike[str] | None = None,
    title: str | None = "",
    **settings: Unpack[SeededSettings],
) -> BenchReport:
    """Measures the indexes of nearwise and of other libraries on these vectors, in one interleaved run.

    Recall against queries/s of batches and latency of single queries, with time to build, memory and bytes on disk.
    Each index has a process of its own and is searched with settings from fast to thorough; the settings that matter
    take turns. 100,000 vectors take some minutes. All indexes are in memory at once.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.knn`, in host memory. A mapped file (`nearwise.read_vectors`) is read as far as it is used.
    queries : array [queries, dim], optional
        Queries as they will be asked. Default: a random sample of `rows`, taken out of the base.
    k : int
        Neighbors of each query.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        As in `nearwise.knn`. For cosine, libraries without it get vectors scaled to length 1.
    target_recalls : sequence of float
        Recalls to recommend indexes for.
    kinds : sequence of {"exact", "ivf_flat", "ivf_pq", "graph"}
        Indexes of nearwise to measure.
    against : sequence of {"faiss", "hnswlib", "usearch", "scann", "pynndescent"}, optional
        Other libraries, which must be installed. Default: those that are. Several settings of their construction are
        measured.
    limit : int or "all"
        Vectors to search among: if there are more, a random sample of them.
    query_count : int
        Queries, in one batch: a random sample if there are more. Without `queries` at most a fifth of the vectors.
    repeat : int
        Runs of each setting.
    output : path, optional
        An .html file for the report, next to which a .json file is written. Needs matplotlib
        (`pip install nearwise[bench]`).
    title : str
        What the page calls the vectors.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`; the device is "cpu". memory_limit holds for each index by itself; another library that
        needs more is left out, where the system is Linux.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.random.default_rng(0).standard_normal((2000, 16), dtype=np.float32)
    >>> report = nearwise.bench(rows, kinds="exact", against=[], target_recalls=[0.95], repeat=1)
    >>> report
    <nearwise.BenchReport: 1 indexes of 1600 vectors of 16 elements>
    >>> report.fields["methods"][0]["measurements"][0]["recall"]
    1.0
    """
    started = time.monotonic()
    call = Call("bench", settings)
    if call.context.device not in (None, "cpu"):
        raise Error(f"bench: it measures on the CPU, got device {call.context.device!r}", "unsupported")
    targets = _targets(target_recalls)
    # Processes are for this call only: `import nearwise` is quicker without them.
    from nearwise._bench import measure
    from nearwise._verb import machine

    chosen = methods.select(
        methods.words(kinds, "kinds"), None if against is None else methods.words(against, "against")
    )
    if output is not None:
        for path in report.files_of(output):
            require_creatable(path)
        report.require_matplotlib()
    conditions = machine.describe()
    with tempfile.TemporaryDirectory(prefix="nearwise-bench-") as folder, call:
        task = prepare(
            folder,
            rows,
            queries,
            limit=None if isinstance(limit, str) and limit == "all" else _options.count(limit, "limit"),
            query_count=_options.count(query_count, "query_count"),
            k=_options.count(k, "k"),
            metric=cast("Metric", _options.choice(_options.metric(metric), "metric", get_args(Metric))),
            targets=targets,
            threads=call.context.threads or machine.cpus(),
            context=call.context,
        )
        turns = _options.integer(repeat, "repeat", 1, _MOST_TURNS)
        measured, failed = measure.run(task, chosen.names, turns, call.report)
    left_out = [*chosen.left_out, *({"library": each.method, "reason": each.reason} for each in failed)]
    made = BenchReport(
        {
            "data": _described(task, _options.word(title, "title")),
            "k": task.k,
            "metric": task.metric,
            "target_recalls": list(targets),
            "threads": task.threads,
            "memory_limit": task.memory_limit,
            "seed": task.seed,
            "repeat": turns,
            "machine": conditions,
            "versions": {name: text for each in measured for name, text in each["versions"].items()},
            "date": datetime.date.today().isoformat(),
            "seconds": round(time.monotonic() - started, 1),
            "methods": measured,
            "left_out": left_out,
            "recommendations": choice.recommend(measured, targets, task.queries),
        }
    )
    for each in failed:
        if not each.unsupported:
            warnings.warn(f"{each.method} is left out: {each.reason}", RuntimeWarning, stacklevel=3)
    if output is not None:
        made.write(output)
    return made


def _targets(values: Any) -> tuple[float, ...]:
    given = values if np.iterable(values) else (values,)
    targets = tuple(sorted({_options.target_recall(each, "target_recalls") for each in given}))
    if not targets:
        raise ArgumentError("target_recalls: expected at least one")
    return targets


def _described(task: Task, title: str) -> dict[str, Any]:
    return {
        "title": title,
        "rows": task.rows,
        "of_rows": task.of_rows,
        "dim": task.dim,
        "type": task.type,
        "queries": task.queries,
        "held_out": task.held_out,
    }
