"""Rotations and principal component analysis."""

from __future__ import annotations

import functools
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, CallSettings, Context, SeededSettings, operation


class Rotation:
    """Orthonormal axes and a mean: a vector x becomes matrix @ (x - mean).

    Made by `Rotation.pca` or `Rotation.from_matrix`, and not changed afterwards. It can be copied and pickled,
    and threads may share it.

    Examples
    --------
    >>> import numpy as np, nearwise
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
    _context: Context

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError("Rotation: made by Rotation.pca(rows, dims) or Rotation.from_matrix")

    @classmethod
    @operation
    def pca(
        cls, rows: Any, dims: int, *, training_rows: int | None = None, **settings: Unpack[SeededSettings]
    ) -> Rotation:
        """The principal axes of the vectors, by descending variance, around their mean.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`.
        dims : int
            The number of axes, 1 to dim. The largest element of each is positive.
        training_rows : int, optional
            Vectors to train on, drawn by the seed if there are more. Default: 65,536.
        context, seed, device, threads, memory_limit, isa, progress
            See `nearwise.Context`; no progress is reported. The rotation remembers them.
        """
        call = Call("Rotation.pca", settings)
        found = call.run(_core.Rotation.pca, rows=rows, dims=dims, training_rows=training_rows)
        return cls._of(found, call.context)

    @classmethod
    @operation
    def from_matrix(cls, matrix: Any, mean: Any = None, *, context: Context | None = None) -> Rotation:
        """A rotation of given axes, the rows of `matrix` [rotated_dim, dim], orthonormal up to 1e-4."""
        axes = np.ascontiguousarray(matrix, np.float32)
        if axes.ndim != 2:
            raise ValueError(f"matrix: expected a 2-D array [rotated_dim, dim], got shape {axes.shape}")
        rotated_dim, dim = axes.shape
        centre = np.zeros(dim, np.float32) if mean is None else np.ascontiguousarray(mean, np.float32)
        if centre.shape != (dim,):
            raise ValueError(f"mean: expected shape ({dim},), got {centre.shape}")
        bound = _core.Rotation.from_matrix(dim=dim, rotated_dim=rotated_dim, matrix=axes.reshape(-1), mean=centre)
        return cls._of(bound, context or Context())

    @classmethod
    def _of(cls, bound: _core.Rotation, context: Context) -> Rotation:
        made = object.__new__(cls)
        made._bound = bound
        made._context = context.remembered()
        return made

    def __reduce__(self) -> Any:
        return functools.partial(Rotation.from_matrix, context=self._context), (self.matrix, self.mean)

    @operation
    def apply(self, rows: Any, **settings: Unpack[CallSettings]) -> npt.NDArray[np.float32]:
        """Rotated vectors, float32 [rows, rotated_dim]: sums in float64, rounded once."""
        return Call("Rotation.apply", settings).run(self._bound.apply, rows=rows)

    @operation
    def reverse(self, rows: Any, **settings: Unpack[CallSettings]) -> npt.NDArray[np.float32]:
        """Rotates back, float32 [rows, dim], up to rounding and to the dropped axes."""
        return Call("Rotation.reverse", settings).run(self._bound.reverse, rows=rows)

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return self._bound.dim

    @property
    def rotated_dim(self) -> int:
        """Elements of a rotated vector."""
        return self._bound.rotated_dim

    @property
    def matrix(self) -> npt.NDArray[np.float32]:
        """The axes, float32 [rotated_dim, dim]: a copy."""
        return self._bound.matrix().reshape(self.rotated_dim, self.dim)

    @property
    def mean(self) -> npt.NDArray[np.float32]:
        """float32 [dim]: a copy."""
        return np.asarray(self._bound.mean()[0])

    def __repr__(self) -> str:
        return f"<nearwise.Rotation: {self.dim} elements to {self.rotated_dim}>"
