"""Parts of a base, each held by several processes: how these are started, placed and replaced."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, NamedTuple, Self

from nearwise import _options
from nearwise._context import Call, Context
from nearwise._device_array import DeviceArray
from nearwise._error import Error
from nearwise._index.filter import Filter
from nearwise._neighbors import Metric, Neighbors, RangeNeighbors, adopt
from nearwise._rows import portable
from nearwise.cluster import _batch
from nearwise.cluster._ray import Node, nodes, on, ray
from nearwise.cluster._replica import Description, Replica


class Place(NamedTuple):
    shard: int
    replica: int


def placed(missing: list[Place], at: dict[Place, str], machines: list[Node]) -> dict[Place, Node]:
    """Machines for new replicas, next to those already `at` one: not with a sibling if possible, then the one with the
    fewest replicas per CPU.

    >>> found = placed([Place(0, 0), Place(0, 1), Place(1, 0)], {Place(1, 1): "b"}, [Node("a", 2, 0), Node("b", 2, 0)])
    >>> [node.id for node in found.values()]
    ['a', 'b', 'a']
    """
    places = dict(at)
    found = {}
    for place in missing:
        siblings = {node for other, node in places.items() if other.shard == place.shard}
        there = Counter(places.values())
        found[place] = min(machines, key=lambda node: (node.id in siblings, there[node.id] / node.cpus))
        places[place] = found[place].id
    return found


class Sharded:
    """What sharded searches share. Several threads may search at the same time."""

    def __init__(
        self,
        kind: type[Replica],
        parts: list[tuple[Any, ...]],
        replicas: Any,
        threads: int,
        start_timeout: Any,
        timeout: Any,
    ) -> None:
        self._kind = kind
        self._parts = parts
        self._replicas = _options.integer(replicas, "replicas", 1, 2**31 - 1)
        self._threads = threads
        self._start_timeout = _options.seconds(start_timeout, "start_timeout")
        self.timeout = _options.seconds(timeout, "timeout")
        self._actors: dict[Place, Any] = {}
        self._nodes: dict[Place, str] = {}  # where they were scheduled
        self._descriptions: dict[int, Description] = {}
        try:
            self.restore()
        except BaseException:
            self.close()
            raise

    def restore(self) -> int:
        """Starts new processes for those that have died, and returns their number."""
        machines = nodes()
        if not machines:
            raise Error("cluster: no machine of the cluster has a CPU", "device")
        self.process_ids()  # ends those that do not answer
        every = [Place(shard, replica) for shard in range(self.shards) for replica in range(self._replicas)]
        missing = [place for place in every if place not in self._actors]
        nodes_of = placed(missing, {place: self._nodes[place] for place in self._actors}, machines)
        started = {place: self._started(node) for place, node in nodes_of.items()}
        self._nodes.update((place, node.id) for place, node in nodes_of.items())
        opening = {actor.open.remote(*self._parts[place.shard]): place for place, actor in started.items()}
        self._await_opening(opening, started)
        for shard in range(self.shards):
            if not self.living(shard):
                raise Error(f"cluster: part {shard}: no replica could be started", "device")
        return sum(place in self._actors for place in missing)

    def process_ids(self) -> dict[tuple[int, int], int]:
        """Ids of the live processes by (part, replica), each on its own machine."""
        asked = {place: actor.process_id.remote() for place, actor in list(self._actors.items())}
        found: dict[tuple[int, int], int] = {}
        for place, reference in asked.items():
            try:
                found[place.shard, place.replica] = ray.get(reference, timeout=self.timeout)
            except ray.exceptions.RayError:
                self.give_up(place)
        return found

    def close(self) -> None:
        """Ends the processes."""
        for place in list(self._actors):
            self.give_up(place)

    def living(self, shard: int) -> list[tuple[Place, Any]]:
        """The replicas of a part that are not known to be dead, and their actors."""
        return sorted(
            ((place, actor) for place, actor in list(self._actors.items()) if place.shard == shard),
            key=lambda pair: pair[0],
        )

    def give_up(self, place: Place) -> None:
        """Ends a replica that is considered dead."""
        actor = self._actors.pop(place, None)
        if actor is not None and ray.is_initialized():
            ray.kill(actor)

    @property
    def size(self) -> int:
        """The number of vectors in all parts."""
        return sum(description.rows for description in self._descriptions.values())

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self._description.dim

    @property
    def metric(self) -> Metric:
        """The metric of all searches."""
        return self._description.metric

    @property
    def shards(self) -> int:
        """The number of parts."""
        return len(self._parts)

    def __len__(self) -> int:
        return self.size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<{type(self).__module__}.{type(self).__name__}: {self.size} vectors of {self.dim} elements in "
            f"{self.shards} parts, {self.metric}, {len(self._actors)} processes>"
        )

    @property
    def _description(self) -> Description:
        return self._descriptions[0]

    def _started(self, node: Node) -> Any:
        # Not restarted by Ray: the batch sends the work to a sibling.
        return (
            ray.remote(self._kind)
            .options(num_cpus=self._threads, max_restarts=0, max_task_retries=0, scheduling_strategy=on(node.id))
            .remote()
        )

    def _await_opening(self, opening: dict[Any, Place], started: dict[Place, Any]) -> None:
        deadline = time.monotonic() + self._start_timeout
        while opening:
            done, _ = ray.wait(list(opening), timeout=max(0.0, deadline - time.monotonic()))
            if not done:
                raise Error(
                    f"cluster: {len(opening)} of {len(started)} processes did not start within "
                    f"{self._start_timeout:g} s; they need {self._threads} CPUs each, "
                    f"the cluster has {ray.cluster_resources().get('CPU', 0):g}",
                    "device",
                )
            place = opening.pop(done[0])
            try:
                description = ray.get(done[0])
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
            except ray.exceptions.RayError:
                continue  # it died at once; a sibling may be alive
            self._check(place.shard, description)
            self._actors[place] = started[place]

    def _check(self, shard: int, found: Description) -> None:
        known = self._descriptions.setdefault(shard, found)
        if found != known:
            raise ValueError(f"cluster: replicas of part {shard} differ: {known} and {found}")
        other = next(iter(self._descriptions.values()))
        if (found.dim, found.metric, found.training) != (other.dim, other.metric, other.training):
            raise ValueError(
                f"cluster: expected parts of one training, with equal dimension and metric, got {other} and {found}"
            )

    def _nearest(self, queries: Any, k: int, arguments: tuple[Any, ...], *others: Any) -> Neighbors:
        """The best k; `others` are those of `_run`."""
        results = _batch.NearestResults(k, self.metric)
        call = self._run("search", queries, results, (k, *arguments), *others)
        return adopt(results.found, call)

    def _within(self, queries: Any, radius: float, arguments: tuple[Any, ...], *others: Any) -> RangeNeighbors:
        """All within the radius; `others` are those of `_run`."""
        results = _batch.RangeResults(self.metric)
        self._run("range_search", queries, results, (radius, *arguments), *others)
        return results.found

    def _run(
        self,
        operation: str,
        queries: Any,
        results: _batch.Results,
        arguments: tuple[Any, ...],
        chosen: Filter | None,
        block_queries: int | None,
        context: Context | None,
    ) -> Call:
        """Calls `operation` of the replicas for all queries."""
        call = Call(operation, context)
        given = call.array(queries, "queries")
        if isinstance(given.array, DeviceArray):
            raise ValueError(f"queries: expected an array in host memory, got one on {given.array.device}")
        if given.array.shape[1] != self.dim:
            raise ValueError(
                f"{operation}: queries and base must have the same dimension, got {given.array.shape[1]} "
                f"and {self.dim}"
            )
        count = len(given.array)
        if chosen is not None and chosen.queries not in (None, count):
            raise ValueError(f"filter: expected a list for each of the {count} queries, got {chosen.queries}")
        rows = portable(given.array, given.type)
        block = _options.optional_count(block_queries, "block_queries")
        with call:
            # A reference: sent once per machine, whatever the number of blocks.
            sent = None if chosen is None else ray.put(chosen)
            _batch.Batch(self, operation, rows, results, (*arguments, sent), block, call.report).run()
        return call
