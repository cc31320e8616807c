"""Checks of timeouts."""

from __future__ import annotations

from typing import Any

from nearwise import _options


def seconds(value: Any, name: str) -> float:
    """A number above 0.

    >>> seconds(3, "timeout")
    3.0
    """
    given = _options.number(value, name)
    if not given > 0:
        raise ValueError(f"{name}: expected seconds above 0, given {given:g}")
    return given
