"""The verb `gpu-check` of the program `nearwise`, as a wheel installs it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import nearwise
from nearwise._gpu_check import process, report
from nearwise._gpu_check.case import FULL, QUICK
from nearwise._gpu_check.cases import CASES, SECTIONS
from nearwise._gpu_check.estimates import gpu_of
from nearwise._verb import machine
from nearwise._verb.command_line import EXIT_CODES, INTERRUPTED, Parser, count, end_by_signals, fail, words
from nearwise._verb.output import require_creatable

_EXAMPLE = """Example:
  nearwise gpu-check --report gpu.json
  nearwise gpu-check --full --report gpu.json
  nearwise gpu-check --only lists,graphs --limit 600

Exit codes: 0 every answer has the CPU's bytes, 1 wrong bytes, 2 usage, 69 no device can be used or the driver is
too old, 70 a step failed, 71 out of memory, 73 cannot create the report, 124 a step ran out of time,
130 interrupted"""

_QUICK_SECONDS = 120
_FULL_SECONDS = 3600


def parser() -> Parser:
    made = Parser(
        prog="nearwise gpu-check",
        description="Compares every operation of a CUDA device with the CPU, byte for byte, and measures it.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    amount = made.add_mutually_exclusive_group()
    amount.add_argument("--quick", dest="shapes", action="store_const", const=QUICK.name, default=QUICK.name,
                        help="small shapes, no timings (default)")
    amount.add_argument("--full", dest="shapes", action="store_const", const=FULL.name,
                        help="also shapes of 1,000,000 x 128 and 200,000 x 768, and timings: takes long")
    made.add_argument("-o", "--report", metavar="FILE", default="nearwise-gpu-check.json",
                      help="JSON to write [%(default)s]")
    made.add_argument("--device", metavar="NAME", default="cuda:0", help="cuda:N [%(default)s]")
    made.add_argument("--only", metavar="NAMES", type=words, default=(),
                      help=f"some sections: {','.join(SECTIONS)}; without timings")
    made.add_argument("--limit", metavar="N", type=count,
                      help=f"seconds for a case or timing [{_QUICK_SECONDS}, with --full {_FULL_SECONDS}]")
    made.add_argument("--json", action="store_true", help="print the report, and errors, as JSON")
    made.add_argument("-q", "--quiet", action="store_true", help="no progress and no messages other than errors")
    return made


def _environment(worker: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    """What the driver says, asked in a process: a driver may hang."""
    found: dict[str, Any] = {}
    for _, answer in process.answers(worker, (options.shapes, options.device, ""), ["environment"], options.limit):
        found = answer if not found else found | answer
    names = [device["device"] for device in found.get("devices", [])]
    if found["outcome"] == "done" and not found["problem"] and options.device not in names:
        found["problem"] = f"there is no {options.device}; devices here: {', '.join(names) or 'none'}"
    return found


def _write(path: str, found: dict[str, Any]) -> None:
    """The whole report or none."""
    folder = os.path.dirname(path) or "."
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".nearwise-") as scratch:
            written = os.path.join(scratch, "report.json")
            with open(written, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
                file.write("\n")
            os.replace(written, path)
    except OSError as error:
        raise nearwise.Error(f"{path}: {error.strerror}", "cannot_create") from None


def _rounds(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """(shapes, steps)"""
    cases = [f"case:{case.name}" for case in CASES if not options.only or case.section in options.only]
    rounds = [(QUICK.name, cases)]
    if options.shapes == FULL.name:
        from nearwise._gpu_check import rivals, timings

        rounds.append((FULL.name, cases))
        if not options.only:
            measured = [f"timing:{timing.name}" for timing in timings.TIMINGS]
            rounds.append((FULL.name, measured + [f"rival:{name}" for name in rivals.RIVALS]))
    return rounds


def _check(options: argparse.Namespace, worker: Sequence[str], remark: Callable[[str], None]) -> dict[str, Any]:
    environment = _environment(worker, options)
    device = next((each for each in environment.get("devices", []) if each["device"] == options.device), None)
    gpu = None if device is None else gpu_of(device["name"])
    fields: dict[str, Any] = {
        "nearwise": nearwise.__version__,
        "shapes": options.shapes,
        "device": options.device,
        "limit_seconds": options.limit,
        "machine": machine.describe() | {"python": sys.version.split()[0]},
        "environment": environment,
        "estimates_of": gpu,
        "cases": [],
        "operations": [],
        "timings": [],
        "rivals": [],
    }
    if device is not None and environment["outcome"] == "done":
        lists = {"case": fields["cases"], "timing": fields["timings"], "rival": fields["rivals"]}
        for shapes, steps in _rounds(options):
            for step, answer in process.answers(worker, (shapes, options.device, gpu or ""), steps, options.limit):
                kind, _, name = step.partition(":")
                lists.get(kind, fields["cases"]).append({"name": name or kind, "shapes": shapes, **answer})
                remark(f"{name or kind}, {shapes}: {answer['outcome']}")
        fields["operations"] = report.operation_rows(device["operations"], CASES, fields["cases"])
    return report.assemble(fields, is_partial=bool(options.only))


def _run(options: argparse.Namespace, worker: Sequence[str], remark: Callable[[str], None]) -> int:
    if not options.device.startswith("cuda:") or not options.device[5:].isdigit():
        raise nearwise.Error(f"gpu-check: --device must be cuda:N, got '{options.device}'", "invalid_argument")
    if unknown := sorted(set(options.only) - set(SECTIONS)):
        expected = ", ".join(SECTIONS)
        raise nearwise.Error(f"gpu-check: --only must be some of {expected}, got '{unknown[0]}'", "invalid_argument")
    if options.limit is None:
        options.limit = _FULL_SECONDS if options.shapes == FULL.name else _QUICK_SECONDS
    require_creatable(options.report)
    found = _check(options, worker, remark)
    _write(options.report, found)
    if options.json:
        print(json.dumps(found))
    elif not options.quiet:
        print(report.text_of(found), end="")
    remark(f"wrote {options.report}")
    code: int = found["exit_code"]
    return code


def main(arguments: list[str], worker: Sequence[str] = process.WORKER) -> int:
    """The exit code."""
    made = parser()
    made.json = "--json" in arguments
    options = made.parse_args(arguments)

    def remark(text: str) -> None:
        if not (options.quiet or options.json):
            print(f"nearwise: {text}", file=sys.stderr)

    end_by_signals()
    try:
        return _run(options, worker, remark)
    except nearwise.Error as error:
        return fail(error.code, str(error), made.json, EXIT_CODES.get(error.code, 70))
    except KeyboardInterrupt:
        return fail("cancelled", "interrupted", made.json, INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
