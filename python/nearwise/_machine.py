"""Facts about this build and machine."""

from __future__ import annotations

from typing import Any

from nearwise import _core
from nearwise._context import operation

try:
    from nearwise_cuda13 import LIBRARY  # no more than a path: nothing of CUDA is loaded
except ImportError:
    pass
else:
    _core.set_cuda_library(LIBRARY)


@operation
def info() -> dict[str, Any]:
    """Version, instruction sets, devices, CUDA and scans, as `nearwise info` prints them: put it into bug reports.

    `cuda` tells what the process has of CUDA: `problem` is why no device can be used, or empty; `library` the
    file of the CUDA backend; `driver_version` and `runtime_version` those of CUDA, 13010 for 13.1 and 0 for none.

    `scans` tells in which numbers exact search multiplies rows of a type, and how fast. Takes a moment,
    because scans are measured.

    Examples
    --------
    >>> import nearwise
    >>> sorted(nearwise.info())
    ['cuda', 'devices', 'instruction_sets', 'scans', 'version']
    >>> nearwise.info()["devices"][0]["name"]
    'cpu'
    """
    return _core.machine()
