"""The errors of the package."""

from __future__ import annotations

import errno
import os
import re
import traceback
from typing import Any, Self

# C++ and Python take the words from the same function of the system.
_NUMBERS = {os.strerror(number): number for number in errno.errorcode}

# Code of the package, and code that it calls: errors raised there are ours, those of callbacks are not.
_OWN_PACKAGES = ("nearwise", "numpy", "tempfile")


class Error(RuntimeError):
    """Every error of this package, except for arguments of wrong types: those are TypeErrors.

    Some are of a class that Python users catch as well: `ArgumentError`, `FileError`, `NotFoundError`, `AccessError`,
    `OutOfMemoryError`. `Error(message, code)` makes one of the class that its code asks for.

    Attributes
    ----------
    code : str
        `invalid_argument`, `not_found`, `cannot_create`, `io`, `corrupt`, `out_of_memory`, `unsupported`, `device`,
        `cancelled` or `internal`.

    Examples
    --------
    >>> import nearwise
    >>> try:
    ...     nearwise.read_vectors("missing.fvecs")
    ... except nearwise.Error as error:
    ...     print(error.code, isinstance(error, FileNotFoundError))
    not_found True
    """

    code: str = "internal"

    def __new__(cls, message: str, code: str | None = None) -> Self:
        kind: Any = _class_of(message, code) if cls is Error else cls
        # Python lets only the class whose fields an object holds make it.
        made: Self = (OSError if issubclass(kind, OSError) else RuntimeError).__new__(kind, message)
        return made

    def __init__(self, message: str, code: str | None = None) -> None:
        # C++ and the command line have other words for it.
        super().__init__(message.replace("(short_rows = pad fills", "(pad=True fills"))
        if code is not None:
            self.code = code


class ArgumentError(Error, ValueError):
    """An argument has a wrong value, shape or element type. Also a ValueError."""

    code = "invalid_argument"


class OutOfMemoryError(Error, MemoryError):
    """The call would need more than `memory_limit`, or than the machine has. Also a MemoryError."""

    code = "out_of_memory"


class FileError(Error, OSError):
    """A file cannot be created, read or written. Also an OSError, with its `errno` if the system gave one."""

    code = "io"

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message, code)
        number = _number_of(message)
        if number is None and self.code == "not_found":
            number = errno.ENOENT
        if number is not None:
            self.errno, self.strerror = number, os.strerror(number)

    def __str__(self) -> str:
        return str(self.args[0])  # not that of OSError, which has the number in front


class NotFoundError(FileError, FileNotFoundError):
    """A file, or the folder of a new one, does not exist. Also a FileNotFoundError."""

    code = "not_found"


class AccessError(FileError, PermissionError):
    """A file must not be read or written. Also a PermissionError."""


_BY_CODE: dict[str | None, type[Error]] = {
    "invalid_argument": ArgumentError,
    "out_of_memory": OutOfMemoryError,
    "not_found": NotFoundError,
}
_BY_NUMBER = {errno.ENOENT: NotFoundError, errno.EACCES: AccessError, errno.EPERM: AccessError}


def _class_of(message: str, code: str | None) -> type[Error]:
    if code in ("io", "cannot_create"):
        return _BY_NUMBER.get(_number_of(message) or 0, FileError)
    return _BY_CODE.get(code, Error)


def _number_of(message: str) -> int | None:
    """The errno of the last words of the system in a message.

    >>> _number_of("open a.nw: No such file or directory")
    2
    """
    numbers = [_NUMBERS[words] for words in re.split(": |; ", str(message)) if words in _NUMBERS]
    return numbers[-1] if numbers else None


def own_error(error: Exception) -> Error | None:
    """The `Error` for an exception of Python that our code, C++ or numpy has raised; None for others.

    Those are an `Error` already, or come from the caller's code: callbacks, iterators, arrays of other libraries.
    """
    if isinstance(error, Error):
        return None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).partition(".")[0] not in _OWN_PACKAGES:
            return None
    if isinstance(error, MemoryError):
        return OutOfMemoryError(str(error) or "no memory is left")
    if isinstance(error, OSError):
        return Error(f"{error.filename}: {error.strerror}" if error.filename else str(error), "io")
    return ArgumentError(str(error))
