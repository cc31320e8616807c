"""One method in a process of its own: libraries bring runtimes of threads and matrix products that would disturb each
other, and its memory is that of the index.

    python -m nearwise._bench.worker METHOD TASK

TASK is the Task as JSON. Commands come as lines of JSON on standard input, `{"do": NAME, ...}`; each is answered with a
line on standard output.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nearwise._bench import methods
from nearwise._bench.method import Method, Setting, Unsupported
from nearwise._bench.task import Task, recall

# A sweep ends where nothing is left to find, or where it becomes too slow to be of interest.
_HIGHEST_RECALL = 0.9995
_MOST_SWEEP_SECONDS = 15.0
_NOTHING_GAINED = 0.0005
_MOST_IDLE = 6  # settings in a row that gain nothing: about twice the work

# Of one turn of single queries.
_TURN_SECONDS = 0.3
_LEAST_SINGLES = 20
_MOST_SINGLES = 500
_WARM_QUERIES = 16


def memory_bytes() -> int | None:
    """Memory of this process that is not a mapped file; None where the system does not tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # of glibc: what was freed counts as free
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except (AttributeError, OSError):
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")]
    return 1024 * int(found[0]) if found else None


def limit_memory(extra: int) -> None:
    """Makes allocations of more than `extra` bytes in all fail: other libraries have no limit of their own."""
    import resource

    status = Path("/proc/self/status").read_text(encoding="ascii")
    data = next(1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + extra, data + extra))


def bytes_on_disk(path: Path) -> int:
    files: Iterable[Path] = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


class Worker:
    """Answers the commands. Every array that is not needed any more is dropped, so that it is not counted as memory."""

    def __init__(self, name: str, task: Task) -> None:
        self.name, self.task = name, task
        self.method: Method = methods.make(name, task)
        self.queries = self.method.convert(task.vectors("queries"))
        self.truth = task.truth()
        self.singles: dict[str, int] = {}  # queries of a turn, by setting

    def build(self) -> dict[str, Any]:
        method, task = self.method, self.task
        base = method.convert(task.vectors("base"))
        method.warm_up(base)
        del base
        before = memory_bytes()
        base = method.convert(task.vectors("base"))
        if task.memory_limit and self.name not in methods.OWN and sys.platform == "linux":
            limit_memory(task.memory_limit)
        start, cpu = time.perf_counter(), time.process_time()
        method.build(base)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        del base  # kept by the method if it searches in it
        after = memory_bytes()
        path = Path(task.path(f"{self.name}.index"))
        method.save(str(path))
        disk = bytes_on_disk(path)
        remove(path)
        return {
            "library": method.library,
            "family": method.family,
            "label": method.label,
            "versions": method.facts(),
            "build_seconds": seconds,
            "build_cpu_seconds": cpu_seconds,
            "memory_bytes": None if before is None or after is None else max(0, after - before),
            "disk_bytes": disk,
        }

    def found(self, setting: Setting) -> tuple[float, float]:
        """Recall and seconds of one batch."""
        start = time.perf_counter()
        ids = self.method.search(self.queries, setting, self.task.threads)
        seconds = time.perf_counter() - start
        return recall(ids, self.truth, self.task.k), seconds

    def sweep(self) -> dict[str, Any]:
        """Every setting that is worth trying, once."""
        points = []
        lists = self.method.settings()
        self.found(lists[0][0])  # untimed
        for settings in lists:
            best, start, idle = 0.0, time.perf_counter(), 0
            for setting in settings:
                reached, seconds = self.found(setting)
                points.append({"setting": setting, "recall": reached, "seconds": seconds})
                idle = idle + 1 if reached < best + _NOTHING_GAINED else 0
                best = max(best, reached)
                is_slow = time.perf_counter() - start > _MOST_SWEEP_SECONDS / len(lists)
                if reached >= _HIGHEST_RECALL or is_slow or (idle >= _MOST_IDLE and best > 0.3):
                    break
        return {"points": points}

    def measure(self, setting: Setting) -> dict[str, Any]:
        """One turn: a batch on all threads, and queries one by one on one thread."""
        method, task, queries = self.method, self.task, self.queries
        method.search(queries[:_WARM_QUERIES], setting, task.threads)  # others ran in between
        start = time.perf_counter()
        method.search(queries, setting, task.threads)
        batch = time.perf_counter() - start
        return {"batch_seconds": batch, "single_us": self.one_by_one(setting)}

    def one_by_one(self, setting: Setting) -> list[float]:
        def time_of(number: int) -> float:
            query = self.queries[number : number + 1]
            start = time.perf_counter_ns()
            self.method.search(query, setting, 1)
            return (time.perf_counter_ns() - start) / 1000

        warm = [time_of(number) for number in range(min(_WARM_QUERIES, len(self.queries)))]
        key = json.dumps(setting)
        if key not in self.singles:
            fitting = int(1e6 * _TURN_SECONDS / statistics.median(warm))
            self.singles[key] = min(len(self.queries), max(_LEAST_SINGLES, min(fitting, _MOST_SINGLES)))
        return [time_of(number) for number in range(self.singles[key])]


def remove(path: Path) -> None:
    if path.is_dir():
        for each in sorted(path.rglob("*"), reverse=True):
            each.rmdir() if each.is_dir() else each.unlink()
        path.rmdir()
    else:
        path.unlink()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    warnings.simplefilter("ignore")  # recall is measured here, whatever an index warns of
    # Libraries print to standard output, which is for answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task = Task.of(sys.argv[2])
    worker: Worker | None = None
    for line in sys.stdin:
        command = json.loads(line)
        do = command.pop("do")
        try:
            if worker is None:
                worker = Worker(sys.argv[1], task)
            answer = getattr(worker, do)(**command)
        except Unsupported as error:
            answer = {"unsupported": str(error)}
        except MemoryError as error:
            answer = {"failed": f"out of memory ({error})"}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
