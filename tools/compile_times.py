#!/usr/bin/env python3
"""Finds files that take too long to compile: a .cpp may take 30 s of CPU time, a .cu 60 s.

Ninja's log has wall-clock times, which a busy machine stretches: files above the bar by the log are compiled once
more and their CPU time is what counts. Files that ccache answered take no time and prove nothing; their number is
printed.
"""
import argparse
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

BARS_SECONDS = {".cpp": 30.0, ".cu": 60.0}
OBJECT = re.compile(r"(?P<source>.*(?P<suffix>\.cpp|\.cu))\.o$")
CACHED_SECONDS = 0.15  # below this nothing was compiled


def read_log(text):
    """Wall-clock seconds by object file; the last entry of an object counts."""
    seconds = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        start, end, _, output, *_ = line.split("\t")
        if OBJECT.match(output):
            seconds[output] = (int(end) - int(start)) / 1000
    return seconds


def source_name(output):
    """src/CMakeFiles/nearwise.dir/core/math/random.cpp.o -> src/core/math/random.cpp"""
    return re.sub(r"(^|/)CMakeFiles/[^/]+\.dir/", r"\1", OBJECT.match(output)["source"])


def bar(output):
    return BARS_SECONDS[OBJECT.match(output)["suffix"]]


def compile_again(build, output):
    """CPU seconds of compiling one object, the result thrown away."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        arguments = shlex.split(entry["command"])
        if "-o" in arguments and arguments[(position := arguments.index("-o")) + 1] == output:
            arguments[position + 1] = os.devnull
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(arguments, cwd=entry["directory"], check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    raise SystemExit(f"compile_times: no compile command makes {output}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path, help="a build folder, for example build/release")
    parser.add_argument("--tolerance", type=float, default=1.25, help="for slower machines: multiplies the bars")
    parser.add_argument("--slowest", type=int, default=10, help="how many to print")
    options = parser.parse_args()
    log = options.build / ".ninja_log"
    if not log.exists():
        print(f"compile_times: {options.build} was not built by Ninja", file=sys.stderr)
        return 2
    # Objects of files that are gone stay in the log for ever.
    seconds = {output: value for output, value in read_log(log.read_text()).items()
               if (options.build / output).exists()}
    print("slowest by the clock:")
    for output, value in sorted(seconds.items(), key=lambda entry: -entry[1])[:options.slowest]:
        print(f"{value:7.1f} s  {source_name(output)}")
    cached = sum(value < CACHED_SECONDS for value in seconds.values())
    print(f"compile_times: {len(seconds)} compilations, {sum(seconds.values()):.0f} s, {cached} from the cache")
    too_slow = 0
    for output in sorted(output for output, value in seconds.items() if value > bar(output) * options.tolerance):
        cpu_seconds = compile_again(options.build, output)
        verdict = f"{cpu_seconds:.1f} s of CPU time, allowed are {bar(output):.0f} (times {options.tolerance})"
        if cpu_seconds > bar(output) * options.tolerance:
            too_slow += 1
            print(f"{source_name(output)}: {verdict}", file=sys.stderr)
        else:
            print(f"{source_name(output)}: {verdict}: the machine was busy")
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
