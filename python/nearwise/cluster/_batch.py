"""One batch of queries: split into blocks, sent to replicas of all parts, sent again if one died, and joined."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from nearwise._error import Error
from nearwise._neighbors import Metric, Neighbors, RangeNeighbors, merge_neighbors
from nearwise.cluster._ray import ray

if TYPE_CHECKING:
    from nearwise.cluster._sharded import Place, Sharded

_MOST_BLOCK_QUERIES = 8192
_BLOCKS_AHEAD = 2  # per replica: one running and one queued, so that none is idle while results are merged


class _Call(NamedTuple):
    block: int
    place: Place


class Results(Protocol):
    def begin(self, queries: int) -> None:
        """Before the first block."""

    def join(self, first: int, last: int, answers: list[Any]) -> None:
        """Takes the answers of all parts to the queries [first, last)."""


class NearestResults:
    found: Neighbors

    def __init__(self, k: int, metric: Metric) -> None:
        self._k = k
        self._metric = metric

    def begin(self, queries: int) -> None:
        shape = (queries, self._k)
        self.found = Neighbors(np.empty(shape, np.int64), np.empty(shape, np.float32))

    def join(self, first: int, last: int, answers: list[Any]) -> None:
        joined = merge_neighbors(answers, self._k, metric=self._metric)
        self.found.ids[first:last], self.found.distances[first:last] = joined


class RangeResults:
    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._blocks: dict[int, tuple[npt.NDArray[Any], ...]] = {}  # numbers of answers, ids and distances

    def begin(self, queries: int) -> None:
        pass

    def join(self, first: int, last: int, answers: list[Any]) -> None:
        """Best first, the lower id in a tie.

        >>> results = RangeResults("sqeuclidean")
        >>> results.join(0, 2, [([0, 1, 2], [7, 9], [2.0, 0.5]), ([0, 1, 1], [4], [2.0])])
        >>> results.found.offsets.tolist(), results.found.ids.tolist()
        ([0, 2, 3], [4, 7, 9])
        """
        counts = [np.diff(np.asarray(offsets)) for offsets, _, _ in answers]
        queries = np.concatenate([np.repeat(np.arange(last - first), count) for count in counts])
        ids = np.concatenate([np.asarray(found, np.int64) for _, found, _ in answers])
        distances = np.concatenate([np.asarray(found, np.float32) for _, _, found in answers])
        order = np.lexsort((ids, -distances if self._metric == "inner_product" else distances, queries))
        self._blocks[first] = np.stack(counts).sum(axis=0), ids[order], distances[order]

    @property
    def found(self) -> RangeNeighbors:
        none = np.zeros(1, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        blocks = [none, *(block for _, block in sorted(self._blocks.items()))]
        counts, ids, distances = (np.concatenate(arrays) for arrays in zip(*blocks))
        return RangeNeighbors(np.cumsum(counts), ids, distances)


class Batch:
    """Calls `operation` of the replicas, with the queries, a block of them and `arguments`."""

    def __init__(
        self,
        sharded: Sharded,
        operation: str,
        queries: npt.NDArray[Any],
        results: Results,
        arguments: tuple[Any, ...],
        block_queries: int,
        report: Callable[[int, int], Any] | None,
    ) -> None:
        self._sharded = sharded
        self._operation = operation
        self._results = results
        results.begin(len(queries))
        self._arguments = arguments
        self._report = report
        self._count = len(queries)
        replicas = max(1, *(len(sharded.living(shard)) for shard in range(sharded.shards)))
        self._ahead = _BLOCKS_AHEAD * replicas
        # One block per replica: larger blocks take less time per query, because every list is unpacked once
        # per block.
        self._size = block_queries or max(1, min(_MOST_BLOCK_QUERIES, -(-self._count // replicas)))
        self._queries = ray.put(queries)  # transferred once per machine, whatever the number of blocks
        self._pending: dict[Any, _Call] = {}
        self._answers: dict[int, dict[int, Any]] = {}  # of incomplete blocks, by part
        self._heard: dict[Place, float] = {}  # when a busy replica was last known to be alive

    def run(self) -> None:
        blocks = deque(range(-(-self._count // self._size)))
        done = 0
        try:
            while blocks or self._answers:
                while blocks and len(self._answers) < self._ahead:
                    self._begin(blocks.popleft())
                for block in self._receive():
                    answers = self._answers.pop(block)
                    self._results.join(
                        self._first(block), self._last(block), [answers[shard] for shard in sorted(answers)]
                    )
                    done += self._last(block) - self._first(block)
                    if self._report is not None:
                        self._report(done, self._count)
        finally:
            for reference in self._pending:
                ray.cancel(reference)  # those that have not begun; Ctrl-C does not wait for them

    def _first(self, block: int) -> int:
        return block * self._size

    def _last(self, block: int) -> int:
        return min(self._count, (block + 1) * self._size)

    def _begin(self, block: int) -> None:
        self._answers[block] = {}
        for shard in range(self._sharded.shards):
            self._send(block, shard)

    def _send(self, block: int, shard: int) -> None:
        living = self._sharded.living(shard)
        if not living:
            raise Error(f"{self._operation}: part {shard}: no replica is alive", "device")
        place, actor = living[block % len(living)]
        method = getattr(actor, self._operation)
        reference = method.remote(self._queries, self._first(block), self._last(block), *self._arguments)
        self._pending[reference] = _Call(block, place)
        self._heard.setdefault(place, time.monotonic())

    def _receive(self) -> list[int]:
        """Waits for a result, and returns the blocks that it completes."""
        ready, _ = ray.wait(list(self._pending), timeout=min(1.0, self._sharded.timeout / 4))
        if not ready:
            self._give_up_silent()
        complete = []
        for reference in ready:
            call = self._pending.pop(reference)
            self._heard[call.place] = time.monotonic()
            try:
                self._answers[call.block][call.place.shard] = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None  # an error of the search itself, the same on every replica
            except ray.exceptions.RayError:
                self._sharded.give_up(call.place)
                self._send(call.block, call.place.shard)
                continue
            if not any(other.place == call.place for other in self._pending.values()):
                del self._heard[call.place]
            if len(self._answers[call.block]) == self._sharded.shards:
                complete.append(call.block)
        return complete

    def _give_up_silent(self) -> None:
        now = time.monotonic()
        silent = {place for place, heard in self._heard.items() if now - heard > self._sharded.timeout}
        for place in silent:
            del self._heard[place]
            self._sharded.give_up(place)
        for reference, call in list(self._pending.items()):
            if call.place in silent:
                del self._pending[reference]
                self._send(call.block, call.place.shard)
