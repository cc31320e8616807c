"""What a benchmark measures with: base, queries and their neighbors by exact search, in files for its processes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from nearwise._context import Context
from nearwise._error import ArgumentError
from nearwise._index.exact import knn
from nearwise._neighbors import Metric
from nearwise._rows import Rows, as_array, as_rows, portable
from nearwise._vector_file import read_vectors, write_vectors

# Held-out queries are at most this share of the vectors.
_MOST_HELD_OUT = 0.2
# Vectors as near as the k-th nearest count as found; more of them than this are not looked for.
_MOST_TIES = 100

_NO_ID = -2  # of no vector, and not the -1 that searches return


@dataclasses.dataclass(frozen=True)
class Task:
    """The numbers of a benchmark. Its arrays are in `folder`, so that every process reads the same."""

    folder: str
    k: int
    metric: Metric
    threads: int
    memory_limit: int  # bytes of an index and a call; 0: no limit
    seed: int
    isa: str | None
    targets: tuple[float, ...]
    rows: int
    of_rows: int
    dim: int
    type: str
    queries: int
    held_out: bool

    def text(self) -> str:
        """For the command line of a process."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def of(cls, text: str) -> Self:
        fields = json.loads(text)
        return cls(**(fields | {"targets": tuple(fields["targets"])}))

    def path(self, name: str) -> str:
        return str(Path(self.folder) / name)

    def vectors(self, name: str) -> Rows:
        """`base` or `queries`, in memory."""
        mapped = as_rows(read_vectors(self.path(f"{name}.npy")), name)
        return mapped._replace(array=np.array(mapped.array))

    def truth(self) -> npt.NDArray[np.int64]:
        """The ids that count as found, [queries, n]."""
        return np.asarray(np.load(self.path("truth.npy")))

    def context(self, threads: int | None = None) -> Context:
        return Context(
            threads=threads or self.threads, memory_limit=self.memory_limit or None, seed=self.seed, isa=self.isa
        )


def _matrix(values: Any, name: str) -> npt.NDArray[Any]:
    array = as_array(values, name)
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"{name}: expected an array in host memory, got one on {array.device}")
    if array.ndim != 2 or 0 in array.shape:
        raise ArgumentError(f"{name}: expected a 2-D array [rows, dim] of at least one vector, got shape {array.shape}")
    return array


def _sample(random: np.random.Generator, count: int, size: int) -> npt.NDArray[np.int64]:
    """Row numbers in random order. Without an array of all of them: files may have billions."""
    return random.choice(count, min(size, count), replace=False)


def _taken(array: npt.NDArray[Any], numbers: npt.NDArray[np.int64], name: str) -> Rows:
    """These vectors in ascending order of their numbers, as memory-mapped files are read."""
    chosen = array if len(numbers) == len(array) else array[np.sort(numbers)]
    return as_rows(chosen, name)


def accepted(
    ids: npt.NDArray[np.int64], distances: npt.NDArray[np.float32], k: int, metric: str
) -> npt.NDArray[np.int64]:
    """The ids of exact search that are as near as the k-th nearest; others become an id of no vector.

    >>> accepted(np.array([[7, 3, 5]]), np.array([[0, 1, 1]], np.float32), 2, "sqeuclidean")
    array([[7, 3, 5]])
    >>> accepted(np.array([[7, 3, 5]]), np.array([[3, 2, 1]], np.float32), 2, "inner_product")
    array([[ 7,  3, -2]])
    """
    last = distances[:, k - 1 : k]
    near = distances >= last if metric == "inner_product" else distances <= last
    return np.where(near, ids, _NO_ID)


def recall(found: npt.NDArray[Any], truth: npt.NDArray[np.int64], k: int) -> float:
    """The mean share of k neighbors that were found: different ids that count as found.

    >>> recall(np.array([[3, 5], [9, 9]]), np.array([[7, 3, 5], [9, 8, -2]]), 2)
    0.75
    """
    total = 0
    for first in range(0, len(truth), 64):  # in pieces: the comparison has queries x n x k elements
        part = truth[first : first + 64]
        hits = (part[:, :, None] == np.asarray(found[first : first + 64])[:, None, :]).any(axis=2).sum(axis=1)
        total += int(np.minimum(hits, k).sum())
    return total / (k * len(truth))


def prepare(
    folder: str,
    rows: Any,
    queries: Any,
    *,
    limit: int | None,
    query_count: int,
    k: int,
    metric: Metric,
    targets: tuple[float, ...],
    threads: int,
    context: Context,
) -> Task:
    """Samples vectors and queries, searches exactly, and writes what the processes need."""
    array = _matrix(rows, "rows")
    random = np.random.default_rng(context.seed or 0)
    if queries is None:
        held_out = min(query_count, max(1, int(_MOST_HELD_OUT * len(array))))
        numbers = _sample(random, len(array), len(array) if limit is None else limit + held_out)
        base, asked = _taken(array, numbers[held_out:], "rows"), _taken(array, numbers[:held_out], "queries")
    else:
        given = _matrix(queries, "queries")
        if given.shape[1] != array.shape[1]:
            raise ArgumentError(f"queries: expected dimension {array.shape[1]}, as rows, got {given.shape[1]}")
        base = _taken(array, _sample(random, len(array), len(array) if limit is None else limit), "rows")
        asked = _taken(given, _sample(random, len(given), query_count), "queries")
    base_array, query_array = portable(_host(base), base.type), portable(_host(asked), asked.type)
    if len(base_array) < k:
        raise ArgumentError(f"k: expected at most {len(base_array)}, the vectors that are searched, got {k}")
    without_progress = dataclasses.replace(context, progress=None)
    found = knn(query_array, base_array, min(len(base_array), k + _MOST_TIES), metric=metric, context=without_progress)
    task = Task(
        folder=folder,
        k=k,
        metric=metric,
        threads=threads,
        memory_limit=context.memory_bytes,
        seed=context.seed or 0,
        isa=context.isa,
        targets=targets,
        rows=len(base_array),
        of_rows=len(array),
        dim=array.shape[1],
        type=base.type,
        queries=len(query_array),
        held_out=queries is None,
    )
    write_vectors(task.path("base.npy"), base_array)
    write_vectors(task.path("queries.npy"), query_array)
    np.save(task.path("truth.npy"), accepted(found.ids, found.distances, k, metric))
    return task


def _host(rows: Rows) -> npt.NDArray[Any]:
    assert isinstance(rows.array, np.ndarray)  # _matrix refuses others
    return rows.array


def as_floats(rows: Rows) -> npt.NDArray[np.float32]:
    """Vectors as other libraries take them."""
    array = _host(rows)
    if rows.type == "bf16":
        return np.ascontiguousarray((array.astype(np.uint32) << 16).view(np.float32))
    return np.ascontiguousarray(array, np.float32)


def unit(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Vectors scaled to length 1: their distances have the order of cosine."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30), np.float32)
