"""What this build found on this machine."""

from __future__ import annotations

from typing import Any

from nearwise import _core


def info() -> dict[str, Any]:
    """Version, instruction sets, devices and BLAS, as `nearwise info` prints them: put it into bug reports.

    Takes a moment, because the BLAS is measured.

    Examples
    --------
    >>> import nearwise
    >>> sorted(nearwise.info())
    ['blas', 'devices', 'instruction_sets', 'version']
    >>> nearwise.info()["devices"][0]["name"]
    'cpu'
    """
    return _core.machine()
