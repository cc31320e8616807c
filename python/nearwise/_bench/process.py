"""The processes of the methods, as their parent sees them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from nearwise._bench import methods
from nearwise._bench.task import Task
from nearwise._verb.machine import cpu_flags
from nearwise._verb.process import environment as of_package


class MethodFailed(Exception):
    """The method cannot be measured; the message says why."""


def environment(task: Task, is_rival: bool) -> dict[str, str]:
    """What a process needs to find this package, and other libraries to be at their best."""
    variables = of_package()
    if is_rival:
        variables["OMP_NUM_THREADS"] = str(task.threads)
        # The OpenBLAS of some wheels does not know recent CPUs and takes generic code, several times as slow.
        flags = cpu_flags()
        core = "SKYLAKEX" if "avx512vl" in flags else "HASWELL" if "avx2" in flags else None
        if core is not None:
            variables.setdefault("OPENBLAS_CORETYPE", core)
    return variables


class MethodUnsupported(MethodFailed):
    """The library has no such search, on no machine."""


class MethodProcess:
    """One process; `with` ends it."""

    def __init__(self, name: str, task: Task) -> None:
        self.name = name
        self._errors = Path(task.path(f"{name}.log"))
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "nearwise._bench.worker", name, task.text()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(task, name not in methods.OWN),
                cwd=task.folder,
                text=True,
                encoding="utf-8",
            )

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a command."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise MethodFailed(self._last_words())
        answer = cast("dict[str, Any]", json.loads(line))
        if "unsupported" in answer:
            raise MethodUnsupported(answer["unsupported"])
        if "failed" in answer:
            raise MethodFailed(answer["failed"])
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        lines = self._errors.read_text(encoding="utf-8", errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        ended = f"its process was ended by signal {-code}" if code < 0 else f"its process ended with status {code}"
        return f"{ended}: {said}" if said else ended

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                # A command that the process did not live to read is written once more here.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
