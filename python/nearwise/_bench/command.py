"""The verb `bench` of the program `nearwise`, as a wheel installs it."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import nearwise
from nearwise import _options
from nearwise._bench import methods
from nearwise._bench.report import BenchReport, files_of
from nearwise._verb.command_line import EXIT_CODES, INTERRUPTED, Parser, count, end_by_signals, fail, words
from nearwise._verb.output import require_creatable

_EXAMPLE = """Example:
  nearwise bench base.fbin -o bench.html
  nearwise bench base.npy --queries queries.npy --metric cosine --against faiss,hnswlib --rows 50000"""


def _recalls(text: str) -> tuple[float, ...]:
    try:
        return tuple(_options.target_recall(float(word)) for word in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers above 0 and at most 1, got '{text}'") from None


def _rows(text: str) -> int | str:
    return text if text == "all" else count(text)


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
    made.add_argument("--against", metavar="NAMES", type=words,
                      help=f"other libraries: {','.join(methods.RIVALS)} (default: those installed)")
    made.add_argument("--kinds", metavar="NAMES", type=words, default=methods.OWN,
                      help=f"indexes of nearwise [{','.join(methods.OWN)}]")
    made.add_argument("-k", metavar="N", type=count, default=10, help="neighbours of each query [%(default)s]")
    made.add_argument("--metric", choices=("sqeuclidean", "euclidean", "inner_product", "cosine"),
                      default="sqeuclidean", help="[%(default)s]")
    made.add_argument("--target-recall", metavar="X,X", type=_recalls, default=(0.9, 0.95, 0.99),
                      help="recalls to recommend indexes for [0.9,0.95,0.99]")
    made.add_argument("--rows", metavar="N", type=_rows, default=100_000,
                      help="vectors to use, a random sample of DATA, or 'all' [%(default)s]")
    made.add_argument("--limit-queries", metavar="N", type=count, default=1000, help="queries [%(default)s]")
    made.add_argument("--repeat", metavar="N", type=count, default=3, help="runs of each setting [%(default)s]")
    made.add_argument("--threads", metavar="N", type=count,
                      help="threads, to build and for batches (default: all CPUs)")
    made.add_argument("--memory-limit", metavar="SIZE",
                      help="memory limit of each index by itself: 2GiB, 500MB (default: none)")
    made.add_argument("--isa", metavar="NAME", help="highest instruction set of nearwise, see 'nearwise info'")
    made.add_argument("--seed", metavar="N", type=int, default=0, help="seed of all samples [%(default)s]")
    made.add_argument("--json", action="store_true", help="print the result, and errors, as JSON")
    made.add_argument("-q", "--quiet", action="store_true", help="no progress and no messages other than errors")
    return made


def _run(options: argparse.Namespace, remark: Callable[[str], None]) -> BenchReport:
    for path in files_of(options.output):
        require_creatable(path)
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
    end_by_signals()
    try:
        report = _run(options, remark)
    except nearwise.Error as error:
        return fail(error.code, str(error), made.json, EXIT_CODES.get(error.code, 70))
    except KeyboardInterrupt:
        return fail("cancelled", "interrupted", made.json, INTERRUPTED)
    if options.json:
        sys.stdout.write(report.json())
    for text in report.recommendations:
        remark(text)
    page, numbers = files_of(options.output)
    remark(f"wrote {page} and {numbers}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
