"""The processes of a check, as their parent sees them."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Any, Self

from nearwise._verb.process import environment

WORKER = (sys.executable, "-m", "nearwise._gpu_check.worker")

_LAST_SECONDS = 30.0  # for a process to end when it has answered


class _Process:
    """One worker, whose standard error is a file; `with` ends it."""

    def __init__(self, command: Sequence[str], errors: IO[bytes]) -> None:
        self._errors = errors
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment(),
            text=True,
            encoding="utf-8",
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def answer(self, limit: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=limit)
        except queue.Empty:
            return {"outcome": "timed_out", "message": f"no answer in {limit:g} s"}
        if not line:
            return {"outcome": "failed", "code": "internal", "message": self._last_words(self._process.wait())}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def end(self) -> str | None:
        """What is wrong with its end, after the last answer; None: nothing."""
        try:
            code = self._process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            return f"its process did not end in {_LAST_SECONDS:g} s"
        return self._last_words(code) if code else None

    def _last_words(self, code: int) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        ended = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with status {code}"
        return f"{ended}: {said}" if said else ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()


def answers(
    worker: Sequence[str], settings: Sequence[str], steps: Sequence[str], limit: float
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(step, answer) of every step. One process answers them in turn; after one that it does not survive, another.

    `limit`: seconds for an answer.
    """
    waiting = list(steps)
    while waiting:
        with tempfile.TemporaryFile() as errors, _Process([*worker, *settings, *waiting], errors) as process:
            survives = True
            while waiting and survives:
                answer = process.answer(limit)
                survives = answer["outcome"] not in ("timed_out", "failed")
                yield waiting.pop(0), answer
            if survives and (problem := process.end()) is not None:
                yield "end", {"outcome": "failed", "code": "internal", "message": problem}
