"""Facts about this build and machine."""

from __future__ import annotations

from typing import Any

from nearwise import _core
from nearwise._context import operation


@operation
def info() -> dict[str, Any]:
    """Version, instruction sets, devices and scans, as `nearwise info` prints them: put it into bug reports.

    `scans` tells in which numbers exact search multiplies rows of a type, and how fast. Takes a moment,
    because scans are measured.

    Examples
    --------
    >>> import nearwise
    >>> sorted(nearwise.info())
    ['devices', 'instruction_sets', 'scans', 'version']
    >>> nearwise.info()["devices"][0]["name"]
    'cpu'
    """
    return _core.machine()
