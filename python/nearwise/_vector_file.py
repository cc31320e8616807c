"""Vector and neighbor files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from nearwise import _core
from nearwise._context import operation
from nearwise._error import ArgumentError
from nearwise._log import warn
from nearwise._neighbors import Neighbors, adopt, as_neighbors
from nearwise._rows import as_rows

Path = str | os.PathLike[str]

# Readers of other files of vectors, whose arrays every operation takes.
_READERS = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "numpy.loadtxt"),
    **dict.fromkeys((".npz", ".pkl", ".pickle"), "numpy.load"),
    **dict.fromkeys((".h5", ".hdf5", ".h5ad"), "h5py"),
    **dict.fromkeys((".pt", ".pth"), "torch.load"),
    ".safetensors": "safetensors.numpy.load_file",
    ".feather": "pyarrow.feather",
    ".arrow": "pyarrow.ipc",
}


def _reader(path: str) -> str:
    """What reads a file that is none of vectors, by its suffix."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".parquet":
        return "; nearwise.arrow.to_vectors makes a file of vectors of a column"
    if suffix == ".nw":
        return "; nearwise.load opens files of indexes, graphs, quantizers and results"
    return f"; {_READERS[suffix]} reads such files, and nearwise takes arrays" if suffix in _READERS else ""


@operation
def read_vectors(path: Path) -> npt.NDArray[Any]:
    """The vectors of a file as a read-only array [rows, dim] over the mapped file, without reading or copying it.

    A .npy is recognised by its content, under any name, others by their suffix: .fbin, .f16bin, .bf16bin, .u8bin,
    .i8bin, .fvecs, .bvecs. The file may be larger than memory. Replace it by renaming: operations on a file that is
    truncated while it is mapped raise `nearwise.Error`, and other code that reads the array is killed by SIGBUS.

    bfloat16 is returned as `ml_dtypes.bfloat16` if that package is installed, otherwise as its bits in uint16 with a
    warning (other libraries would take them for numbers).

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "vectors.fvecs")
    >>> nearwise.write_vectors(path, np.arange(6, dtype=np.float32).reshape(2, 3))
    >>> nearwise.read_vectors(path)
    array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    try:
        array, kind = _core.map_vectors(path=os.fspath(path))
    except ValueError as error:
        raise ArgumentError(f"{error}{_reader(os.fspath(path))}") from None
    if kind != "bf16":
        return array
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        warn(
            f"{os.fspath(path)}: bfloat16 vectors are returned as their bits in uint16; install ml_dtypes to use them",
            UserWarning,
            stacklevel=3,
        )
        return array
    return array.view(bfloat16)


@operation
def write_vectors(path: Path, vectors: Any) -> None:
    """Writes an array [rows, dim] in the format of the suffix; types and layouts are those of `knn`.

    An iterator of arrays is written one array after the other, so that all of them need not fit into memory: their
    dimensions and types must be equal. The file appears under its name only when it is complete and on disk.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "vectors.fbin")
    >>> nearwise.write_vectors(path, (np.full((2, 3), number, np.float32) for number in range(100)))
    >>> nearwise.read_vectors(path).shape
    (200, 3)
    """
    batches = vectors if isinstance(vectors, Iterator) else iter([vectors])
    writer, first = None, None
    try:
        for number, batch in enumerate(batches):
            name = f"vectors, array {number}" if batches is vectors else "vectors"
            rows = as_rows(batch, name)
            shape = (rows.type, rows.array.shape[1])
            if writer is None:
                writer, first = _core.VectorWriter(path=os.fspath(path), vectors=rows.bound(name)), shape
            elif shape != first:
                raise ValueError(f"{name}: expected type and dimension of the arrays before it, {first}, got {shape}")
            writer.append(vectors=rows.bound(name))
        if writer is None:
            raise ValueError("vectors: at least one array expected, got none")
        writer.commit()
    except BaseException:
        writer = None  # removes the temporary file now: the traceback keeps the variables of this call
        raise


@operation
def read_neighbors(path: Path) -> Neighbors:
    """A ground truth or result: .ivecs, .ibin, .npy (ids), .bin (big-ann ground truth), .nw.

    `distances` has the shape (0, 0) if the format does not store them.
    """
    return adopt(_core.read_neighbors(path=os.fspath(path)))


@operation
def write_neighbors(path: Path, neighbors: Any) -> None:
    """Writes ids as .ivecs, .ibin (32 bits) or .npy, ids and distances as .bin. For .nw see `save`."""
    pair = as_neighbors(neighbors)
    _core.write_neighbors(path=os.fspath(path), ids=pair.ids, distances=pair.distances)
