"""Saves that fail or are killed: the old file must survive."""

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isolation
from kills import Saver
from limits import limits_of
from outcomes import Finding, NotApplicable, Outcome, right, right_if, worst, wrong
from vectors import SIZE, SMALL

from cases.registry import Cases

CASES = Cases()


def state_of(adapter, path):
    """What a file holds after a fault."""

    def look():
        index = adapter.load(path)
        adapter.answers(index)
        size = adapter.size(index)
        return right_if(size in (SMALL, SIZE), f"{size} vectors")

    return isolation.run(look, limits_of(adapter))


def after_failed_save(adapter, folder, limit=None):
    """Saves an index of SIZE vectors over one of 500, where it does not fit."""
    target = Path(folder) / "index"
    shutil.copy(adapter.small_path, target)
    before = target.read_bytes()

    def save():
        index = adapter.load(adapter.base_path)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        adapter.save(index, target)
        return wrong("success reported")

    saved = isolation.run(save, limits_of(adapter))
    if saved.is_fault:
        return saved
    if not target.exists() or target.read_bytes() != before:
        return Finding(Outcome.LOST, f"{saved.note}; the old file is gone")
    left = [path.name for path in target.parent.iterdir() if path != target]
    return saved if not left else wrong(f"{left} left behind")


@CASES.add("save", supervises=True)
def disk_full(adapter):
    """a full disk while saving over a good file"""
    small, large = adapter.small_path.stat().st_size, adapter.base_path.stat().st_size
    # Room for the old file, but not for the new one; where they are alike, not for both.
    room = small + (large - small if large > small + (16 << 10) else large) // 2
    with tempfile.TemporaryDirectory(dir=adapter.folder) as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", folder]
        if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            raise NotApplicable("needs the right to mount a file system")
        try:
            return after_failed_save(adapter, folder)
        finally:
            subprocess.run(["umount", folder], check=True)


@CASES.add("save", supervises=True)
def file_size_limit(adapter):
    """a limit of file sizes (ulimit -f) while saving over a good file"""
    with tempfile.TemporaryDirectory(dir=adapter.folder) as folder:
        return after_failed_save(adapter, folder, limit=adapter.base_path.stat().st_size // 2)


@CASES.add("save", supervises=True)
def killed_while_saving(adapter):
    """20 kills at random moments of saving over a good file"""
    draw, states = random.Random(5), []
    with tempfile.TemporaryDirectory(dir=adapter.folder) as folder:
        target = Path(folder) / "index"
        for _ in range(3 if adapter.quick else 20):
            saver = Saver(adapter, [adapter.small_path, adapter.base_path], target)
            time.sleep(draw.uniform(0, 4 * saver.seconds))
            saver.kill()
            states.append(state_of(adapter, target))
    good = sum(state.outcome == Outcome.RIGHT for state in states)
    note = f"{good} of {len(states)} loaded"
    if good == len(states):
        return right(note)
    found = worst([state for state in states if state.outcome != Outcome.RIGHT])
    return Finding(found.outcome if found.is_fault else Outcome.LOST, f"{note}: {found.note}")


SAVE = """
import sys
sys.path.insert(0, sys.argv[1])
from adapters import ADAPTERS
adapter = next(kind for kind in ADAPTERS if kind.name == sys.argv[2])(sys.argv[3])
adapter.load_library()
adapter.save(adapter.load(adapter.base_path), sys.argv[4])
"""


@CASES.add("save", supervises=True)
def calls_of_a_save(adapter):
    """system calls of a save: another name, fsync, rename"""
    if not shutil.which("strace"):
        raise NotApplicable("needs strace")
    target, log = adapter.folder / "traced", adapter.folder / "strace"
    calls = "trace=openat,rename,renameat,renameat2,fsync,fdatasync"
    program = [sys.executable, "-c", SAVE, str(Path(__file__).parents[1]), adapter.name, adapter.folder, target]
    subprocess.run(["strace", "-f", "-e", calls, "-o", log, *program], check=True, capture_output=True, timeout=300)
    lines = log.read_text().splitlines()
    syncs = sum("fsync(" in line or "fdatasync(" in line for line in lines)
    renames = sum("rename" in line and target.name in line for line in lines)
    opened = sum("openat(" in line and f'/{target.name}"' in line and "O_TRUNC" in line for line in lines)
    note = f"{syncs} fsync, {renames} rename, the target truncated {opened} times"
    return right(note) if syncs and renames and not opened else Finding(Outcome.LOST, note)
