"""Where nearwise keeps what benchmarks need, and virtual environments made from pinned requirements.

Uses the standard library only: it runs before any environment exists.
"""
import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path


def cache_home():
    """The folder of all benchmark caches, outside the source tree."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nearwise"


def data_home():
    """The folder that holds one folder per data set."""
    return Path(os.environ.get("NEARWISE_DATA") or cache_home() / "data").expanduser().absolute()


@contextmanager
def exclusive(path):
    """One process at a time; the others wait. The lock file stays: removing it would race."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another process that holds {path}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_running_in(folder):
    return Path(sys.prefix).resolve() == folder.resolve()


def ensure(folder, requirements):
    """Make or update the environment `folder`; return its Python.

    A stamp with the hash of the requirements is written last: with unchanged pins this costs
    one file read, and an interrupted installation is done again.
    """
    wanted = hashlib.sha256(Path(requirements).read_bytes()).hexdigest()
    stamp = folder / "requirements.sha256"
    python = folder / "bin" / "python"

    def is_current():
        return python.exists() and stamp.exists() and stamp.read_text() == wanted

    if is_current():
        return python
    if sys.version_info[:2] != (3, 11):
        sys.exit("the pinned packages are chosen for Python 3.11; run this with python3.11")
    with exclusive(folder.with_name(folder.name + ".lock")):
        if is_current():  # made by the process we waited for
            return python
        print(f"installing the pinned packages into {folder}", file=sys.stderr)
        if not python.exists():
            venv.create(folder, with_pip=True, clear=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "--requirement", requirements], check=True)
        stamp.write_text(wanted)
    return python
