"""The `images` set: Fashion-MNIST, pixels as uint8 vectors of 784 dimensions, with labels."""
import gzip

import numpy as np

from .file_formats import write_vectors
from .packages import unpack_packages

PACKAGE = "dataset-fashion-mnist"


def read_idx(path, header_bytes):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


def make(options, cache, folder, steps):
    (package,) = unpack_packages([PACKAGE], cache)
    steps.done("download and unpack package")
    source = package / "usr/share/datasets/fashion-mnist"
    base_rows = options.n or (5_000 if options.small else 60_000)
    query_rows = 1_000 if options.small else 10_000
    for part, name, rows in (("train", "base", base_rows), ("t10k", "query", query_rows)):
        pixels = read_idx(source / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        labels = read_idx(source / f"{part}-labels-idx1-ubyte.gz", 8)
        write_vectors(folder / f"{name}.u8bin", pixels[:rows])
        write_vectors(folder / f"{name}_labels.u8bin", labels[:rows, None])
    steps.done("convert")
    return ".u8bin", {}
