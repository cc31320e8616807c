"""The steps of a check in a process of their own, which may crash, hang, or lose its device.

    python -m nearwise._gpu_check.worker SHAPES DEVICE GPU STEP...

GPU: the name of the device in estimates.py, or an empty text. A step is `environment`, `case:NAME`, `timing:NAME` or
`rival:NAME`; each is answered with a line of JSON on standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings
from typing import Any

import nearwise
from nearwise import _core
from nearwise._gpu_check import rivals, timings
from nearwise._gpu_check.case import SHAPES, Case, Shapes, difference
from nearwise._gpu_check.cases import CASES


def check(case: Case, shapes: Shapes, device: str) -> dict[str, Any]:
    """The case on the CPU and on the device."""
    start = time.perf_counter()
    expected = case.run(shapes, "cpu")
    on_cpu = time.perf_counter() - start
    before = _core.cuda_operation_calls()
    start = time.perf_counter()
    found = case.run(shapes, device)
    seconds = time.perf_counter() - start
    ran = {name: calls - before[name] for name, calls in _core.cuda_operation_calls().items() if calls > before[name]}
    differs = difference(expected, found)
    answer: dict[str, Any] = {"outcome": "equal" if differs is None else "wrong", "answers": len(expected), "ran": ran}
    if differs is not None:
        answer["difference"] = differs
    return answer | {"cpu_seconds": on_cpu, "seconds": seconds}


class Worker:
    def __init__(self, shapes: Shapes, device: str, gpu: str, cases: tuple[Case, ...]) -> None:
        self._shapes, self._device, self._gpu = shapes, device, gpu
        self._cases = {case.name: case for case in cases}
        self._timings = {timing.name: timing for timing in timings.TIMINGS}

    def answer(self, step: str) -> dict[str, Any]:
        kind, _, name = step.partition(":")
        if kind == "environment":
            return {"outcome": "done", **_core.cuda()}
        if kind == "case":
            return check(self._cases[name], self._shapes, self._device)
        if kind == "timing":
            measured = timings.measure(self._timings[name], self._shapes, self._device, self._gpu or None)
            return {"outcome": "done", **measured}
        ordinal = int(self._device.partition(":")[2] or 0)
        return {"outcome": "done", **rivals.measure(name, self._shapes, ordinal)}


def main(arguments: list[str], cases: tuple[Case, ...] = CASES) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    warnings.simplefilter("ignore")  # of missed recall: bytes are compared here
    # Libraries print to standard output, which is for answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    shapes, device, gpu, *steps = arguments
    worker = Worker(SHAPES[shapes], device, gpu, cases)
    for step in steps:
        try:
            answer = worker.answer(step)
        except MemoryError as error:
            answer = {"outcome": "out_of_memory", "message": str(error)}
        except Exception as error:
            code = error.code if isinstance(error, nearwise.Error) else "internal"
            answer = {"outcome": "failed", "code": code, "message": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if answer["outcome"] == "failed":
            break  # the device may be lost: the rest is for a new process


if __name__ == "__main__":
    main(sys.argv[1:])
