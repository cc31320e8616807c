"""Measured recall."""

from __future__ import annotations

from typing import NamedTuple


class RecallEstimate(NamedTuple):
    """The share of true neighbors found, measured on a sample against exact search.

    value : float
        Of the sample. A neighbor counts if it is no farther than the last of the exact ones.
    low, high : float
        95 % confidence interval for all vectors.
    rows : int
        Size of the sample.

    >>> print(RecallEstimate(0.95, 0.94, 0.96, 2000))
    0.9500 [0.9400, 0.9600]
    """

    value: float
    low: float
    high: float
    rows: int

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"
