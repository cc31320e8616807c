"""One interleaved run: every method is built and swept, then the settings that matter take turns."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nearwise._bench.process import MethodFailed, MethodProcess, MethodUnsupported
from nearwise._bench.task import Task

Point = dict[str, Any]  # setting, recall, seconds

_MOST_POINTS = 7  # of a method that take turns
_PER_TARGET = 2  # of these, the cheapest that reach a target
_LOWEST_RECALL = 0.5  # of points that only a curve needs

# Shares of the progress. A method's turns are short, but there are many.
_BUILD, _SWEEP, _TURNS = 4, 2, 4


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats in both recall and seconds, by ascending recall."""
    best: list[Point] = []
    for point in sorted(points, key=lambda each: (-each["recall"], each["seconds"])):
        if not best or point["seconds"] < best[-1]["seconds"]:
            best.append(point)
    return best[::-1]


def nines(recall: float) -> float:
    """A scale of recalls on which 0.9, 0.99 and 0.999 are as far apart.

    >>> round(nines(0.99), 6), nines(1.0) == nines(0.9999)
    (2.0, True)
    """
    return -math.log10(1 - min(recall, 0.9999))


def finalists(points: Sequence[Point], targets: Sequence[float]) -> list[Point]:
    """The points that take turns: the cheapest for every target, and others along the curve."""
    chosen: list[Point] = []
    for target in targets:
        reached = sorted((each for each in points if each["recall"] >= target), key=lambda each: float(each["seconds"]))
        chosen += [each for each in reached[:_PER_TARGET] if each not in chosen]
    others = [each for each in frontier(points) if each not in chosen and each["recall"] >= _LOWEST_RECALL]
    best = frontier(points)[-1]
    if best not in chosen:
        chosen.append(best)  # also where it reaches no target
        others = [each for each in others if each is not best]
    while others and len(chosen) < _MOST_POINTS:
        # The one that is farthest from those that are chosen.
        places = [nines(each["recall"]) for each in chosen]
        farthest = max(others, key=lambda each: min(abs(nines(each["recall"]) - place) for place in places))
        chosen.append(farthest)
        others.remove(farthest)
    return sorted(chosen, key=lambda each: float(each["recall"]))


class Failure(NamedTuple):
    """A method that could not be measured."""

    method: str
    reason: str
    unsupported: bool  # by its library, on every machine


class Turns:
    """The times of one setting."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self.batches: list[float] = []
        self.singles: list[list[float]] = []

    def add(self, answer: dict[str, Any]) -> None:
        self.batches.append(answer["batch_seconds"])
        self.singles.append(answer["single_us"])

    def fields(self, queries: int) -> dict[str, Any]:
        best = np.min(np.array(self.singles), axis=0)  # of each query: others may have disturbed a turn
        return {
            "setting": self.point["setting"],
            "recall": round(self.point["recall"], 5),
            "queries_per_second": round(queries / statistics.median(self.batches), 1),
            "single_p50_us": round(float(np.median(best)), 1),
            "single_p99_us": round(float(np.quantile(best, 0.99)), 1),
            "single_queries": len(best),
            "batch_seconds": [round(each, 6) for each in self.batches],
        }


Built = tuple[MethodProcess, dict[str, Any], list[Point], list[Turns]]


def run(
    task: Task, names: Sequence[str], repeat: int, report: Callable[[int, int], Any] | None
) -> tuple[list[dict[str, Any]], list[Failure]]:
    """What was measured of each method, and which could not be, with the reason."""
    total, done = len(names) * (_BUILD + _SWEEP + _TURNS), 0

    def advance(steps: int) -> None:
        nonlocal done
        done += steps
        if report is not None:
            report(min(done, total), total)

    built: list[Built] = []
    failed: list[Failure] = []
    with contextlib.ExitStack() as stack:
        for name in names:
            process = stack.enter_context(MethodProcess(name, task))
            try:
                facts = process.ask("build")
                advance(_BUILD)
                points = process.ask("sweep")["points"]
                advance(_SWEEP)
            except MethodFailed as error:
                process.close()
                failed.append(Failure(name, str(error), isinstance(error, MethodUnsupported)))
                continue
            chosen = [Turns(point) for point in finalists(points, task.targets)]
            built.append((process, facts, points, chosen))
        total = done + len(built) * _TURNS
        _take_turns(built, failed, repeat, lambda: advance(_TURNS), len(built))
    fields = []
    for process, facts, points, chosen in built:
        if any(each.method == process.name for each in failed):
            continue
        swept = [{"setting": each["setting"], "recall": round(each["recall"], 5)} for each in points]
        measured = [each.fields(task.queries) for each in chosen]
        fields.append({"name": process.name, **facts, "measurements": measured, "swept": swept})
    return fields, failed


def _take_turns(
    built: list[Built], failed: list[Failure], repeat: int, advance: Callable[[], None], steps: int
) -> None:
    """Each round begins with another method, so that none always follows the same one."""
    turns, reported = 0, 0
    for number in range(repeat):
        first = number * len(built) // max(1, repeat)
        for process, _, _, chosen in built[first:] + built[:first]:
            if all(each.method != process.name for each in failed):
                try:
                    for each in chosen:
                        each.add(process.ask("measure", setting=each.point["setting"]))
                except MethodFailed as error:
                    failed.append(Failure(process.name, str(error), False))
            turns += 1
            while reported < turns // repeat and reported < steps:
                reported += 1
                advance()
