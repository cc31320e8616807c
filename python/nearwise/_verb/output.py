"""Files that a verb writes after minutes of work."""

from __future__ import annotations

import errno
import os

from nearwise._error import Error


def require_creatable(path: str | os.PathLike[str]) -> None:
    """Raises `Error` with code cannot_create where writing the file would fail: checked before the work."""
    name = os.fspath(path)
    folder = os.path.dirname(name) or "."
    if os.path.isdir(name):
        number = errno.EISDIR
    elif not name or not os.path.isdir(folder):
        number = errno.ENOENT
    elif not os.access(folder, os.W_OK | os.X_OK):
        number = errno.EACCES
    else:
        return
    raise Error(f"{name}: {os.strerror(number)}", "cannot_create")
