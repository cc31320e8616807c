"""Runs functions in child processes, within limits, and tells how they ended.

The caller must not have loaded the library under test: a child that has it only from its parent would be tested as a
fork, with the parent's threads missing.
"""

import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from outcomes import Finding, Outcome, finding_of

GIB = 1 << 30
START_SECONDS = 60  # of a child, to load its library


@dataclass(frozen=True)
class Limits:
    """Of a child, and what it is given."""

    seconds: float = 60  # for one piece of work
    address_space: int | None = 12 * GIB
    log: str = os.devnull  # its stdout and stderr
    begin: Callable[[], object] = lambda: None  # called first
    is_documented: Callable[[BaseException], bool] = lambda _: True


def run(work, limits):
    """The Finding that work() returns in a child process, or that its exception, death or delay amounts to."""
    (finding,) = run_many(lambda _: work(), 1, limits)
    return finding


def run_many(work, count, limits):
    """Yields the Finding of work(number) for number = 0, 1, ... count - 1.

    One child works on all of them. If it dies, or takes too long for one, another one continues with the next number.
    """
    number = 0
    while number < count:
        child = _Child(work, range(number, count), limits)
        try:
            while number < count and not child.has_ended:
                yield child.next_finding()
                number += 1
        finally:
            child.end()


class _Child:
    def __init__(self, work, numbers, limits):
        self._limits = limits
        self._received = b""
        self._has_begun = False
        self.has_ended = False
        self._status = None
        self._reader, writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if self._process == 0:
            os.close(self._reader)
            _live(writer, work, numbers, limits)
        os.close(writer)

    def next_finding(self):
        began = time.monotonic()
        if not self._has_begun:
            self._has_begun = True
            if not self._line(START_SECONDS):
                return self._ended("at its start")
        line = self._line(self._limits.seconds)
        if line is None:
            return self._ended(f"more than {self._limits.seconds} s")
        outcome, note = json.loads(line)
        return Finding(Outcome(outcome), note, round(time.monotonic() - began, 3))

    def _ended(self, note):
        """Of a child that has sent nothing: it is dead, or it hangs."""
        closed = select.select([self._reader], [], [], 0)[0]
        status = self.end()
        if not closed:
            return Finding(Outcome.HANG, note)
        if os.WIFSIGNALED(status):
            return Finding(Outcome.CRASH, signal.Signals(os.WTERMSIG(status)).name)
        return Finding(Outcome.CRASH, f"exit status {os.WEXITSTATUS(status)}")

    def _line(self, seconds):
        """The next line; None if there is none in time, or none any more."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            ready, _, _ = select.select([self._reader], [], [], max(0, deadline - time.monotonic()))
            more = os.read(self._reader, 1 << 16) if ready else b""
            if not more:
                return None
            self._received += more
        line, self._received = self._received.split(b"\n", 1)
        return line

    def end(self):
        """Kills what is left of the child and of its own children. Returns its exit status."""
        if not self.has_ended:
            self.has_ended = True
            try:
                os.killpg(self._process, signal.SIGKILL)
            except ProcessLookupError:  # it has not made its group yet
                os.kill(self._process, signal.SIGKILL)
            # That of a child that was dead already stays what it was.
            self._status = os.waitpid(self._process, 0)[1]
            os.close(self._reader)
        return self._status


def _live(writer, work, numbers, limits):
    """The life of a child. Does not return."""
    status = 1
    try:
        os.setpgid(0, 0)
        output = os.open(limits.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        faulthandler.disable()  # a crash is no news here
        if limits.address_space:
            resource.setrlimit(resource.RLIMIT_AS, (limits.address_space, limits.address_space))
        # A runner in the background of a script has it ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        limits.begin()
        os.write(writer, b"ready\n")
        for number in numbers:
            try:
                finding = work(number)
            except BaseException as error:
                finding = finding_of(error, limits.is_documented)
            os.write(writer, json.dumps([finding.outcome, finding.note]).encode() + b"\n")
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
