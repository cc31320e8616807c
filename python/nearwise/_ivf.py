"""Inverted files."""

from __future__ import annotations

import os
from typing import Any, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors, adopt
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import Rows, as_rows, device_for, rest_of_limit
from nearwise._vector_file import Path

_Index = TypeVar("_Index", bound="Ivf")
_LARGEST = 2**63 - 1


class Ivf:
    """Rows in lists around the centroids of a k-means, of which a search looks at the nearest few.

    `IvfFlat` keeps the rows as they are, `IvfPq` a code of 8 to 64 bytes of each. `IvfFlat.train`, `IvfPq.train` and
    `load_ivf` make one; rows come in by `add`, as often as you like.

    The answer of a search is defined: the lists are those whose centroids `nearwise.knn` finds, and the answers are the
    best rows in them, by the distance from what is kept of each row. It is the same, bit for bit, on every instruction set,
    with any number of threads, whatever else is searched for in the same call.

    Threads may search at once. What changes the index waits for them, and they for it.
    """

    _index: _core.Ivf
    _limit: int

    def __init__(self) -> None:
        raise TypeError("an index is made by IvfFlat.train, IvfPq.train or load_ivf")

    def add(self, rows: Any, ids: Any = None, *, progress: ProgressArgument = None) -> None:
        """Adds rows, each to the list of its nearest centroid.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `nearwise.knn`, in host memory. An `IvfFlat` takes the element type it was trained with.
        ids : array [rows] of integers, optional
            What searches return for these rows: 0 or larger, and not necessarily different. By default numbers that go
            on from the largest id so far.
        progress
            As in `nearwise.knn`; what is counted differs from one stage to the next.

        If anything is wrong, nothing has been added.
        """
        given = as_rows(rows, "rows", self._limit)
        numbers = None if ids is None else _as_ids(ids)
        with reporting(progress, "add") as report:
            self._index.add(given.array, given.type, numbers, given.copied_bytes, report)

    def remove(self, ids: Any) -> int:
        """Removes every row with one of these ids, and returns how many there were."""
        return self._index.remove(_as_ids(ids))

    def merge(self, other: Ivf) -> None:
        """Adds the rows of another index, under their ids. Both must come from one training (see `empty_copy`)."""
        if not isinstance(other, Ivf):
            raise TypeError(f"other: expected an index, given {type(other).__name__}")
        self._index.merge(other._index)

    def empty_copy(self: _Index) -> _Index:
        """An index of the same training without rows, within the same memory_limit."""
        return _adopt(type(self), self._index.empty_copy(), self._limit)

    def search(
        self,
        queries: Any,
        k: int,
        *,
        probes: int = 0,
        rows: Any = None,
        candidates: int = 0,
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best rows in the lists nearest to each query.

        Parameters
        ----------
        queries : array [queries, dim]
            As in `nearwise.knn`, in host memory.
        k : int
            At least 1. Where the lists hold fewer rows, the answer ends in id -1 at distance +inf (-inf for
            inner_product).
        probes : int
            Lists to look at: more cost time and find more. 0: the index's own number, `probes`.
        rows : array [rows, dim], optional
            The vectors themselves, by id: row i is the one with id i. An array, or a mapped file (`read_vectors`). The
            best `candidates` are looked at again in it, and the best k of these reported with their true distance.
        candidates : int
            At least k; 0: 10 k, at least 100.
        progress
            As in `nearwise.knn`; what is counted differs from one stage to the next.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], and distances, float32 [queries, k].
        """
        given = as_rows(queries, "queries", self._limit)
        again = Rows(None, "f32", 0) if rows is None else as_rows(rows, "rows", self._limit)
        with reporting(progress, "search") as report:
            found = self._index.search(
                given.array,
                given.type,
                _options.neighbor_count(k),
                _amount(probes, "probes"),
                again.array,
                again.type,
                _amount(candidates, "candidates"),
                given.copied_bytes + again.copied_bytes,
                report,
            )
        return adopt(found)

    def save(self, path: Path) -> None:
        """Saves it in a .nw file, checksummed. Whatever happens, the old file or the new one is there, whole."""
        self._index.save(os.fspath(path))

    def list_size(self, list: int) -> int:
        """The number of rows in one list."""
        return self._index.list_size(_amount(list, "list"))

    @property
    def size(self) -> int:
        """The number of rows."""
        return self._index.size

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._index.dim

    @property
    def lists(self) -> int:
        """The number of lists."""
        return self._index.lists

    @property
    def code_bytes(self) -> int:
        """Bytes that are kept of each row, beside 8 for its id."""
        return self._index.code_bytes

    @property
    def metric(self) -> str:
        """The metric of all searches."""
        return self._index.metric

    @property
    def centroids(self) -> npt.NDArray[np.float32]:
        """The centres of the lists, [lists, dim], read-only."""
        return self._index.centroids

    @property
    def probes(self) -> int:
        """Lists that a search looks at if it does not say; may be set, and is saved."""
        return self._index.probes

    @probes.setter
    def probes(self, probes: int) -> None:
        self._index.probes = _amount(probes, "probes")

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return (
            f"<nearwise.{type(self).__name__}: {self.size} rows of {self.dim} elements in {self.lists} lists, "
            f"{self.code_bytes} bytes each, {self.metric}>"
        )


class IvfFlat(Ivf):
    """An inverted file of the rows as they are: the distances it reports are the true ones.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16), dtype=np.float32)
    >>> index = nearwise.IvfFlat.train(rows, lists=20)
    >>> index.add(rows)
    >>> index
    <nearwise.IvfFlat: 1000 rows of 16 elements in 20 lists, 64 bytes each, sqeuclidean>
    >>> ids, distances = index.search(rows[:3], k=2, probes=4)
    >>> ids[:, 0]
    array([0, 1, 2])
    >>> index.remove([0, 1])
    2
    >>> len(index)
    998
    """

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        metric: Metric = "sqeuclidean",
        lists: int = 0,
        iterations: int = 10,
        rows_per_list: int = 256,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> IvfFlat:
        """Finds the lists. The index that comes back has no rows yet.

        Parameters
        ----------
        rows : array [rows, dim]
            The rows to come, or a sample of them, as in `nearwise.knn`, in host memory.
        metric
            As in `nearwise.knn`, for all searches.
        lists : int
            0: about 4 sqrt(rows), with at least 39 rows in each. Say it if the rows are only a sample.
        iterations : int
            Of k-means, at most.
        rows_per_list : int
            To train on; of more rows so many are drawn by the seed. 0: all.
        seed : int
            Of the random numbers: the same seed gives the same lists.
        device, threads, isa
            As in `nearwise.knn`, for all that is done with this index.
        memory_limit : int or str
            Bytes for the index and any one call together, with its results and converted copies; 0: no limit. Searches
            at once count one by one.
        progress
            As in `nearwise.knn`; what is counted differs from one stage to the next.
        """
        return _train(
            cls,
            _core.train_ivf_flat,
            rows,
            {
                "metric": _options.word(metric, "metric"),
                "lists": _amount(lists, "lists"),
                "iterations": _amount(iterations, "iterations"),
                "rows_per_list": _amount(rows_per_list, "rows_per_list"),
            },
            {"seed": seed, "device": device, "threads": threads, "memory_limit": memory_limit, "isa": isa},
            progress,
        )


class IvfPq(Ivf):
    """An inverted file that keeps of every row a product code of what its centroid leaves over: 8 to 64 bytes.

    Distances are those from what the codes stand for, unless a search is given the `rows` for a second look.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((2000, 32), dtype=np.float32)
    >>> index = nearwise.IvfPq.train(rows, lists=20, code_bytes=16)
    >>> index.add(rows)
    >>> index.code_bytes
    16
    >>> bool(index.search(rows[:3], k=1, rows=rows).distances.max() == 0)  # each row finds itself
    True
    """

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        metric: Metric = "sqeuclidean",
        lists: int = 0,
        iterations: int = 10,
        rows_per_list: int = 256,
        code_bytes: int = 0,
        bits: int = 8,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> IvfPq:
        """Finds lists and codewords. The index that comes back has no rows yet.

        Parameters
        ----------
        rows : array [rows, dim]
            The rows to come, or a sample of them, as in `nearwise.knn`, in host memory; at least 2 ** bits.
        code_bytes : int
            To keep of each row, at most one per element; 0: one for every 8 elements, 8 to 64.
        bits : int
            Of the code of one part of a row, 8 or 4: with 4 there are twice as many parts.
        metric, lists, iterations, rows_per_list, seed, device, threads, memory_limit, isa, progress
            As in `IvfFlat.train`.
        """
        return _train(
            cls,
            _core.train_ivf_pq,
            rows,
            {
                "metric": _options.word(metric, "metric"),
                "lists": _amount(lists, "lists"),
                "iterations": _amount(iterations, "iterations"),
                "rows_per_list": _amount(rows_per_list, "rows_per_list"),
                "code_bytes": _amount(code_bytes, "code_bytes"),
                "bits": _options.integer(bits, "bits", 0, 2**31 - 1),
            },
            {"seed": seed, "device": device, "threads": threads, "memory_limit": memory_limit, "isa": isa},
            progress,
        )


def load_ivf(
    path: Path,
    *,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
) -> Union[IvfFlat, IvfPq]:
    """The index that `Ivf.save` or `nearwise build` wrote, mapped: rows are read as searches need them.

    Every checksum is verified: damage is an `Error` with code corrupt. Lists are copied into memory where they change.
    Replace the file by renaming, never write to it, while the index is in use. The other arguments are those of
    `IvfFlat.train`.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> rows = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    >>> index = nearwise.IvfFlat.train(rows, lists=5)
    >>> index.add(rows)
    >>> path = os.path.join(tempfile.mkdtemp(), "index.nw")
    >>> index.save(path)
    >>> nearwise.load_ivf(path)
    <nearwise.IvfFlat: 500 rows of 8 elements in 5 lists, 32 bytes each, sqeuclidean>
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    loaded = _core.load_ivf(
        os.fspath(path), device_for(device), _options.thread_count(threads), limit, _options.word(isa, "isa")
    )
    return _adopt(IvfPq if loaded.has_codes else IvfFlat, loaded, limit)


def _train(kind: Any, train: Any, rows: Any, options: dict[str, Any], machine: dict[str, Any], progress: Any) -> Any:
    limit = _options.byte_count(machine["memory_limit"], "memory_limit")
    given = as_rows(rows, "rows", limit)
    # What a converted copy has taken stays taken: the index counts on the budget that it was trained with.
    rest = rest_of_limit(limit, "train", given)
    with reporting(progress, "train") as report:
        trained = train(
            given.array,
            given.type,
            **options,
            seed=_options.seed(machine["seed"]),
            device=device_for(machine["device"], given.array),
            threads=_options.thread_count(machine["threads"]),
            memory_limit=rest,
            isa=_options.word(machine["isa"], "isa"),
            progress=report,
        )
    return _adopt(kind, trained, rest)


def _adopt(kind: type[_Index], index: _core.Ivf, limit: int) -> _Index:
    adopted = object.__new__(kind)
    adopted._index = index
    adopted._limit = limit
    return adopted


def _amount(value: Any, name: str) -> int:
    """0 stands for a usual one; what is too much is C++'s to say."""
    return _options.integer(value, name, 0, _LARGEST)


def _as_ids(values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)  # numpy takes an empty list for floats
    if array.dtype.kind not in "iu":
        raise ValueError(f"ids: expected integers, given dtype {array.dtype}")
    if array.ndim != 1:
        raise ValueError(f"ids: expected a 1-D array, given shape {array.shape}")
    if array.dtype == np.uint64 and array.max() > np.uint64(_LARGEST):
        raise ValueError(f"ids: expected at most {_LARGEST}, given {array.max()}")
    return np.array(array, dtype=np.int64, order="C")  # a copy: they are checked once, and must stay so


# Users see them as nearwise.Ivf and so on.
for _class in (Ivf, IvfFlat, IvfPq):
    _class.__module__ = "nearwise"
