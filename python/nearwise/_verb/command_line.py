"""Options, messages and exit codes, like those of the C++ program (docs/reference/command-line.md)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from typing import Any, NoReturn

EXIT_CODES = {
    "invalid_argument": 2,
    "corrupt": 65,
    "not_found": 66,
    "unsupported": 69,
    "device": 69,
    "internal": 70,
    "out_of_memory": 71,
    "cannot_create": 73,
    "io": 74,
}
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """Errors are one line, or with --json one line of JSON."""

    json = False

    def error(self, message: str) -> NoReturn:
        verb = self.prog.removeprefix("nearwise ")
        sys.exit(fail("usage", f"{verb}: {message} (see '{self.prog} --help')", self.json, 2))


def fail(code: str, message: str, as_json: bool, exit_code: int) -> int:
    text = json.dumps({"error": {"code": code, "message": message}}) if as_json else f"nearwise: {message}"
    print(text, file=sys.stderr)
    return exit_code


def words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, got '{text}'")
    return int(text)


def _end(number: int, _: Any) -> NoReturn:
    sys.exit(fail("cancelled", "interrupted", "--json" in sys.argv, 128 + number))


def end_by_signals() -> None:
    """Processes are ended and files removed on the way out."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
