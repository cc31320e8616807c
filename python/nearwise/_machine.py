"""Facts about this build and machine."""

from __future__ import annotations

from typing import Any

from nearwise import _core


def info() -> dict[str, Any]:
    """Version, instruction sets, devices, scans and BLAS, as `nearwise info` prints them: put it into bug reports.

    `scans` tells in which numbers exact search multiplies rows of a type, and how fast. Takes a moment,
    because scans and BLAS are measured.

    Examples
    --------
    >>> import nearwise
    >>> sorted(nearwise.info())
    ['blas', 'devices', 'instruction_sets', 'scans', 'version']
    >>> nearwise.info()["devices"][0]["name"]
    'cpu'
    """
    return _core.machine()
