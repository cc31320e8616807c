"""Work larger than memory, as tasks from files to files."""

from __future__ import annotations

import os
from typing import Any, Literal, Mapping, NamedTuple, Optional, Union

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._ivf import load_ivf
from nearwise._ivf_index import Ivf
from nearwise._knn_graph import KnnGraph, load_knn_graph
from nearwise._progress import ProgressArgument, reporting
from nearwise._vector_file import Path

TaskOutcome = Literal["done", "done before", "not needed"]


class PlannedTask(NamedTuple):
    """A task of a plan. Bytes and seconds are estimates; memory_bytes is a bound.

    name : str
    after : list of str
        Names of the tasks whose outputs it reads.
    read_bytes, written_bytes, memory_bytes : int
    seconds : float
    if_needed : bool
        Of a further pass: does nothing where the passes before it have reached the recall.
    """

    name: str
    after: list[str]
    read_bytes: int
    written_bytes: int
    memory_bytes: int
    seconds: float
    if_needed: bool


class Plan:
    """What `plan_graph` and `plan_index` return. Pickled, it is made again from its arguments, so that other processes can run its tasks.

    Attributes
    ----------
    tasks : list of PlannedTask
        In an order in which they can run; the last one publishes the result.
    memory_bytes : int
        Of the task that needs most.
    disk_bytes : int
        Of the work folder and the result, at the most, if tasks run in their order.
    seconds : float
    """

    def __init__(self, kind: Literal["graph", "index"], arguments: dict[str, Any]) -> None:
        self._kind = kind
        self._arguments = arguments
        self._core = (_core.planned_graph if kind == "graph" else _core.planned_index)(**arguments)
        self.tasks = [PlannedTask(*task) for task in self._core.tasks()]
        self.memory_bytes: int = self._core.memory_bytes()
        self.disk_bytes: int = self._core.disk_bytes()
        self.seconds: float = self._core.seconds()

    def __reduce__(self) -> Any:
        return Plan, (self._kind, self._arguments)

    def __repr__(self) -> str:
        work = self._arguments["work"]
        return f"Plan({len(self.tasks)} tasks in {work!r}, {self.disk_bytes} bytes of disk, about {self.seconds:.0f} s)"

    def with_threads(self, threads: int) -> Plan:
        """The same plan, with another number of threads for each task: the bytes do not depend on it."""
        return Plan(self._kind, {**self._arguments, "threads": _options.thread_count(threads)})

    def check_disk(self) -> None:
        """Raises `Error` with code cannot_create where the disks have no room for what will be written."""
        self._core.check_disk()

    def is_done(self, task: str) -> bool:
        """Whether its output is recorded and there (or went when all that read it were done), or it is not needed."""
        return self._core.is_done(_options.word(task, "task"))

    def run_task(self, task: str) -> TaskOutcome:
        """Runs one task by its name; does nothing where its output is there and valid.

        The tasks it comes after must have run. Several processes may run tasks of one plan at once.
        """
        return self._core.run_task(_options.word(task, "task"))

    def run(self, *, progress: ProgressArgument = None) -> None:
        """Runs all tasks in order; stopped at any moment, the next call goes on where it was."""
        with reporting(progress, "plan") as report:
            self._core.run(report)

    def remove_work(self) -> int:
        """Removes what the tasks have left in the work folder, and returns its bytes; nothing before the result is published.

        The record of what was done stays: `run` then knows that nothing is left to do.
        """
        return self._core.remove_work()

    def load(self) -> Union[KnnGraph, Ivf]:
        """What was published: the graph in memory, or the index, mapped."""
        output = self._arguments["output"]
        return load_knn_graph(output) if self._kind == "graph" else load_ivf(output)


def _common(
    vectors: Path,
    work: Path,
    output: Path,
    metric: Metric,
    recall: float,
    memory_limit: Union[int, str],
    seed: int,
    threads: int,
    isa: str,
    provenance: Optional[Mapping[str, str]],
) -> dict[str, Any]:
    return {
        "vectors": os.fspath(vectors),
        "work": os.fspath(work),
        "output": os.fspath(output),
        "metric": _options.word(metric, "metric"),
        "recall": _options.number(recall, "recall"),
        "provenance": {} if provenance is None else _options.texts(provenance, "provenance"),
        "seed": _options.seed(seed),
        "threads": _options.thread_count(threads),
        "memory_limit": _options.byte_count(memory_limit, "memory_limit"),
        "isa": _options.word(isa, "isa"),
    }


def plan_graph(
    vectors: Path,
    work: Path,
    output: Path,
    degree: int = 10,
    *,
    metric: Metric = "sqeuclidean",
    recall: float = 0.95,
    way: Literal["partitions", "pairs"] = "partitions",
    memory_limit: Union[int, str],
    seed: int = 0,
    threads: int = 0,
    isa: str = "",
    provenance: Optional[Mapping[str, str]] = None,
) -> Plan:
    """The graph of a file of vectors that may be larger than memory, as tasks over files.

    The same file, options, memory limit and seed give the same tasks and the same bytes, whoever runs the tasks and however
    often he is stopped. Nothing is written before a task is run.

    Parameters
    ----------
    vectors : path
        Of a file that `nearwise.read_vectors` reads.
    work : path
        A folder for the files between tasks, made where there is none. `Plan.remove_work` empties it when the graph is there.
    output : path
        Where the graph goes: .nw, for `nearwise.load_knn_graph`.
    degree, metric, recall, seed, threads, isa
        As in `nearwise.build_knn_graph`; a recall of 1 is refused.
    way : str
        "partitions": overlapping cells, a fixed number of passes over the vectors. "pairs": the graphs of every two shards of
        the file are merged, which takes as many passes as there are other shards.
    memory_limit : int or str
        Bytes, or text such as "2GiB": every task keeps within it. Mapped files are not counted.
    provenance : mapping of strings
        Kept with the graph.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.random.default_rng(1).random((1000, 4), dtype=np.float32))
    >>> plan = nearwise.plan_graph(path, os.path.join(folder, "work"), os.path.join(folder, "graph.nw"), memory_limit="64MiB")
    >>> [task.name for task in plan.tasks if not task.if_needed]
    ['sample', 'train-0', 'assign-0-0000', 'build-0-0000', 'merge-0-0000', 'measure-0', 'finish']
    >>> plan.run_task("sample"), plan.run_task("sample")
    ('done', 'done before')
    >>> plan.run()
    >>> plan.load().reached
    True
    """
    common = _common(vectors, work, output, metric, recall, memory_limit, seed, threads, isa, provenance)
    return Plan("graph", common | {"degree": _options.count(degree, "degree"), "way": _options.word(way, "way")})


def plan_index(
    vectors: Path,
    work: Path,
    output: Path,
    *,
    codec: Literal["pq", "lsq", "flat"] = "pq",
    lists: int = 0,
    code_bytes: int = 0,
    bits: int = 8,
    metric: Metric = "sqeuclidean",
    iterations: int = 10,
    rows_per_list: int = 256,
    recall: float = 0.9,
    memory_limit: Union[int, str],
    seed: int = 0,
    threads: int = 0,
    isa: str = "",
    provenance: Optional[Mapping[str, str]] = None,
) -> Plan:
    """An inverted file of a file of vectors, both of which may be larger than memory, as tasks over files.

    Lists and codes are trained on a sample, rows are coded block by block, lists are put together in their place, and
    probes are measured on the whole. The index is that of `IvfPq.build`, `IvfLsq.build` or `IvfFlat.build`.

    Parameters
    ----------
    vectors, work, output, memory_limit, seed, threads, isa, provenance
        As in `nearwise.plan_graph`. Where fewer rows per list fit the memory limit, as many are trained on.
    codec : str
        "pq", "lsq" or "flat": what is kept of a row.
    lists, code_bytes, bits, metric, iterations, rows_per_list, recall
        As in `nearwise.IvfPq.build`; 0 of lists and code_bytes: as the data ask for.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> path = os.path.join(folder, "rows.fbin")
    >>> nearwise.write_vectors(path, np.random.default_rng(1).random((1000, 4), dtype=np.float32))
    >>> plan = nearwise.plan_index(path, os.path.join(folder, "work"), os.path.join(folder, "index.nw"), memory_limit="64MiB")
    >>> [task.name for task in plan.tasks]
    ['train', 'add-0000', 'gather', 'finish']
    >>> plan.run()
    >>> len(plan.load())
    1000
    """
    if _options.word(codec, "codec") not in ("pq", "lsq", "flat"):
        raise ValueError(f"codec: expected 'pq', 'lsq' or 'flat', given {codec!r}")
    common = _common(vectors, work, output, metric, recall, memory_limit, seed, threads, isa, provenance)
    return Plan(
        "index",
        common
        | {
            "codec": codec,
            "lists": _options.count_or_none(lists, "lists"),
            "code_bytes": _options.count_or_none(code_bytes, "code_bytes"),
            "bits": _options.integer(bits, "bits", 4, 8),
            "iterations": _options.count(iterations, "iterations"),
            "rows_per_list": _options.count_or_none(rows_per_list, "rows_per_list"),
        },
    )
