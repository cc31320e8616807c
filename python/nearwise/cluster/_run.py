"""Plans on a cluster: scheduling of tasks, and recovery of lost ones."""

from __future__ import annotations

import functools
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, cast

from nearwise import _options
from nearwise._context import Call, Context, operation
from nearwise._error import Error
from nearwise._progress import ProgressArgument
from nearwise.cluster._ray import Node, nodes, on, ray
from nearwise.cluster._room import Room

_SECONDS_BETWEEN_COUNTS = 1.0  # of the cluster's CPUs and memory
_MOST_BYTES_WITH_A_TASK = 64 << 10


class _Attempt(NamedTuple):
    task: str
    node: str  # where it is scheduled, and once it has begun, where it runs
    begun: float | None = None  # None: it waits for resources


@operation
def run(
    plan: Any,
    *,
    retries: int | None = 3,
    timeout: float | None = 3600,
    on_task: Callable[[str, str], Any] | None = None,
    context: Context | None = None,
    threads: int | None = None,
    progress: ProgressArgument = None,
) -> None:
    """Runs the tasks of a plan on the machines of a cluster; the result has the bytes of `plan.run()`.

    The work folder and the vectors must have the same path on every machine. Ray transfers the plan's arguments and the
    names of tasks; all data is in files. Finished tasks are not repeated: after a crash of this process or of the whole
    cluster, the same call resumes.

    Parameters
    ----------
    plan : Plan
        From `nearwise.plan_graph`, `plan_index`, `plan_graph_index`, `plan_threshold_join` or `plan_dedup`.
    retries : int
        How often a task is restarted after its process or machine died, or after a timeout. An exception raised
        by a task is raised here at once, because a restart would raise it again.
    timeout : float
        Seconds for one task, and for the cluster to have the resources for one.
    on_task : callable, optional
        Called with the name and the outcome of every finished task: "done", "done before" or "not needed". Inputs
        that a task finds damaged or lost it makes again first, which is not reported.
    context, threads, progress
        See `nearwise.Context`. threads is per task, default 1; Ray reserves as many CPUs, and the memory of the
        plan. progress counts tasks.
    """
    with Call("run", context) as call:
        _Execution(
            plan,
            call.context.threads or 1,
            _options.integer(retries, "retries", 0, 2**31 - 1),
            _options.seconds(timeout, "timeout"),
            on_task,
            call.report,
        ).run()


@ray.remote(max_retries=0, num_returns="streaming")  # _Execution restarts tasks, which also knows the time
def _run_task(plan: bytes, task: str) -> Iterator[Any]:
    yield ray.get_runtime_context().get_node_id()  # tells that it has begun, and where
    yield _opened(plan).run_task(task)


@functools.lru_cache(maxsize=2)
def _opened(plan: bytes) -> Any:
    """One plan per process, not per task."""
    return pickle.loads(plan)


class _Execution:
    def __init__(
        self,
        plan: Any,
        threads: int,
        retries: int,
        timeout: float,
        on_task: Callable[[str, Any], Any] | None,
        report: Callable[[int, int], Any] | None,
    ) -> None:
        self._plan = plan.with_threads(threads)
        pickled = ray.cloudpickle.dumps(self._plan)
        # A large one, once for each machine; a small one with every task: nobody need fetch it.
        self._pickled = ray.put(pickled) if len(pickled) > _MOST_BYTES_WITH_A_TASK else pickled
        self._threads = threads
        self._retries = retries
        self._timeout = timeout
        self._on_task = on_task
        self._report = report
        self._tasks = {task.name: task for task in self._plan.tasks}
        self._waiting = list(self._tasks)
        self._ready: list[str] = []  # those to do, whose inputs are there
        self._done: set[str] = set()
        self._running: dict[Any, _Attempt] = {}
        self._failures: dict[str, int] = {}
        self._nodes: list[Node] = []
        self._counted = 0.0
        self._worked = 0.0  # when a task was last known to run

    def run(self) -> None:
        last = next(reversed(self._tasks))
        if self._plan.is_done(last):  # what the result was made of may be gone
            self._end(last, self._plan.run_task(last))
            return
        self._worked = time.monotonic()
        try:
            while len(self._done) < len(self._tasks):
                self._begin_ready()
                if self._running:
                    self._receive()
                elif self._ready:
                    time.sleep(0.2)  # a machine may come
                self._require_room()
        finally:
            for reference in self._running:
                ray.cancel(reference, force=True)  # Ctrl-C must not leave processes at work behind

    def _begin_ready(self) -> None:
        """Begins as many tasks as there is room for."""
        waiting = []
        for name in self._waiting:  # in an order in which they can run: one look is enough
            if not self._done.issuperset(self._tasks[name].after):
                waiting.append(name)
            elif self._plan.is_done(name):
                # Asked how, it does nothing but say so; that takes as long as a short task, for hundreds not
                # needed.
                self._end(name, self._plan.run_task(name) if self._on_task is not None else "done before")
            else:
                self._ready.append(name)
        self._waiting = waiting
        room = self._room()
        ready, self._ready = self._ready, []
        for name in ready:
            node = room.take(self._threads, self._tasks[name].memory_bytes)
            if node is None:
                self._ready.append(name)
            else:
                self._begin(name, node)

    def _room(self) -> Room:
        """What our tasks leave of the cluster. What those of others take is Ray's to know."""
        now = time.monotonic()
        if now - self._counted > _SECONDS_BETWEEN_COUNTS:
            self._nodes = nodes()
            self._counted = now
        room = Room(self._nodes)
        for attempt in self._running.values():
            room.take_at(attempt.node, self._threads, self._tasks[attempt.task].memory_bytes)
        return room

    def _require_room(self) -> None:
        """Raises where no task has run for too long: those that wait need not have their own time for it."""
        now = time.monotonic()
        if any(attempt.begun is not None for attempt in self._running.values()):
            self._worked = now
        elif now - self._worked > self._timeout and len(self._done) < len(self._tasks):
            waits = [*(attempt.task for attempt in self._running.values()), *self._ready, *self._waiting][0]
            raise Error(
                f"run: no machine of the cluster has had {self._threads} CPUs and "
                f"{self._tasks[waits].memory_bytes} bytes of memory for {waits} since {self._timeout:g} s",
                "device",
            )

    def _begin(self, name: str, node: str) -> None:
        options = {"num_cpus": self._threads, "memory": self._tasks[name].memory_bytes, "scheduling_strategy": on(node)}
        reference = _run_task.options(**options).remote(self._pickled, name)
        self._running[reference] = _Attempt(name, node)

    def _end(self, name: str, outcome: Any) -> None:
        self._done.add(name)
        if self._on_task is not None:
            self._on_task(name, outcome)
        if self._report is not None:
            self._report(len(self._done), len(self._tasks))

    def _receive(self) -> None:
        ready, _ = ray.wait(list(self._running), timeout=min(1.0, self._timeout / 4))
        now = time.monotonic()
        for reference in ready:
            self._worked = now
            attempt = self._running.pop(reference)
            try:
                told: Any = ray.get(next(cast("Any", reference)))
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError as error:
                self._again(attempt.task, f"{type(error).__name__}: {error}")
                continue
            if attempt.begun is None:
                self._running[reference] = attempt._replace(node=told, begun=now)
            else:
                self._end(attempt.task, told)
        self._give_up_lost(now)

    def _give_up_lost(self, now: float) -> None:
        """Restarts tasks that take too long, and those on dead machines, for whose processes Ray may wait."""
        alive = {node.id for node in self._nodes}
        for reference, attempt in list(self._running.items()):
            if attempt.begun is None:  # time runs for those that run
                continue
            if now - attempt.begun > self._timeout:
                reason = f"not done within {self._timeout:g} s"
            elif attempt.begun < self._counted and attempt.node not in alive:
                reason = "its machine has died"
            else:
                continue
            del self._running[reference]
            ray.cancel(reference, force=True)
            self._again(attempt.task, reason)

    def _again(self, task: str, reason: str) -> None:
        failures = self._failures[task] = self._failures.get(task, 0) + 1
        if failures > self._retries:
            raise Error(f"run: {task} failed {failures} times, the last time: {reason}", "device")
        self._waiting.insert(0, task)  # those that come after it wait for it
