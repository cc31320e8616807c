"""Work larger than memory, as tasks from files to files."""

from __future__ import annotations

import os
from typing import Any, Literal, Mapping, NamedTuple, Optional, Union

from nearwise import _core, _options
from nearwise._exact import Metric
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
    """What `plan_graph` returns. Pickled, it is made again from its arguments, so that other processes can run its tasks.

    Attributes
    ----------
    tasks : list of PlannedTask
        In an order in which they can run; the last one publishes the result.
    memory_bytes : int
        Of the task that needs most.
    disk_bytes : int
        Of the work folder and the result.
    seconds : float
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._arguments = arguments
        self._core = _core.PlannedGraph(**arguments)
        self.tasks = [PlannedTask(*task) for task in self._core.tasks()]
        self.memory_bytes: int = self._core.memory_bytes()
        self.disk_bytes: int = self._core.disk_bytes()
        self.seconds: float = self._core.seconds()

    def __reduce__(self) -> Any:
        return Plan, (self._arguments,)

    def __repr__(self) -> str:
        work = self._arguments["work"]
        return f"Plan({len(self.tasks)} tasks in {work!r}, {self.disk_bytes} bytes of disk, about {self.seconds:.0f} s)"

    def with_threads(self, threads: int) -> Plan:
        """The same plan, with another number of threads for each task: the bytes do not depend on it."""
        return Plan({**self._arguments, "threads": _options.thread_count(threads)})

    def check_disk(self) -> None:
        """Raises `Error` with code cannot_create where the disks have no room for what will be written."""
        self._core.check_disk()

    def is_done(self, task: str) -> bool:
        """Whether its output is recorded and there, or it is known not to be needed."""
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

    def load(self) -> KnnGraph:
        """The graph that was published, in memory."""
        return load_knn_graph(self._arguments["output"])


def plan_graph(
    vectors: Path,
    work: Path,
    output: Path,
    degree: int = 10,
    *,
    metric: Metric = "sqeuclidean",
    recall: float = 0.95,
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
        A folder for the files between tasks, made where there is none. It can be removed when the graph is there.
    output : path
        Where the graph goes: .nw, for `nearwise.load_knn_graph`.
    degree, metric, recall, seed, threads, isa
        As in `nearwise.build_knn_graph`; a recall of 1 is refused.
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
    ['train-0', 'assign-0-0000', 'build-0-0000', 'merge-0-0000', 'measure-0', 'finish']
    >>> plan.run_task("train-0"), plan.run_task("train-0")
    ('done', 'done before')
    >>> plan.run()
    >>> plan.load().reached
    True
    """
    return Plan(
        {
            "vectors": os.fspath(vectors),
            "work": os.fspath(work),
            "output": os.fspath(output),
            "degree": _options.count(degree, "degree"),
            "metric": _options.word(metric, "metric"),
            "recall": _options.number(recall, "recall"),
            "provenance": {} if provenance is None else _options.texts(provenance, "provenance"),
            "seed": _options.seed(seed),
            "threads": _options.thread_count(threads),
            "memory_limit": _options.byte_count(memory_limit, "memory_limit"),
            "isa": _options.word(isa, "isa"),
        }
    )
