"""Kills processes at random moments of a save over an existing file, and looks at what is left.

    python tests/battery/kills.py --kills 1000

A child saves two objects to one name in turns until it is killed (SIGKILL). Then the file must be one of the two, to
the byte. The next child saves once and reports; by then every temporary file of dead processes must be gone. Every kind
of file that nearwise writes is one of the kinds, among which the kills are divided. A save of pairs or of a
deduplication is a plan, which the next child resumes. Prints one JSON line. Kills that left a temporary file were
certainly in the middle of a save.
"""

import argparse
import json
import os
import random
import signal
import struct
import tempfile
import time
from collections import Counter
from pathlib import Path

from adapters import nearwise_files, nearwise_kinds, nearwise_names, nearwise_quantizers
from isolation import run
from limits import limits_of
from outcomes import Outcome, right
from vectors import DIM, normal

ROWS = 20_000
MODULES = (nearwise_kinds, nearwise_quantizers, nearwise_names, nearwise_files)
KINDS = [
    *(kind for module in MODULES for kind in module.ADAPTERS if "save" not in kind.lacks),
    *nearwise_files.WITHOUT_CHECKSUMS,
]


class Saver:
    """A child that saves the versions of an index to `target` in turns, until it is killed."""

    def __init__(self, adapter, versions, target):
        reader, writer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                os.close(reader)
                _save_for_ever(adapter, versions, target, writer)
            finally:
                os._exit(1)
        os.close(writer)
        seconds = os.read(reader, 8)  # empty if the child has failed
        os.close(reader)
        if not seconds:
            os.waitpid(self.process, 0)
            raise RuntimeError(f"{adapter.name}: saving failed")
        (self.seconds,) = struct.unpack("d", seconds)  # of its first save, which is done

    def kill(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _save_for_ever(adapter, versions, target, writer):
    adapter.load_library()
    indexes = [adapter.load(path) for path in versions]
    began = time.monotonic()
    adapter.save(indexes[0], target)
    os.write(writer, struct.pack("d", time.monotonic() - began))
    while True:
        for index in reversed(indexes):
            adapter.save(index, target)


def strike(adapter, versions, folder, kills, draw):
    """Counts what was left after each of so many kills."""
    target = folder / f"target{adapter.suffix}"
    contents = [path.read_bytes() for path in versions]
    found = Counter(kills=kills)

    def temporaries(living=0):
        return [path for path in folder.iterdir() if path != target and f".{living}." not in path.name]

    for _ in range(kills):
        saver = Saver(adapter, versions, target)
        found["temporary files after the next save"] += len(temporaries(saver.process))
        time.sleep(draw.uniform(0, 2 * saver.seconds))
        saver.kill()
        found["old or new file"] += target.read_bytes() in contents
        found["left a temporary file"] += bool(temporaries())
    saver = Saver(adapter, versions, target)
    found["temporary files after the next save"] += len(temporaries(saver.process))
    saver.kill()
    return found


def prepare(adapter):
    """Two saved objects of a kind."""
    paths = [adapter.folder / f"{name}{adapter.suffix}" for name in ("old", "new")]

    def save():
        for seed, path in enumerate(paths):
            index = adapter.empty()
            adapter.add(index, normal(ROWS, DIM, seed))
            adapter.save(index, path)
        return right()

    finding = run(save, limits_of(adapter, 300))
    if finding.outcome != Outcome.RIGHT:
        raise RuntimeError(f"{adapter.name}: {finding}")
    return paths


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--folder", help="on the file system to be tested; default: that of temporary files")
    options = parser.parse_args()
    draw = random.Random(1)
    report, total = {}, Counter()
    began = time.monotonic()
    for number, kind in enumerate(KINDS):
        kills = options.kills * (number + 1) // len(KINDS) - options.kills * number // len(KINDS)
        with (
            tempfile.TemporaryDirectory(dir=options.folder) as folder,
            tempfile.TemporaryDirectory(dir=options.folder) as place,
        ):
            adapter = kind(folder)
            found = strike(adapter, prepare(adapter), Path(place), kills, draw)
        report[kind.name] = dict(found)
        total.update(found)
    print(json.dumps({**total, "kinds": report, "seconds": round(time.monotonic() - began, 1)}))


if __name__ == "__main__":
    main()
