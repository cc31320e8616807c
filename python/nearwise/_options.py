"""Arguments that C++ options take, checked and worded here where Python types still show."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np

_LARGEST_INT = 2**31 - 1
_LARGEST_SIZE = 2**63 - 1
_LARGEST_SEED = 2**64 - 1

_UNITS = {"": 1, "b": 1}
_UNITS |= {prefix + "b": 1000**power for power, prefix in enumerate("kmgt", start=1)}
_UNITS |= {prefix + "ib": 1024**power for power, prefix in enumerate("kmgt", start=1)}


def integer(value: Any, name: str, lowest: int, highest: int) -> int:
    """An int, or what stands for one (numpy integers); neither bool nor float."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected an integer, given {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, given {value!r} ({type(value).__name__})") from None
    if number < lowest:
        raise ValueError(f"{name}: expected at least {lowest}, given {number}")
    if number > highest:
        raise ValueError(f"{name}: expected at most {highest}, given {number}")
    return number


def count(value: Any, name: str) -> int:
    """At least 1; whether there are that many is C++'s to say."""
    return integer(value, name, 1, _LARGEST_SIZE)


def count_or_none(value: Any, name: str) -> int:
    """At least 0, which stands for none asked for."""
    return integer(value, name, 0, _LARGEST_SIZE)


def neighbor_count(value: Any) -> int:
    return count(value, "k")


def thread_count(value: Any) -> int:
    return integer(value, "threads", 0, _LARGEST_INT)


def seed(value: Any) -> int:
    return integer(value, "seed", 0, _LARGEST_SEED)


def word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, given {value!r} ({type(value).__name__})")
    return value


def texts(value: Any, name: str) -> dict[str, str]:
    """A dictionary of strings."""
    given = dict(value)
    for key, text in given.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"{name}: expected strings, given {key!r}: {text!r}")
    return given


def ids(values: Any) -> np.ndarray:
    """Ids of the caller's, as int64 [ids]."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)  # numpy takes an empty list for floats
    if array.dtype.kind not in "iu":
        raise ValueError(f"ids: expected integers, given dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"ids: expected a 1-D array, given shape {array.shape}")
    if array.dtype == np.uint64 and array.max() > np.uint64(_LARGEST_SIZE):
        raise ValueError(f"ids: expected at most {_LARGEST_SIZE}, given {array.max()}")
    return np.array(array, dtype=np.int64, order="C")  # a copy: they are checked once, and must stay so


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, given {value!r}")
    return bool(value)


def number(value: Any, name: str) -> float:
    """A float, or what stands for one; not NaN."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) != 0 or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: expected a number, given {value!r} ({type(value).__name__})")
    given = float(value)
    if given != given:
        raise ValueError(f"{name}: expected a number, given NaN")
    return given


def radius(value: Any) -> float:
    """A number rounded to float32, as distances are; what is beyond its range becomes infinite.

    >>> radius(0.1) == float(np.float32(0.1)), radius(3), radius(1e300)
    (True, 3.0, inf)
    """
    given = number(value, "radius")
    with np.errstate(over="ignore"):
        return float(np.float32(given))


def byte_count(value: Any, name: str) -> int:
    """Bytes as an integer or as text with a unit.

    >>> byte_count("2GiB", "memory_limit"), byte_count("1.5 MB", "memory_limit"), byte_count(0, "memory_limit")
    (2147483648, 1500000, 0)
    """
    if not isinstance(value, str):
        return integer(value, name, 0, _LARGEST_SIZE)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value, re.ASCII)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"{name}: expected bytes such as 2147483648, '2GiB' or '500MB', given {value!r}")
    return integer(int(float(match[1]) * unit), name, 0, _LARGEST_SIZE)
