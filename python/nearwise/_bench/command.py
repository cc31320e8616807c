"""The verb `bench` of the program `nearwise`, as a wheel installs it.

Options, messages and exit codes are like those of the C++ program (docs/reference/command-line.md).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import nearwise
from nearwise import _options
from nearwise._bench import methods
from nearwise._bench.report import BenchReport, files_of

_EXIT_CODES = {
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
_INTERRUPTED = 130

_EXAMPLE = """Example:
  nearwise bench base.fbin -o bench.html
  nearwise bench base.npy --queries queries.npy --metric cosine --against faiss,hnswlib --rows 50000"""


class Parser(argparse.ArgumentParser):
    json = False

    def error(self, message: str) -> NoReturn:
        sys.exit(fail("usage", f"bench: {message} (see 'nearwise bench --help')", self.json, 2))


def fail(code: str, message: str, as_json: bool, exit_code: int) -> int:
    text = json.dumps({"error": {"code": code, "message": message}}) if as_json else f"nearwise: {message}"
    print(text, file=sys.stderr)
    return exit_code


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _recalls(text: str) -> tuple[float, ...]:
    try:
        return tuple(_options.target_recall(float(word)) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers above 0 and at most 1, got '{text}'") from None


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, got '{text}'")
    return int(text)


def _rows(text: str) -> int | str:
    return text if text == "all" else _count(text)


def _end(number: int, _: Any) -> NoReturn:
    """A signal: processes are ended and files removed on the way out."""
    sys.exit(fail("cancelled", "interrupted", "--json" in sys.argv, 128 + number))


def parser() -> Parser:
    made = Parser(
        prog="nearwise bench",
        description="Compares the indexes of nearwise, and those of other libraries, on your vectors.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("data", metavar="DATA", help="vectors: .npy, .fbin, .fvecs, ...")
    made.add_argument("--queries", metavar="FILE", help="queries (default: a sample of DATA, taken out of the base)")
    made.add_argument("-o", "--output", metavar="FILE", default="nearwise-bench.html",
                      help="page to write; a .json file with all numbers appears next to it [%(default)s]")
    made.add_argument("--against", metavar="NAMES", type=_words,
                      help=f"other libraries: {','.join(methods.RIVALS)} (default: those installed)")
    made.add_argument("--kinds", metavar="NAMES", type=_words, default=methods.OWN,
                      help=f"indexes of nearwise [{','.join(methods.OWN)}]")
    made.add_argument("-k", metavar="N", type=_count, default=10, help="neighbours of each query [%(default)s]")
    made.add_argument("--metric", choices=("sqeuclidean", "euclidean", "inner_product", "cosine"),
                      default="sqeuclidean", help="[%(default)s]")
    made.add_argument("--target-recall", metavar="X,X", type=_recalls, default=(0.9, 0.95, 0.99),
                      help="recalls to recommend indexes for [0.9,0.95,0.99]")
    made.add_argument("--rows", metavar="N", type=_rows, default=100_000,
                      help="vectors to use, a random sample of DATA, or 'all' [%(default)s]")
    made.add_argument("--limit-queries", metavar="N", type=_count, default=1000, help="queries [%(default)s]")
    made.add_argument("--repeat", metavar="N", type=_count, default=3, help="turns of each setting [%(default)s]")
    made.add_argument("--threads", metavar="N", type=_count, help="to build and for batches (default: all CPUs)")
    made.add_argument("--memory-limit", metavar="SIZE", help="of each index by itself: 2GiB, 500MB (default: no limit)")
    made.add_argument("--isa", metavar="NAME", help="highest instruction set of nearwise, see 'nearwise info'")
    made.add_argument("--seed", metavar="N", type=int, default=0, help="of all samples [%(default)s]")
    made.add_argument("--json", action="store_true", help="print the result, and errors, as JSON")
    made.add_argument("-q", "--quiet", action="store_true", help="no progress and no messages other than errors")
    return made


def _run(options: argparse.Namespace, remark: Callable[[str], None]) -> BenchReport:
    files_of(options.output)  # before minutes of work
    folder = os.path.dirname(options.output) or "."
    if not os.path.isdir(folder):
        raise nearwise.Error(f"{options.output}: No such file or directory", "cannot_create")
    data = nearwise.read_vectors(options.data)
    queries = None if options.queries is None else nearwise.read_vectors(options.queries)
    for each in methods.select(options.kinds, options.against).left_out:
        remark(f"{each['library']} is left out: {each['reason']}")
    return nearwise.bench(
        data,
        queries=queries,
        k=options.k,
        metric=options.metric,
        target_recalls=options.target_recall,
        kinds=options.kinds,
        against=options.against,
        limit=options.rows,
        query_count=options.limit_queries,
        repeat=options.repeat,
        output=options.output,
        title=os.path.basename(options.data),
        seed=options.seed,
        threads=options.threads,
        memory_limit=options.memory_limit,
        isa=options.isa,
        progress=None if options.quiet or options.json else True,
    )


def main(arguments: list[str]) -> int:
    """The exit code."""
    made = parser()
    made.json = "--json" in arguments
    options = made.parse_args(arguments)

    def remark(text: str) -> None:
        if not (options.quiet or options.json):
            print(f"nearwise: {text}", file=sys.stderr)

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        remark(str(message))

    warnings.showwarning = warn
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        report = _run(options, remark)
    except nearwise.Error as error:
        return fail(error.code, str(error), made.json, _EXIT_CODES.get(error.code, 70))
    except KeyboardInterrupt:
        return fail("cancelled", "interrupted", made.json, _INTERRUPTED)
    if options.json:
        sys.stdout.write(report.json())
    for text in report.recommendations:
        remark(text)
    page, numbers = files_of(options.output)
    remark(f"wrote {page} and {numbers}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
