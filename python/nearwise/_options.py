"""Checks of arguments whose Python types C++ does not see."""

from __future__ import annotations

import difflib
import fractions
import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nearwise._error import ArgumentError
from nearwise._rows import copied

_LARGEST_SIZE = 2**63 - 1
_LARGEST_SEED = 2**64 - 1

_METRICS = ("sqeuclidean", "euclidean", "inner_product", "cosine")

# Names of metrics in Faiss, hnswlib and usearch, in small letters, and ours. Their l2 is squared too.
METRIC_ALIASES = {
    "l2": "sqeuclidean",
    "l2sq": "sqeuclidean",
    "ip": "inner_product",
    "dot": "inner_product",
    "cos": "cosine",
}

_UNITS = {"": 1, "b": 1}
# As on the command line (cli/shared/text.cpp).
for _power, _prefix in enumerate("kmgtpe", start=1):
    _UNITS |= dict.fromkeys((_prefix, f"{_prefix}b"), 1000**_power)
    _UNITS |= dict.fromkeys((f"{_prefix}i", f"{_prefix}ib"), 1024**_power)


def integer(value: Any, name: str, lowest: int, highest: int) -> int:
    """An int or numpy integer; neither bool nor float."""
    if type(value) is int and lowest <= value <= highest:
        return value  # the common case
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected an integer, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {value!r} ({type(value).__name__})") from None
    if number < lowest:
        raise ArgumentError(f"{name}: expected at least {lowest}, got {number}")
    if number > highest:
        raise ArgumentError(f"{name}: expected at most {highest}, got {number}")
    return number


def count(value: Any, name: str) -> int:
    """At least 1; C++ checks the upper bound."""
    return integer(value, name, 1, _LARGEST_SIZE)


def optional_count(value: Any, name: str) -> int:
    """As `count`; None becomes 0, which C++ takes for the default."""
    return 0 if value is None else count(value, name)


def whole(value: Any, name: str) -> int:
    """At least 0."""
    return integer(value, name, 0, _LARGEST_SIZE)


def threads(value: Any) -> int:
    if type(value) is int and value in (-1, 0):
        raise ArgumentError(f"threads: expected at least 1, got {value}; for all CPUs leave it out")
    return integer(value, "threads", 1, 2**31 - 1)


def seed(value: Any) -> int:
    return integer(value, "seed", 0, _LARGEST_SEED)


def word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {value!r} ({type(value).__name__})")
    return value


def metric(value: Any, name: str = "metric") -> str:
    """Our name of a metric, also of those of `METRIC_ALIASES`."""
    if isinstance(value, int):
        raise TypeError(f"{name}: expected a string, got {value!r} ({type(value).__name__}), such as {_METRICS[0]!r}")
    given = word(value, name)
    own = METRIC_ALIASES.get(given, given)
    if own in _METRICS:
        return own
    if own == "angular":
        raise ArgumentError(
            f"{name}: 'angular' is a different distance in every library; 'cosine' is 1 - cos and has the same order"
        )
    names = [*_METRICS, *METRIC_ALIASES]
    lower = given.lower()
    near = difflib.get_close_matches(lower, names, n=1, cutoff=0.6) or [each for each in names if each in lower]
    meant = f"; did you mean {METRIC_ALIASES.get(near[0], near[0])!r}?" if near else ""
    raise ArgumentError(f"{name}: expected one of {', '.join(_METRICS)}, got {given!r}{meant}")


def texts(value: Any, name: str) -> dict[str, str]:
    """A dictionary of strings; None: empty."""
    given = {} if value is None else dict(value)
    for key, text in given.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"{name}: expected strings, got {key!r}: {text!r}")
    return given


def ids(values: Any) -> npt.NDArray[np.int64]:
    """The caller's ids, int64 [ids]."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)  # an empty list becomes floats in numpy
    if array.dtype.kind not in "iu":
        hint = "; nearwise.StringIds makes ids of texts" if array.dtype.kind in "USO" else ""
        raise ArgumentError(f"ids: expected integers, got dtype {array.dtype}{hint}")
    if array.ndim != 1:
        one = "; for one id pass [id]" if array.ndim == 0 else ""
        raise ArgumentError(f"ids: expected a 1-D array, got shape {array.shape}{one}")
    if array.dtype == np.uint64 and array.max() > np.uint64(_LARGEST_SIZE):
        raise ArgumentError(f"ids: expected at most {_LARGEST_SIZE}, got {array.max()}")
    # A copy: the caller's array may change after this check.
    return copied(array, np.int64)


def id_matrix(values: Any, name: str) -> npt.NDArray[np.int64]:
    """Ids, int64 [rows, n]; -1: none."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 2:
        raise ArgumentError(f"{name}: expected a 2-D array of integers, got {array.ndim}-D of dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.uint64(_LARGEST_SIZE):
        raise ArgumentError(f"{name}: expected at most {_LARGEST_SIZE}, got {array.max()}")
    return copied(array, np.int64)


def choice(value: Any, name: str, choices: Sequence[str]) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{name}: expected one of {', '.join(choices)}, got {_shown(value)}")
    if value not in choices:
        raise ArgumentError(f"{name}: expected one of {', '.join(choices)}, got {value!r}")
    return value


def _shown(value: Any) -> str:
    """A value in a message: arrays by their shape."""
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"an array of shape {tuple(shape)} ({type(value).__name__})"


def flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: expected True or False, got {value!r}")
    return bool(value)


def number(value: Any, name: str) -> float:
    """A real number; not NaN."""
    if isinstance(value, (bool, np.bool_, str, bytes)) or np.ndim(value) != 0 or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: expected a number, got {value!r} ({type(value).__name__})")
    given = float(value)
    if math.isnan(given):
        raise ArgumentError(f"{name}: expected a number, got NaN")
    return given


def seconds(value: Any, name: str) -> float:
    """A number above 0."""
    given = number(value, name)
    if not given > 0:
        raise ArgumentError(f"{name}: expected seconds above 0, got {given:g}")
    return given


def target_recall(value: Any, name: str = "target_recall") -> float:
    given = number(value, name)
    if not 0 < given <= 1:
        hint = f"; {given:g} % is {given / 100:g}" if 1 < given <= 100 else ""
        raise ArgumentError(f"{name}: expected above 0 and at most 1, got {given}{hint}")
    return given


def rounded(value: Any, name: str) -> float:
    """A number rounded to float32, as distances are; numbers beyond its range become infinite.

    >>> rounded(0.1, "radius") == float(np.float32(0.1)), rounded(3, "radius"), rounded(1e300, "radius")
    (True, 3.0, inf)
    """
    given = number(value, name)
    with np.errstate(over="ignore"):
        return float(np.float32(given))


def byte_count(value: Any, name: str) -> int:
    """Bytes as an integer or as text with a unit: B, kB, MB, ... (or k, M, ...) and KiB, MiB, ... in any case.

    >>> byte_count("2GiB", "memory_limit"), byte_count("1.5 MB", "memory_limit"), byte_count(4096, "memory_limit")
    (2147483648, 1500000, 4096)
    """
    if isinstance(value, float):
        raise TypeError(f"{name}: expected an integer, got {value!r} (float); text such as '500MB' is accepted, too")
    if not isinstance(value, str):
        return count(value, name)
    match = re.fullmatch(r" *(\d+\.?\d*|\.\d+) *([a-zA-Z]*) *", value, re.ASCII)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ArgumentError(f"{name}: expected bytes such as 2147483648, '2GiB' or '500MB', got {value!r}")
    return count(int(fractions.Fraction(match[1]) * unit), name)


def _sample(value: Any, name: str) -> int:
    """"all" becomes 0, as in C++."""
    return 0 if isinstance(value, str) and value == "all" else count(value, name)


def _balance(value: Any, name: str) -> float:
    """None becomes 0, which C++ takes for no bound."""
    if value is None:
        return 0
    given = number(value, name)
    if not given >= 1:
        raise ArgumentError(f"{name}: expected at least 1, got {given:g}")
    return given


# The checks of arguments by their names, which mean the same in every operation.
CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "balance": _balance,
    "bits": lambda value, name: integer(value, name, 4, 8),
    "sample": _sample,
    "target_recall": target_recall,
    "tolerance": number,
    **dict.fromkeys(("radius", "distance"), rounded),
    **dict.fromkeys(("clusters", "codebooks", "degree", "dims", "iterations"), count),
    **dict.fromkeys(("k", "min_cluster_size", "passes"), count),
    **dict.fromkeys(("batch_size", "parts", "training_rows"), optional_count),
    **dict.fromkeys(("first_row", "perturbed", "rounds"), whole),
    **dict.fromkeys(("exclude_self", "hierarchical", "largest", "mutual", "pad"), flag),
    "metric": metric,
    **dict.fromkeys(("method", "seeding"), word),
}
