"""The progress line of progress=True."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

ProgressArgument = bool | Callable[[int, int], Any] | None

_SECONDS_BEFORE_FIRST = 1.0
_SECONDS_BETWEEN_DRAWINGS = 0.1
_SECONDS_BETWEEN_LINES = 10.0  # in a log file, where a line cannot be overwritten
_FIRST_ESTIMATE = 0.05  # below it, the time spent so far says little about the rest
_WIDTH = 30


class ProgressBar:
    """Shows share and time left, after the first second. Call it with (done, total), close it at the end."""

    def __init__(self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = clock()
        self._next = self._started + _SECONDS_BEFORE_FIRST
        self._redraws = self._stream is not None and self._stream.isatty()
        self._drawn = 0  # characters to overwrite

    def __call__(self, done: int, total: int) -> None:
        now = self._clock()
        if self._stream is None or now < self._next:
            return
        self._next = now + (_SECONDS_BETWEEN_DRAWINGS if self._redraws else _SECONDS_BETWEEN_LINES)
        text = self._text(done, total, now - self._started)
        if self._redraws:
            self._stream.write("\r" + text.ljust(self._drawn))
            self._drawn = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def close(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._stream.flush()
            self._drawn = 0

    def _text(self, done: int, total: int, seconds: float) -> str:
        # The line is erased when the work is complete; until then it is never full.
        share = min(0.99, done / total) if total else 0.99
        filled = int(share * _WIDTH)
        left = f"{seconds / share - seconds:.0f} s left" if share >= _FIRST_ESTIMATE else "time left unknown"
        return f"{self._label} [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {left}"


def check_progress(progress: Any) -> None:
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress: expected None, True or a callable of (done, total), got {progress!r}")
