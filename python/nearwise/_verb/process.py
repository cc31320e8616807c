"""Processes of the package that a verb starts."""

from __future__ import annotations

import os
from pathlib import Path

import nearwise


def environment() -> dict[str, str]:
    """What a process needs to find this package, in whatever folder it runs."""
    variables = dict(os.environ)
    paths = [str(Path(nearwise.__file__).parents[1]), *variables.get("PYTHONPATH", "").split(os.pathsep)]
    variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(path) for path in paths if path)
    variables["PYTHONDONTWRITEBYTECODE"] = "1"
    return variables
