"""Queries on k-NN graphs, and their export to other libraries."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._context import operation
from nearwise._neighbors import Neighbors, RangeNeighbors, adopt_range, as_neighbors
from nearwise._vector_file import Path


class SmoothestPath(NamedTuple):
    """A path through a graph.

    rows : int64 [steps + 1]
        From start to end, both included.
    distances : float32 [steps]
    widest : float or None
        The largest distance (inner_product: the smallest product); None without a step.
    """

    rows: npt.NDArray[np.int64]
    distances: npt.NDArray[np.float32]
    widest: float | None


class RowGroups(NamedTuple):
    """Groups of vectors, numbered in the order of their first members.

    labels : int64 [rows]
        The group of every vector; -1: in no group.
    sizes : int64 [groups]
    """

    labels: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def members(self) -> list[npt.NDArray[np.int64]]:
        """The row numbers of every group, lowest first.

        >>> RowGroups(np.array([0, 1, -1, 0]), np.array([2, 1])).members()
        [array([0, 3]), array([1])]
        """
        order = np.argsort(self.labels, kind="stable")
        grouped = order[len(order) - int(self.sizes.sum()) :]  # after the vectors without a group
        return np.split(grouped, np.cumsum(self.sizes)[:-1]) if len(self.sizes) else []


class GraphUses:
    """The queries and exports of `KnnGraph`, which has `neighbors` and `metric`."""

    neighbors: Neighbors
    metric: str

    def _arrays(self) -> dict[str, Any]:
        pair = as_neighbors(self.neighbors)
        return {"ids": pair.ids, "distances": pair.distances, "metric": self.metric}

    @operation
    def smoothest_path(self, start: int, end: int) -> SmoothestPath | None:
        """The path between two vectors whose largest step is smallest (minimax path); None if they are not connected.

        Exact on the graph, whose edges count in both directions. Among equal paths it is one with the fewest steps, and
        among these the one with the lowest ids, compared from its start.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [1], [2.5], [4]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=3, metric="euclidean").smoothest_path(0, 3)
        SmoothestPath(rows=array([0, 1, 2, 3]), distances=array([1. , 1.5, 1.5], dtype=float32), widest=1.5)
        """
        first = _options.integer(start, "start", -(2**63), 2**63 - 1)
        last = _options.integer(end, "end", -(2**63), 2**63 - 1)
        found = _core.smoothest_path(**self._arrays(), start=first, end=last)
        return None if found is None else SmoothestPath(found[0].view(np.int64), found[1], found[2])

    @operation
    def connected_components(self) -> RowGroups:
        """Groups of vectors connected by edges in either direction. Every vector is in a group, perhaps alone.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [50], [1], [51]], dtype=np.float32)
        >>> nearwise.build_knn_graph(rows, degree=1).connected_components()
        RowGroups(labels=array([0, 1, 0, 1]), sizes=array([2, 2]))
        """
        return _adopt_groups(_core.connected_components(**self._arrays()))

    @operation
    def near_duplicates(self, distance: float) -> RowGroups:
        """Groups of vectors connected by edges of at most `distance` (inner_product: at least).

        The distance is in the unit of the graph's metric. Vectors without such an edge have the label -1. Only
        edges of the graph are considered.

        Examples
        --------
        >>> import nearwise
        >>> rows = np.array([[0], [7], [0], [9], [0.5]], dtype=np.float32)
        >>> graph = nearwise.build_knn_graph(rows, degree=2, metric="euclidean")
        >>> graph.near_duplicates(1.0).labels
        array([ 0, -1,  0, -1,  0])
        """
        return _adopt_groups(_core.near_duplicates(**self._arrays(), distance=_options.rounded(distance, "distance")))

    @operation
    def mutual_neighbors(self) -> RangeNeighbors:
        """The neighbors of every vector that have it among theirs, best first.

        Returns
        -------
        RangeNeighbors
            offsets, ids and distances; `of(row)` returns those of one vector.
        """
        return adopt_range(_core.mutual_neighbors(**self._arrays()))

    @operation
    def with_self(self) -> Neighbors:
        """ids and distances [rows, degree + 1] with every vector as its own first neighbor, at distance 0.

        For UMAP: ``umap.UMAP(n_neighbors=degree + 1, precomputed_knn=graph.with_self())``. Not for
        inner_product, where a vector need not be its own best match.
        """
        if self.metric == "inner_product":
            raise ValueError(
                "with_self: expected a metric in which every vector is its own nearest, got inner_product"
            )
        ids, distances = as_neighbors(self.neighbors)
        own = np.arange(len(ids), dtype=np.int64)[:, None]
        return Neighbors(np.hstack([own, ids]), np.hstack([np.zeros((len(ids), 1), dtype=np.float32), distances]))

    @operation
    def to_csr(self, *, mutual: bool | None = False) -> Any:
        """A `scipy.sparse.csr_matrix` [rows, rows]: entry (i, j) is the distance of vector i to its neighbor j.

        Distances of 0 are stored as well. Entries of a row are in the order of the graph, best first.

        Parameters
        ----------
        mutual : bool
            Only the edges of `mutual_neighbors`.
        """
        from scipy.sparse import csr_matrix

        ids, distances = as_neighbors(self.neighbors)
        if _options.flag(mutual, "mutual"):
            offsets, columns, values = self.mutual_neighbors()
        else:
            real = ids >= 0
            offsets = np.concatenate([[0], np.cumsum(real.sum(axis=1))])
            columns, values = ids[real], distances[real]
        index = np.int32 if max(len(ids), len(columns)) < 2**31 else np.int64
        return csr_matrix((values, columns.astype(index), offsets.astype(index)), shape=(len(ids), len(ids)))

    @operation
    def save_npz(self, path: Path, *, mutual: bool | None = False) -> None:
        """Saves `to_csr` in an .npz for `scipy.sparse.load_npz`, atomically; works without SciPy."""
        _core.save_csr(path=os.fspath(path), **self._arrays(), mutual=_options.flag(mutual, "mutual"))


def _adopt_groups(groups: tuple[npt.NDArray[Any], npt.NDArray[Any]]) -> RowGroups:
    return RowGroups(groups[0].view(np.int64), groups[1].view(np.int64))
