"""The cost of checksums: the same program with checksums, and with ones that take no time, in turns.

bench/harness/checksum_preload.cpp replaces the checksum functions. Without checksums a program writes and expects the
constant 1 in their place, so that it has files of its own; everything else is the same code on the same bytes.
"""
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

from . import pairs, processes
from .session import CACHE, ROOT, THREADS


def preloaded(session, mode, **more):
    """Variables of a program whose checksums are `timed`, or `none`."""
    library = session.build("release", "checksum_preload") / "bench" / "harness" / "checksum_preload.so"
    return os.environ | {"LD_PRELOAD": str(library), "CHECKSUMS": mode} | more


def share(found):
    """found: pairs of times with and without checksums."""
    whole, without = pairs.medians(found)
    return 1 - without / whole


def summary(found):
    return {"share": round(share(found), 3), "interval": pairs.interval(found, share),
            "seconds": [round(each, 4) for each, _ in found], "seconds_without": [round(each, 4) for _, each in found]}


class Files:
    """A process of bench/end_to_end/saved_files.py."""

    def __init__(self, session, variables=os.environ):
        package = session.build("release", "nearwise_python") / "python"
        command = [CACHE / "env" / "bin" / "python", ROOT / "bench" / "end_to_end" / "saved_files.py"]
        self._process = subprocess.Popen([*command, "--threads", str(THREADS)], text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, env=variables | {"PYTHONPATH": str(package)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, **command):
        self._process.stdin.write(json.dumps(command, default=str) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def check_refused(files, path):
    """That a file was written without checksums: if not, both programs have them."""
    try:
        files.ask(load=path, cached=True)
    except RuntimeError as error:
        if "checksum" in str(error):
            return
        raise
    raise RuntimeError(f"{path} has checksums: checksum_preload is not in effect")


def load_times(paths, rounds, cached):
    """Answers of each round, in the order of `paths`: {process: its file}. Processes take turns in going first."""
    found = []
    for number in range(1 + rounds):
        turn = list(paths) if number % 2 else list(paths)[::-1]
        answers = {files: files.ask(load=paths[files], cached=cached) for files in turn}
        found.append([answers[files] for files in paths])
    return found[1:]  # the first round warms up


def load_costs(session, kinds, rounds):
    """{kind: details} of loads from the page cache and from disk. kinds: {kind of file: rows}."""
    costs = {}
    with Files(session) as plain, Files(session, preloaded(session, "none")) as bare:
        for kind, rows in kinds.items():
            paths = {plain: session.scratch / f"{kind}.nw", bare: session.scratch / f"{kind}-bare.nw"}
            for files, path in paths.items():
                size = files.ask(save=kind, rows=rows, path=path)["bytes"]
            check_refused(plain, paths[bare])
            costs[kind] = {"megabytes": round(size / 1e6)}
            for source in ("cache", "disk"):
                answers = load_times(paths, rounds, source == "cache")
                costs[kind][source] = summary([tuple(each["seconds"] for each in both) for both in answers])
                if source == "cache":
                    costs[kind]["seconds_to_read"] = round(min(both[0]["read_seconds"] for both in answers), 4)
            for path in paths.values():
                path.unlink()
    return costs


def build(session, mode, noun, base, *options):
    """(seconds, report of checksum_preload) of `nearwise NOUN build`."""
    with tempfile.TemporaryDirectory(dir=session.scratch) as folder:
        report = Path(folder, "checksums.json")
        words = [word.format(folder=folder) for word in ("-o", "{folder}/built.nw", *options)]
        run = processes.run([session.nearwise(), noun, "build", base, "--threads", THREADS, "--quiet", *words],
                            env=preloaded(session, mode, CHECKSUM_REPORT=str(report)))
        return run.seconds, json.loads(report.read_text())


def build_costs(session, rows, memory_limit, rounds):
    """{build: details}, by the command line program, in memory and over files.

    `share` is the time with a thread in a checksum function, relative to that of the build: an upper bound, and less
    noisy than `by_difference`, the comparison with builds without checksums.
    """
    base, costs = session.scratch / "vectors.fbin", {}
    with Files(session) as files:
        base_bytes = files.ask(save="vectors", rows=rows, path=base)["bytes"]
    over_files = ("--work", "{folder}/work", "--memory-limit", memory_limit)
    for name, noun, options in (("index", "index", ()), ("index --work", "index", over_files),
                                ("graph", "graph", ()), ("graph --work", "graph", over_files)):
        found, shares = [], []
        for number in range(1 + rounds):
            turn = ("timed", "none") if number % 2 else ("none", "timed")
            times = {mode: build(session, mode, noun, base, *options) for mode in turn}
            found.append((times["timed"][0], times["none"][0]))
            shares.append(times["timed"][1]["seconds"] / times["timed"][0])
        costs[name] = {"share": round(statistics.median(shares[1:]), 4), "megabytes": round(base_bytes / 1e6),
                       "checksums": times["timed"][1], "by_difference": summary(found[1:])}
    base.unlink()
    return costs
