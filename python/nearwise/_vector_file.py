"""Files of vectors and of neighbours, in the formats of the field."""

from __future__ import annotations

import os
import warnings
from typing import Any, Union

import numpy as np

from nearwise import _core
from nearwise._neighbors import Neighbors, adopt, as_neighbors
from nearwise._rows import as_rows

Path = Union[str, "os.PathLike[str]"]


def read_vectors(path: Path) -> np.ndarray:
    """The vectors of a file as a read-only array [rows, dim] over the mapped file: nothing is read or copied yet.

    The suffix names the format: .npy, .fbin, .f16bin, .bf16bin, .u8bin, .i8bin, .fvecs, .bvecs. The file may be
    larger than memory; replace it by renaming, never shorten it while an array is in use.

    bfloat16 is returned as `ml_dtypes.bfloat16` if that package is installed, otherwise as its bits in uint16 with
    a warning (uint16 is refused or misread as numbers elsewhere).

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "vectors.fvecs")
    >>> nearwise.write_vectors(path, np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> nearwise.read_vectors(path)
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    array, kind = _core.map_vectors(os.fspath(path))
    if kind != "bf16":
        return array
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        warnings.warn(
            f"{os.fspath(path)}: bfloat16 vectors are returned as their bits in uint16; install ml_dtypes to use them",
            stacklevel=2,
        )
        return array
    return array.view(bfloat16)


def write_vectors(path: Path, vectors: Any) -> None:
    """Writes an array [rows, dim] in the format of the suffix; types and layouts are those of `knn`.

    The file appears under its name only when it is complete and on the disk.
    """
    rows = as_rows(vectors, "vectors")
    _core.write_vectors(os.fspath(path), rows.array, rows.type)


def read_neighbors(path: Path) -> Neighbors:
    """A ground truth or result: .ivecs, .ibin, .npy (ids), .bin (big-ann ground truth), .nw.

    `distances` has the shape (0, 0) where the format does not store them.
    """
    return adopt(_core.read_neighbors(os.fspath(path)))


def write_neighbors(path: Path, neighbors: Any) -> None:
    """Writes ids as .ivecs, .ibin (32 bits) or .npy, ids and distances as .bin. For .nw see `save`."""
    pair = as_neighbors(neighbors)
    _core.write_neighbors(os.fspath(path), pair.ids, pair.distances)
