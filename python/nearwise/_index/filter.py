"""The ids that a search may return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import operation
from nearwise._rows import contiguous


class Filter:
    """The ids that a search may return: built once, for any number of searches, indexes and threads.

    Searches take what a filter can be made of as well; a `Filter` saves the conversion, and remembers which vectors of
    an index it allows.

    Parameters
    ----------
    allowed : array of bool, of ints, or sequence of int sequences
        A boolean mask: `allowed[i]` is whether id i is allowed, and ids beyond its length are denied. Or ids. Or one
        sequence of ids for each query: the search must have as many queries.
    exclude : array of bool, of ints, or sequence of int sequences, optional
        Ids that are denied, of all queries or of each query; also without `allowed`, which then allows all others. A
        1-D boolean mask denies the ids where it is True, and none beyond its length. A 2-D array of ints has a row for
        each query, -1 where there is nothing. Without both, every id is allowed.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> base = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    >>> even = nearwise.Filter(np.array([True, False, True, False]))
    >>> nearwise.knn(base, base, k=1, filter=even).ids.ravel()
    array([0, 0, 2, 2])
    >>> nearwise.knn(base, base, k=1, filter=[0, 3], exclude=[[0], [], [], [3]]).ids.ravel()
    array([3, 0, 3, 0])
    >>> even.allows(2), even.allows(3), even.allows(100)
    (True, False, False)
    >>> nearwise.Filter(exclude=[1]) & even
    <nearwise.Filter>
    """

    @operation
    def __init__(self, allowed: Any = None, *, exclude: Any = None) -> None:
        self._filter = _core.Filter() if allowed is None else _allowing(allowed)
        if exclude is not None:
            self._filter = self._filter.both(other=_denying(exclude))
        self._arguments: tuple[Any, Any] | None = (_copied(allowed), _copied(exclude))  # to pickle it

    @operation
    def allows(self, id: int, query: int | None = 0) -> bool:
        """Whether the search of this query may return this id."""
        number = _options.whole(query, "query")
        if number >= (self.queries or number + 1):
            raise IndexError(f"query: expected below {self.queries}, got {number}")
        return self._filter.allows(id=_options.whole(id, "id"), query=number)

    @property
    def queries(self) -> int | None:
        """The number of queries that a search must have; None: any."""
        return self._filter.queries

    def _part(self, first_id: int, first_query: int, last_query: int) -> Filter:
        """For ids that begin with `first_id`, and for queries [first_query, last_query)."""
        core = self._filter.from_id(first=_options.whole(first_id, "first_id"))
        if self.queries is not None:
            first = _options.integer(first_query, "first_query", 0, self.queries)
            last = _options.integer(last_query, "last_query", first, self.queries)
            core = core.from_query(first=first, count=last - first)
        part = object.__new__(Filter)
        part._filter = core
        part._arguments = None
        return part

    def __and__(self, other: Filter) -> Filter:
        if not isinstance(other, Filter):
            return NotImplemented
        both = object.__new__(Filter)
        both._filter = self._filter.both(other=other._filter)
        both._arguments = (self, other)
        return both

    def __reduce__(self) -> tuple[Any, ...]:
        if self._arguments is None:
            raise TypeError("a part of a filter cannot be pickled")
        left, right = self._arguments
        return (_and, (left, right)) if isinstance(left, Filter) else (_make, (left, right))

    def __repr__(self) -> str:
        return "<nearwise.Filter>" if self.queries is None else f"<nearwise.Filter of {self.queries} queries>"


def made_of(given: Any, exclude: Any) -> Filter | None:
    """Of the arguments `filter` and `exclude` of a search."""
    if given is None and exclude is None:
        return None
    if not isinstance(given, Filter):
        return Filter(given, exclude=exclude)
    return given if exclude is None else given & Filter(exclude=exclude)


def as_filter(given: Any, exclude: Any, queries: int | None = None) -> _core.Filter | None:
    """The same for C++. With a number of queries, few ids that are excluded become a list for each of them.

    An inverted file leaves those out of its scan, instead of listing all other vectors.
    """
    if queries is not None and exclude is not None and not _is_per_query(exclude):
        ids = exclude = _excluded(exclude)
        if 0 < ids.size <= _MOST_FEW and ids.size * queries <= _MOST_ENTRIES:
            offsets = np.arange(queries + 1, dtype=np.int64) * ids.size
            few = _core.Filter.deny_per_query(offsets=offsets, ids=np.tile(ids, queries))
            return few if given is None else few.both(other=_filter_of(given))
    made = made_of(given, exclude)
    return None if made is None else made._filter


def _filter_of(given: Any) -> _core.Filter:
    return (given if isinstance(given, Filter) else Filter(given))._filter


_MOST_FEW = 256
_MOST_ENTRIES = 2**20


class _Mask(NamedTuple):
    """A boolean mask, one bit per element."""

    bits: npt.NDArray[np.uint8]
    size: int


def _make(allowed: Any, exclude: Any) -> Filter:
    return Filter(_unpacked(allowed), exclude=_unpacked(exclude))


def _unpacked(values: Any) -> Any:
    return np.unpackbits(values.bits, count=values.size).view(bool) if isinstance(values, _Mask) else values


def _and(left: Filter, right: Filter) -> Filter:
    return left & right


def _copied(values: Any) -> Any:
    """For pickling: the caller's array may change."""
    if values is None:
        return None
    if _is_per_query(values) and not isinstance(values, np.ndarray):
        return [np.array(part) for part in values]
    array = np.asarray(values)
    return _Mask(np.packbits(array), array.size) if array.dtype == bool and array.ndim == 1 else array.copy()


def _allowing(values: Any) -> _core.Filter:
    if _is_per_query(values):
        offsets, ids = _lists(values, "filter")
        return _core.Filter.allow_per_query(offsets=offsets, ids=ids)
    if callable(values) or isinstance(values, (str, dict)):
        kind = "a function" if callable(values) else repr(values)
        raise ValueError(
            f"filter: expected a boolean mask or integer ids, got {kind}; "
            "comparing an array makes a mask: filter=prices < 20"
        )
    array = np.asarray(values)
    if array.dtype == bool:
        _require_mask(array, "filter")
        return _core.Filter.mask(mask=contiguous(array, np.bool_).view(np.uint8))
    return _core.Filter.allow(ids=_ids(array, "filter"))


def _denying(values: Any) -> _core.Filter:
    if _is_per_query(values):
        offsets, ids = _lists(values, "exclude")
        return _core.Filter.deny_per_query(offsets=offsets, ids=ids)
    return _core.Filter.deny(ids=_excluded(values))


def _excluded(values: Any) -> npt.NDArray[np.int64]:
    """The ids that are denied of all queries: of a mask those where it is True."""
    array = np.asarray(values)
    if array.dtype != bool:
        return _ids(array, "exclude")
    _require_mask(array, "exclude")
    return np.flatnonzero(array).astype(np.int64, copy=False)


def _require_mask(array: npt.NDArray[Any], name: str) -> None:
    if array.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D mask, got shape {array.shape}")


def _is_per_query(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.ndim == 2 and values.dtype != bool
    return isinstance(values, Sequence) and len(values) != 0 and all(np.ndim(part) == 1 for part in values)


def _ids(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.int64]:
    if array.dtype.kind not in "iu" and array.size != 0:
        raise ValueError(f"{name}: expected a boolean mask or integer ids, got dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array, or one sequence for each query, got shape {array.shape}")
    ids = contiguous(array, np.int64)
    if ids.size != 0 and (ids.min() < 0 or array.max() > np.iinfo(np.int64).max):
        raise ValueError(f"{name}: expected ids from 0 to 2^63 - 1, got {array.min()} to {array.max()}")
    return ids


def _lists(values: Any, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Offsets [queries + 1] and ids of one sequence for each query."""
    parts = []
    for part in values:
        array = np.asarray(part)
        if array.dtype.kind in "i" and isinstance(values, np.ndarray):
            array = array[array != -1]
        parts.append(_ids(array, name))
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([part.size for part in parts], out=offsets[1:])
    return offsets, np.concatenate([np.empty(0, np.int64), *parts])
