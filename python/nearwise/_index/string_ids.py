"""Names of vectors."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import operation
from nearwise._error import ArgumentError
from nearwise._savable import Savable
from nearwise._vector_file import Path


class StringIds(Savable):
    """Names of vectors, and their ids: 0, 1, 2, ... in the order in which names first appear.

    Indexes know integers only. This maps names to them and back; masks of a filter are as long as there are names.

    Parameters
    ----------
    names : iterable of str
        As in `add`.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> names = nearwise.StringIds(["apple", "pear", "plum"])
    >>> base = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    >>> index = nearwise.IvfFlat.train(base, lists=1)
    >>> index.add(base, names.ids(["apple", "pear", "plum"]))
    3
    >>> names.names(index.search(base[:2], k=2).ids)
    [['apple', 'pear'], ['pear', 'apple']]
    >>> names.names(index.search(base[:1], k=3, exclude=names.ids(["apple"])).ids)
    [['pear', 'plum', None]]
    >>> names.add(["pear", "quince"])
    array([1, 3])
    >>> "quince" in names, len(names)
    (True, 4)
    """

    @operation
    def __init__(self, names: Iterable[str] | None = ()) -> None:
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        self._adding = threading.Lock()
        self.add(() if names is None else names)

    @operation
    def add(self, names: Iterable[str]) -> npt.NDArray[np.int64]:
        """The ids of these names; new ones get the next numbers. If one is no name, nothing is added.

        Parameters
        ----------
        names : iterable of str
            A list, an array or a column of a table, say. A name that is repeated has one id.
        """
        given = _texts(names)
        with self._adding:
            new = dict.fromkeys(name for name in given if name not in self._ids)
            for name in new:
                if not name.isascii():
                    _check_characters(name)
            first = len(self._names)
            self._names.extend(new)
            self._ids.update(zip(new, itertools.count(first)))
        return np.fromiter((self._ids[name] for name in given), np.int64, len(given))

    @operation
    def ids(self, names: Iterable[str]) -> npt.NDArray[np.int64]:
        """The ids of these names, int64 [names]. A name that has none is an error."""
        given = _texts(names)
        unknown = next((name for name in given if name not in self._ids), None)
        if unknown is not None:
            raise ArgumentError(f"names: {unknown!r} has no id")
        return np.fromiter((self._ids[name] for name in given), np.int64, len(given))

    @operation
    def names(self, ids: Any) -> list[Any]:
        """The names of these ids, None for -1.

        Parameters
        ----------
        ids : array of integers
            [queries, k], as a search returns them, or [n]; the result is a list of lists, or a list.
        """
        array = np.asarray(ids)
        if array.size and array.dtype.kind not in "iu":
            raise ArgumentError(f"ids: expected integers, got dtype {array.dtype}")
        if array.ndim not in (1, 2):
            raise ArgumentError(f"ids: expected a 1-D or 2-D array, got shape {array.shape}")
        if array.size and (array.min() < -1 or array.max() >= len(self)):
            wrong = array.min() if array.min() < -1 else array.max()
            raise ArgumentError(f"ids: expected -1 to {len(self) - 1}, got {wrong}")
        if array.ndim == 1:
            return self._names_of(array)
        return [self._names_of(row) for row in array]

    def _names_of(self, ids: npt.NDArray[Any]) -> list[str | None]:
        return [None if id == -1 else self._names[id] for id in ids.tolist()]

    @operation
    def save(self, path: Path) -> None:
        """Saves the names in a .nw file, atomically; `nearwise.load` opens it."""
        encoded = [name.encode() for name in self._names]
        offsets = np.zeros(len(encoded) + 1, np.uint64)
        offsets[1:] = np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)))
        _core.save_names(path=os.fspath(path), offsets=offsets, text=b"".join(encoded))

    @classmethod
    def _load(cls, path: str) -> StringIds:
        offsets, text = _core.load_names(path=path)
        return cls(text[first:last].decode() for first, last in itertools.pairwise(offsets.tolist()))

    def __reduce__(self) -> Any:
        return StringIds, (self._names,)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<nearwise.StringIds: {len(self)} names>"


def _texts(names: Any) -> list[str]:
    if isinstance(names, (str, bytes)):
        raise TypeError(f"names: expected several names, as in [{names!r}], got {names!r}")
    if isinstance(names, np.ndarray) and (names.ndim != 1 or names.dtype.kind not in "OTU"):
        raise TypeError(f"names: expected a 1-D array of strings, got {names.ndim}-D of dtype {names.dtype}")
    if not isinstance(names, Iterable):
        raise TypeError(f"names: expected strings, got {type(names).__name__}")
    given = list(names)
    for i, name in enumerate(given):
        if not isinstance(name, str):
            raise TypeError(f"names: expected strings, got {name!r} ({type(name).__name__}) at {i}")
        if type(name) is not str:
            given[i] = str(name)  # those of numpy
    return given


def _check_characters(name: str) -> None:
    """No file holds half of a surrogate pair, as `os.listdir` makes it of names that are not UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ArgumentError(f"names: expected text that UTF-8 encodes, got {name!r}") from None
