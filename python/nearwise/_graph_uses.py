"""What can be asked of a graph of nearest neighbours, and the forms in which other libraries take it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._neighbors import Neighbors, as_neighbors
from nearwise._range_search import RangeNeighbors
from nearwise._range_search import adopt as adopt_range
from nearwise._vector_file import Path


class SmoothestPath(NamedTuple):
    """A way through a graph.

    rows : int64 [steps + 1]
        From the one to the other, both included.
    distances : float32 [steps]
    widest : float or None
        The largest of the distances (inner_product: the smallest product); None where there is no step.
    """

    rows: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]
    widest: Optional[float]


class RowGroups(NamedTuple):
    """Groups of rows, numbered in the order of their first rows.

    labels : int64 [rows]
        The group of every row; -1: in no group.
    sizes : int64 [groups]
    """

    labels: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def members(self) -> list[npt.NDArray[np.int64]]:
        """The rows of every group, lowest first.

        >>> RowGroups(np.array([0, 1, -1, 0]), np.array([2, 1])).members()
        [array([0, 3]), array([1])]
        """
        order = np.argsort(self.labels, kind="stable")
        grouped = order[len(order) - int(self.sizes.sum()) :]  # those in no group come first
        return np.split(grouped, np.cumsum(self.sizes)[:-1]) if len(self.sizes) else []


class GraphUses:
    """The part of `KnnGraph` that asks and exports; a graph has `neighbors` and `metric`."""

    neighbors: Neighbors
    metric: str

    def _arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32], str]:
        pair = as_neighbors(self.neighbors)
        return pair.ids, pair.distances, self.metric

    def smoothest_path(self, start: int, end: int) -> Optional[SmoothestPath]:
        """Of all paths between two rows the one whose widest step is the least wide; None if nothing connects them.

        Exact on the graph, whose edges lead both ways. Of several such paths it is one with the fewest steps, and of
        those the one with the lowest ids, compared from its start.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [1], [2.5], [4]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=3, metric="euclidean").smoothest_path(0, 3)
        SmoothestPath(rows=array([0, 1, 2, 3]), distances=array([1. , 1.5, 1.5], dtype=float32), widest=1.5)
        """
        first = _options.integer(start, "start", -(2**63), 2**63 - 1)
        last = _options.integer(end, "end", -(2**63), 2**63 - 1)
        found = _core.smoothest_path(*self._arrays(), first, last)
        return None if found is None else SmoothestPath(found[0].view(np.int64), found[1], found[2])

    def connected_components(self) -> RowGroups:
        """Rows that a path of edges connects, whichever way they lead. Every row is in a group, perhaps alone.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [50], [1], [51]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=1).connected_components()
        RowGroups(labels=array([0, 1, 0, 1]), sizes=array([2, 2]))
        """
        return _adopt_groups(_core.connected_components(*self._arrays()))

    def near_duplicates(self, distance: float) -> RowGroups:
        """Rows that a chain of edges connects of which each is at most `distance` long (inner_product: at least).

        The distance is in the unit of the graph's metric. Rows without such an edge are in no group: their label is -1.
        Only pairs that the graph holds are looked at.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [7], [0], [9], [0.5]], dtype=np.float32)
        >>> graph = nearwise.build_knn_graph(rows, degree=2, metric="euclidean")
        >>> graph.near_duplicates(1.0).labels
        array([ 0, -1,  0, -1,  0])
        """
        return _adopt_groups(_core.near_duplicates(*self._arrays(), _rounded(distance)))

    def mutual_neighbors(self) -> RangeNeighbors:
        """Of every row's neighbours those that have it among theirs, best first.

        Returns
        -------
        RangeNeighbors
            offsets, ids and distances; `of(row)` gives those of one row.
        """
        return adopt_range(_core.mutual_neighbors(*self._arrays()))

    def with_self(self) -> Neighbors:
        """ids and distances [rows, degree + 1] with every row as its own first neighbour, at distance 0.

        As UMAP takes it: ``umap.UMAP(n_neighbors=degree + 1, precomputed_knn=graph.with_self())``. Not for
        inner_product, where a row need not be the best match of itself.
        """
        if self.metric == "inner_product":
            raise ValueError("with_self: a metric in which every row is its own nearest expected, given inner_product")
        ids, distances, _ = self._arrays()
        own = np.arange(len(ids), dtype=np.int64)[:, None]
        return Neighbors(
            np.hstack([own, ids]), np.hstack([np.zeros((len(ids), 1), dtype=np.float32), distances])
        )

    def to_csr(self, *, mutual: bool = False) -> Any:
        """A `scipy.sparse.csr_matrix` [rows, rows]: entry (i, j) is the distance from row i to its neighbour j.

        Distances of 0, of copies, are entries as well. Entries of a row are in the order of the graph, best first.

        Parameters
        ----------
        mutual : bool
            Only the edges of `mutual_neighbors`.
        """
        from scipy.sparse import csr_matrix

        ids, distances, _ = self._arrays()
        if _options.flag(mutual, "mutual"):
            offsets, columns, values = self.mutual_neighbors()
        else:
            real = ids >= 0
            offsets = np.concatenate([[0], np.cumsum(real.sum(axis=1))])
            columns, values = ids[real], distances[real]
        index = np.int32 if max(len(ids), len(columns)) < 2**31 else np.int64
        return csr_matrix((values, columns.astype(index), offsets.astype(index)), shape=(len(ids), len(ids)))

    def save_npz(self, path: Path, *, mutual: bool = False) -> None:
        """Saves `to_csr` in an .npz, atomically, that `scipy.sparse.load_npz` reads; works without SciPy."""
        _core.save_csr(os.fspath(path), *self._arrays(), _options.flag(mutual, "mutual"))


def _adopt_groups(groups: tuple[np.ndarray, np.ndarray]) -> RowGroups:
    return RowGroups(groups[0].view(np.int64), groups[1].view(np.int64))


def _rounded(distance: Any) -> float:
    """A number rounded to float32, as the distances of a graph are."""
    given = _options.number(distance, "distance")
    with np.errstate(over="ignore"):
        return float(np.float32(given))
