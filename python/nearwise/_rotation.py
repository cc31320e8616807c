"""Rows along other axes."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_rows, device_for, rest_of_limit


class Rotation:
    """Orthonormal axes and a mean: a row x becomes matrix @ (x - mean).

    Made by `Rotation.pca` or `Rotation.from_matrix`, and not changed any more. It can be pickled, and threads may share it.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.array([[1, 1], [2, 2], [3, 3], [4, 4]], dtype=np.float32)
    >>> rotation = nearwise.Rotation.pca(rows, 1)
    >>> rotation
    <nearwise.Rotation: 2 elements to 1>
    >>> rotation.matrix.round(3)
    array([[0.707, 0.707]], dtype=float32)
    >>> rotation.reverse(rotation.apply(rows)).round(3)
    array([[1., 1.],
           [2., 2.],
           [3., 3.],
           [4., 4.]], dtype=float32)
    """

    _bound: _core.Rotation

    def __init__(self) -> None:
        raise TypeError("Rotation: made by Rotation.pca or Rotation.from_matrix")

    @classmethod
    def pca(
        cls,
        rows: Any,
        dims: int,
        *,
        training_rows: int = 65536,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> Rotation:
        """The axes along which the rows vary most, by falling variance, around their mean.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`.
        dims : int
            How many axes, 1 to dim. The largest element of each is positive.
        training_rows : int
            Of more rows so many are drawn, by the seed. 0: all.
        seed : int
            Of all random numbers.
        device, threads, memory_limit, isa, progress
            As in `nearwise.knn`; nothing is reported.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "pca") as report:
            bound = _core.Rotation.pca(
                given.array,
                given.type,
                _options.count(dims, "dims"),
                _options.integer(training_rows, "training_rows", 0, 2**63 - 1),
                _options.seed(seed),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "Rotation.pca", given),
                _options.word(isa, "isa"),
                report,
            )
        return cls._of(bound)

    @classmethod
    def from_matrix(cls, matrix: Any, mean: Any = None) -> Rotation:
        """A rotation of given axes, the rows of `matrix` [rotated_dim, dim], orthonormal up to 1e-4."""
        axes = np.ascontiguousarray(matrix, np.float32)
        if axes.ndim != 2:
            raise ValueError(f"matrix: expected a 2-D array [rotated_dim, dim], given shape {axes.shape}")
        rotated_dim, dim = axes.shape
        centre = np.zeros(dim, np.float32) if mean is None else np.ascontiguousarray(mean, np.float32)
        if centre.shape != (dim,):
            raise ValueError(f"mean: expected shape ({dim},), given {centre.shape}")
        return cls._of(_core.Rotation.from_matrix(dim, rotated_dim, axes.reshape(-1), centre))

    @classmethod
    def _of(cls, bound: _core.Rotation) -> Rotation:
        made = object.__new__(cls)
        made._bound = bound
        return made

    def __reduce__(self) -> Any:
        return Rotation.from_matrix, (self.matrix, self.mean)

    def apply(
        self,
        rows: Any,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.float32]:
        """Rows along the axes, float32 [rows, rotated_dim]: sums in float64, rounded once."""
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "apply") as report:
            return self._bound.apply(
                given.array,
                given.type,
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "Rotation.apply", given),
                _options.word(isa, "isa"),
                report,
            )

    def reverse(
        self,
        rows: Any,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.float32]:
        """What rotated rows were, float32 [rows, dim], up to rounding and to what was dropped."""
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "reverse") as report:
            return self._bound.reverse(
                given.array,
                given.type,
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "Rotation.reverse", given),
                _options.word(isa, "isa"),
                report,
            )

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._bound.dim

    @property
    def rotated_dim(self) -> int:
        """Elements of a rotated row."""
        return self._bound.rotated_dim

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The axes, float32 [rotated_dim, dim]: a copy."""
        return self._bound.matrix().reshape(self.rotated_dim, self.dim)

    @property
    def mean(self) -> npt.NDArray[np.float32]:
        """float32 [dim]: a copy."""
        return self._bound.mean()[0]

    def __repr__(self) -> str:
        return f"<nearwise.Rotation: {self.dim} elements to {self.rotated_dim}>"


# Users see it as nearwise.Rotation.
Rotation.__module__ = "nearwise"
