"""Vector files in the layout of big-ann-benchmarks.

A `.u8bin`, `.fbin` or `.ibin` file is uint32 rows, uint32 dimensions, then the rows; all little-endian.
"""
import struct

import numpy as np

ELEMENT_TYPES = {".fbin": "<f4", ".u8bin": "u1", ".ibin": "<i4"}


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
