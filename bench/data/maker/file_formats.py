"""Vector files: the big-ann-benchmarks layout, and optional copies in other formats.

A `.u8bin`, `.fbin` or `.ibin` file is uint32 rows, uint32 dimensions, then the rows; all little-endian.
"""
import struct

import numpy as np

ELEMENT_TYPES = {".fbin": "<f4", ".u8bin": "u1", ".ibin": "<i4"}
VECS_SUFFIXES = {".fbin": ".fvecs", ".u8bin": ".bvecs", ".ibin": ".ivecs"}
COPY_BLOCK_ROWS = 1 << 18  # copies never hold more than this in memory


def write_header(file, rows, dimensions):
    file.write(struct.pack("<II", rows, dimensions))


def read_shape(path):
    with open(path, "rb") as file:
        return struct.unpack("<II", file.read(8))


def write_vectors(path, vectors):
    with open(path, "wb") as file:
        write_header(file, *vectors.shape)
        vectors.tofile(file)


def open_vectors(path):
    return np.memmap(path, ELEMENT_TYPES[path.suffix], "r", 8, read_shape(path))


def write_ground_truth(folder, ids, distances):
    """`gt.bin` holds ids and distances behind one header; `gt.ibin` and `gt.fbin` hold one each."""
    with open(folder / "gt.bin", "wb") as file:
        write_header(file, *ids.shape)
        ids.tofile(file)
        distances.tofile(file)
    write_vectors(folder / "gt.ibin", ids)
    write_vectors(folder / "gt.fbin", distances)


def copy_path(path, copy_format):
    return path.with_suffix(".npy" if copy_format == "npy" else VECS_SUFFIXES[path.suffix])


def write_copy(path, copy_format):
    """Write the file `path` once more as `.npy` or as TEXMEX `.fvecs`, `.bvecs`, `.ivecs`."""
    vectors = open_vectors(path)
    rows, dimensions = vectors.shape
    target = copy_path(path, copy_format)
    starts = range(0, rows, COPY_BLOCK_ROWS)
    if copy_format == "npy":
        copy = np.lib.format.open_memmap(target, "w+", vectors.dtype, vectors.shape)
        for start in starts:
            copy[start:start + COPY_BLOCK_ROWS] = vectors[start:start + COPY_BLOCK_ROWS]
        copy.flush()
        return
    record = np.dtype([("dimensions", "<i4"), ("values", vectors.dtype, (dimensions,))])
    with open(target, "wb") as file:
        for start in starts:
            block = vectors[start:start + COPY_BLOCK_ROWS]
            records = np.empty(len(block), record)
            records["dimensions"], records["values"] = dimensions, block
            records.tofile(file)
