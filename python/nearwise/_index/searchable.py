"""What every index has in common."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from nearwise._neighbors import Neighbors, RangeNeighbors


@runtime_checkable
class Searchable(Protocol):
    """An index: `Exact`, `IvfFlat`, `IvfPq`, `IvfLsq`, `GraphIndex`, and those of `nearwise.cluster`; for annotations.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> isinstance(nearwise.Exact(np.eye(3, dtype=np.float32)), nearwise.Searchable)
    True
    """

    @property
    def metric(self) -> str: ...

    def __len__(self) -> int: ...

    def search(self, queries: Any, k: int, *, filter: Any = None, exclude: Any = None) -> Neighbors:
        """The k nearest allowed vectors that it finds, best first, the lower id in a tie.

        Rows are padded with id -1 where fewer than k vectors are allowed, or found by an approximate index.
        """
        ...

    def range_search(
        self, queries: Any, radius: float, *, filter: Any = None, exclude: Any = None
    ) -> RangeNeighbors:
        """All allowed vectors that it finds within a radius."""
        ...
