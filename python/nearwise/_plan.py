"""Work larger than memory, as tasks from files to files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

from nearwise import _core, _options
from nearwise._context import Call, Context, operation
from nearwise._deduplication import Deduplication
from nearwise._index.graph_index import GraphIndex
from nearwise._index.ivf_base import Ivf, Vectors
from nearwise._knn_graph import KnnGraph
from nearwise._log import logger
from nearwise._neighbors import MetricArgument, RangeNeighbors
from nearwise._progress import ProgressArgument
from nearwise._storage import load
from nearwise._vector_file import Path

Kind = Literal["graph", "index", "graph_index", "threshold_join", "dedup"]
TaskOutcome = Literal["done", "done before", "not needed"]


class PlannedTask(NamedTuple):
    """A task of a plan. Bytes and seconds are estimates; memory_bytes is a bound.

    name : str
    after : list of str
        Names of the tasks whose outputs it reads.
    read_bytes, written_bytes, memory_bytes : int
    seconds : float
    if_needed : bool
        A task of a further pass: does nothing if the previous passes have reached the target recall.
    """

    name: str
    after: list[str]
    read_bytes: int
    written_bytes: int
    memory_bytes: int
    seconds: float
    if_needed: bool


class JoinReport(NamedTuple):
    """How a plan of a join or a deduplication finds the pairs; it is complete with either method.

    method : "partitions" or "pairs"
    partitions : int
        0 of "pairs".
    predicted_copies, predicted_comparisons : float
        Vectors stored per vector, the one at home in its partition included, and pairs that are compared.
    copies, comparisons : float or None
        Found by "partitions"; None before all pairs are compared, and after `Plan.remove_work`.
    """

    method: str
    partitions: int
    predicted_copies: float
    predicted_comparisons: float
    copies: float | None
    comparisons: float | None


class Plan:
    """The result of `plan_graph`, `plan_index`, `plan_graph_index`, `plan_threshold_join` and `plan_dedup`.

    A plan can be pickled: it is made again from its arguments, so that other processes can run its tasks.

    Attributes
    ----------
    tasks : list of PlannedTask
        In an order in which they can run; the last one publishes the result.
    memory_bytes : int
        The largest need of a task.
    disk_bytes : int
        The largest need of the work folder and the result, if tasks run in their order.
    seconds : float
    """

    def __init__(self, kind: Kind, arguments: dict[str, Any], context: Context) -> None:
        self._kind: Kind = kind
        self._arguments = arguments
        self._planned = context  # not _context: a load tells what its call gives from what the plan has
        settings = Call(f"plan_{kind}", context).settings
        make: Any = getattr(_core, f"plan_{kind}")
        self._plan: _core.Plan = make(**arguments, settings=settings)
        self.tasks = [PlannedTask(*task) for task in self._plan.tasks()]
        self.memory_bytes: int = self._plan.memory_bytes()
        self.disk_bytes: int = self._plan.disk_bytes()
        self.seconds: float = self._plan.seconds()

    def __reduce__(self) -> Any:
        return Plan, (self._kind, self._arguments, self._planned)

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        work = self._arguments["work"]
        return (
            f"<nearwise.Plan: {len(self)} tasks in {work!r}, {self.disk_bytes} bytes of disk, about "
            f"{self.seconds:.0f} s>"
        )

    @operation
    def with_threads(self, threads: int) -> Plan:
        """The same plan with another number of threads per task: the result does not depend on it."""
        return Plan(self._kind, self._arguments, self._planned.merged(Context(threads=threads)))

    @operation
    def check_disk(self) -> None:
        """Raises `Error` with code cannot_create if the disks have too little free space."""
        self._plan.check_disk()

    @operation
    def join_report(self) -> JoinReport:
        """How a plan of `plan_threshold_join` or `plan_dedup` finds the pairs. Other plans raise an `Error`."""
        return JoinReport(*self._plan.join_report())

    @operation
    def is_done(self, task: str) -> bool:
        """Whether its output exists (or was deleted after its last reader had finished), or it is not needed."""
        return self._plan.is_done(task=_options.word(task, "task"))

    @operation
    def run_task(self, task: str, *, context: Context | None = None) -> TaskOutcome:
        """Runs one task by its name; does nothing if its output exists and is valid.

        The tasks whose outputs it reads must have run. Several processes may run tasks of one plan at the same time.
        """
        settings = Call("run_task", self._with(context)).settings
        return cast("TaskOutcome", self._plan.run_task(task=_options.word(task, "task"), settings=settings))

    @operation
    def run(self, *, context: Context | None = None, progress: ProgressArgument = None) -> None:
        """Runs all tasks in order. After an interruption the next call resumes."""
        with Call("plan", self._with(context)) as call:
            outcomes = self._plan.run(settings=call.settings, progress=call.report)
        work = self._arguments["work"]
        for task, outcome in outcomes:
            if outcome == "repaired":
                logger.warning("plan in %s: the output of %s was damaged or lost, and was made again", work, task)
        done, before = ([outcome for _, outcome in outcomes].count(each) for each in ("done", "done before"))
        logger.info("plan in %s: %d tasks done, %d were done before", work, done, before)

    def _with(self, context: Context | None) -> Context:
        return self._planned if context is None else self._planned.merged(context)

    @operation
    def remove_work(self) -> int:
        """Deletes the files of the work folder once the result is published, and returns their bytes.

        The record of finished tasks and the checksums of the vectors stay, so that `run` does nothing afterwards, or
        says that the vectors have changed.
        """
        return self._plan.remove_work()

    @operation
    def load(self, *, context: Context | None = None) -> KnnGraph | Ivf | GraphIndex | RangeNeighbors | Deduplication:
        """The published result in memory, or the index, mapped, without the plan's memory limit.

        Parameters
        ----------
        context
            See `nearwise.Context`: threads, memory_limit, device and isa. The object remembers them.
        """
        settings = dataclasses.replace(self._planned, memory_limit=None).merged(context or Context()).remembered()
        expected: dict[Kind, Any] = {
            "graph": KnnGraph, "index": Ivf, "graph_index": GraphIndex, "threshold_join": RangeNeighbors,
            "dedup": Deduplication,
        }  # fmt: skip
        result = load(self._arguments["output"], expected[self._kind], context=settings)
        return cast("KnnGraph | Ivf | GraphIndex | RangeNeighbors | Deduplication", result)


@operation
def plan_graph(
    vectors: Path,
    work: Path,
    output: Path,
    degree: int | None = 10,
    *,
    metric: MetricArgument | None = "sqeuclidean",
    target_recall: float | None = 0.95,
    method: Literal["partitions", "pairs"] | None = "partitions",
    provenance: Mapping[str, str] | None = None,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    isa: str | None = None,
) -> Plan:
    """The k-NN graph of a vector file that may be larger than memory, as tasks over files.

    The same file, options, memory limit and seed give the same tasks and the same bytes, wherever the tasks run
    and however often they are interrupted. Nothing is written before a task runs.

    Parameters
    ----------
    vectors : path
        A file that `nearwise.read_vectors` reads.
    work : path
        A folder for the files between tasks, created if missing. `Plan.remove_work` empties it afterwards.
    output : path
        The graph, a .nw file for `nearwise.load`.
    degree, metric, target_recall
        As in `nearwise.build_knn_graph`; a target recall of 1 is refused.
    method : {"partitions", "pairs"}
        "partitions": overlapping partitions, a fixed number of passes over the vectors. "pairs": the graphs of
        every two shards of the file are merged (GGM), which takes as many passes as there are other shards.
    provenance : mapping of strings
        Saved with the graph.
    context, seed, threads, memory_limit, isa
        See `nearwise.Context`. A memory limit is required: every task stays within it. Mapped files do not count.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.random.default_rng(1).random((1000, 4), dtype=np.float32))
    >>> work, output = os.path.join(folder, "work"), os.path.join(folder, "graph.nw")
    >>> plan = nearwise.plan_graph(path, work, output, memory_limit="64MiB")
    >>> [task.name for task in plan.tasks if not task.if_needed]
    ['input', 'sample', 'train-0', 'assign-0-0000', 'build-0-0000', 'merge-0-0000', 'measure-0', 'finish']
    >>> plan.run_task("input"), plan.run_task("input")
    ('done', 'done before')
    >>> plan.run()
    >>> plan.load().reached
    True
    """
    arguments = _files(vectors, work, output, metric, target_recall, provenance) | {
        "degree": _options.count(degree, "degree"),
        "method": _options.word(method, "method"),
    }
    return Plan("graph", arguments, Call("plan_graph", context).context)


@operation
def plan_index(
    vectors: Path,
    work: Path,
    output: Path,
    *,
    codec: Literal["pq", "lsq", "flat"] | None = "pq",
    lists: int | None = None,
    code_bytes: int | None = None,
    bits: Literal[4, 8] | None = 8,
    metric: MetricArgument | None = "sqeuclidean",
    iterations: int | None = 10,
    training_rows: int | None = None,
    vector_storage: Vectors | None = "keep",
    target_recall: float | None = 0.9,
    provenance: Mapping[str, str] | None = None,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    isa: str | None = None,
) -> Plan:
    """An inverted file of a vector file, both of which may be larger than memory, as tasks over files.

    Lists and codebooks are trained on a sample, vectors are encoded block by block, lists are assembled, and
    the index is calibrated. The result is that of `IvfPq.build`, `IvfLsq.build` or `IvfFlat.build`.

    Parameters
    ----------
    vectors, work, output, provenance, context, seed, threads, memory_limit, isa
        As in `nearwise.plan_graph`. Fewer vectors are trained on where the memory limit requires it.
    codec : {"pq", "lsq", "flat"}
        What the index stores of a vector.
    vector_storage : {"keep", "f16", "u8", "none"}
        What the index keeps of the vectors: `vectors` of `nearwise.IvfPq.build`.
    lists, code_bytes, bits, metric, iterations, training_rows, target_recall
        As in `nearwise.IvfPq.build`. code_bytes is of "pq" and "lsq", bits of "pq" only.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.random.default_rng(1).random((1000, 4), dtype=np.float32))
    >>> work, output = os.path.join(folder, "work"), os.path.join(folder, "index.nw")
    >>> plan = nearwise.plan_index(path, work, output, memory_limit="64MiB")
    >>> [task.name for task in plan.tasks]
    ['input', 'train', 'add-0000', 'gather', 'finish']
    >>> plan.run()
    >>> len(plan.load())
    1000
    """
    if _options.word(codec, "codec") not in ("pq", "lsq", "flat"):
        raise ValueError(f"codec: expected 'pq', 'lsq' or 'flat', got {codec!r}")
    if codec == "flat" and code_bytes is not None:
        raise ValueError("code_bytes: only codec 'pq' and 'lsq' have it, got codec 'flat'")
    width = _options.integer(bits, "bits", 4, 8)
    if codec != "pq" and width != 8:
        raise ValueError(f"bits: only codec 'pq' has it, got codec {codec!r}")
    arguments = _files(vectors, work, output, metric, target_recall, provenance) | {
        "codec": codec,
        "lists": _options.optional_count(lists, "lists"),
        "code_bytes": _options.optional_count(code_bytes, "code_bytes"),
        "bits": width,
        "iterations": _options.count(iterations, "iterations"),
        "training_rows": _options.optional_count(training_rows, "training_rows"),
        "vector_storage": _options.word(vector_storage, "vector_storage"),
    }
    return Plan("index", arguments, Call("plan_index", context).context)


@operation
def plan_graph_index(
    vectors: Path,
    work: Path,
    output: Path,
    *,
    target_recall: float | None = 0.95,
    metric: MetricArgument | None = "sqeuclidean",
    degree: int | None = 48,
    graph_recall: float | None = 0.95,
    provenance: Mapping[str, str] | None = None,
    context: Context | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    isa: str | None = None,
) -> Plan:
    """A graph index of a vector file, both of which may be larger than memory, as tasks over files.

    Vectors are encoded, the k-NN graph of their codes is built and pruned block by block, all vectors are connected,
    and the index is calibrated. The result is that of `GraphIndex.build`, of another k-NN graph of the same recall.

    Parameters
    ----------
    vectors, work, output, provenance, context, seed, threads, memory_limit, isa
        As in `nearwise.plan_graph`.
    target_recall, metric, degree, graph_recall
        As in `nearwise.GraphIndex.build`; a graph recall of 1 is refused.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.random.default_rng(1).random((1000, 4), dtype=np.float32))
    >>> work, output = os.path.join(folder, "work"), os.path.join(folder, "index.nw")
    >>> plan = nearwise.plan_graph_index(path, work, output, degree=16, memory_limit="64MiB")
    >>> [task.name for task in plan.tasks if not task.if_needed][-6:]
    ['prune-0000', 'link-0000', 'connect', 'edges', 'entries', 'finish']
    >>> plan.run()
    >>> len(plan.load())
    1000
    """
    arguments = _files(vectors, work, output, metric, target_recall, provenance) | {
        "degree": _options.count(degree, "degree"),
        "graph_recall": _options.target_recall(graph_recall, "graph_recall"),
    }
    return Plan("graph_index", arguments, Call("plan_graph_index", context).context)


def files_of_plan(vectors: Path, work: Path, output: Path, provenance: Mapping[str, str] | None) -> dict[str, Any]:
    """Arguments of every plan in C++."""
    return {
        "vectors": os.fspath(vectors),
        "work": os.fspath(work),
        "output": os.fspath(output),
        "provenance": _options.texts(provenance, "provenance"),
    }


def _files(
    vectors: Path, work: Path, output: Path, metric: Any, target_recall: Any, provenance: Mapping[str, str] | None
) -> dict[str, Any]:
    return files_of_plan(vectors, work, output, provenance) | {
        "metric": _options.metric(metric),
        "target_recall": _options.target_recall(target_recall),
    }
