"""Ctrl-C at a moment of a call, and work that runs on another thread meanwhile."""

import os
import signal
import threading
import time


class Missed(Exception):
    """The call ended before the signal."""


def latency(call, moment):
    """Seconds between a signal `moment` seconds after the start of the call and its exception."""
    sent = []
    is_running = True

    def interrupt():
        time.sleep(moment)
        if is_running:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        call()
        is_running = False
        thread.join()
        # A signal that was sent while the call returned arrives here at the latest.
        time.sleep(0.01)
    except KeyboardInterrupt:
        caught = time.monotonic()
        ended_before = not is_running
        is_running = False
        thread.join()
        if ended_before:
            raise Missed from None
        return caught - sent[0]
    raise Missed


class Busy:
    """Calls work() again and again on another thread, until it raises."""

    def __init__(self, work):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self.calls = 0
        self.error = None

    def _run(self, work):
        try:
            while not self._stop.is_set():
                work()
                self.calls += 1
        except Exception as error:
            self.error = error

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
