"""What many tests check in the same way."""

import inspect
import os
import re
import signal
import threading
import time
from pathlib import Path

import nearwise
import numpy as np
import pytest

# Settings that change no bit of an answer.
MACHINES = [{"threads": 1}, {"threads": 3}, *({"isa": isa} for isa in nearwise.info()["instruction_sets"])]


def refuses(kind, text, call, *arguments, **options):
    """The call raises `kind`, an exception or the code of a nearwise.Error, with a message that matches `text`."""
    error = nearwise.Error if isinstance(kind, str) else kind
    with pytest.raises(error, match=text or None) as caught:
        call(*arguments, **options)
    assert error is kind or caught.value.code == kind


def public_callables():
    """Every function of the package, and every constructor and method of its classes, by name; none of protocols."""
    for name in sorted({*nearwise.__all__} - {"Searchable"}):
        value = getattr(nearwise, name)
        if inspect.isclass(value):
            if not issubclass(value, (tuple, Exception)) and value.__module__ == "nearwise":
                for part, method in inspect.getmembers(value, callable):
                    if (part == "__init__" or not part.startswith("_")) and inspect.isroutine(method):
                        yield f"{name}.{part}", method
        elif callable(value):
            yield name, value


def callables_with(argument):
    """The names of those that have it."""
    found = (name for name, function in public_callables() if argument in inspect.signature(function).parameters)
    return {name.removesuffix(".__init__") for name in found}


def reports_of(call, *arguments, **options):
    """What a call reports as progress."""
    reports = []
    call(*arguments, progress=lambda done, total: reports.append((done, total)), **options)
    return reports


def stops_by_progress(call, *arguments, seconds=10, **options):
    """A callback that raises ends the call soon, and its exception arrives."""

    class Enough(Exception):
        pass

    def enough(done, total):
        raise Enough

    began = time.monotonic()
    with pytest.raises(Enough):
        call(*arguments, progress=enough, **options)
    assert time.monotonic() - began < seconds


def in_threads(work, *calls):
    """Starts work(*arguments) for all `calls` at once. Returns how to wait for them, which raises what one has raised."""
    raised = []

    def guarded(*arguments):
        try:
            work(*arguments)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=arguments, daemon=True) for arguments in calls]
    for thread in threads:
        thread.start()

    def join(seconds=100):
        for thread in threads:
            thread.join(seconds)
            assert not thread.is_alive(), f"not over after {seconds} s"
        for error in raised:
            raise error

    return join


def runs_in_a_child(work):
    """work() returns True in a forked process, which is killed if it takes a minute."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def frees_what_it_takes(use, times=30):
    resource = pytest.importorskip("resource")
    for _ in range(3):
        use()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(times):
        use()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000


def lets_other_threads_run(call, *arguments, **options):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    join = in_threads(tick, ())
    began = time.monotonic()
    call(*arguments, **options)
    ended = time.monotonic()
    stop.set()
    join()
    assert len([moment for moment in ticks if began < moment < ended]) > (ended - began) / 0.05


def spoiled(rows, row, value=np.nan):
    """A copy with such an element in one of its rows."""
    copy = rows.copy()
    copy[row, 3] = value
    return copy


def fields_of(header, struct):
    """The fields of a struct in include/nearwise, and their defaults as they are written."""
    text = (Path(__file__).parents[2] / "include" / "nearwise" / header).read_text()
    body = re.sub("//.*", "", re.search(rf"struct {struct} \{{(.*?)\n\}};", text, re.DOTALL)[1])
    return dict(re.findall(r"(\w+)(?:\s=\s([^;]+))?;", body))


def damage(path):
    """Flips a bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
