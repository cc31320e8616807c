"""The `images` set: Fashion-MNIST, pixels as uint8 vectors of 784 dimensions."""
import gzip

import numpy as np

from .file_formats import write_vectors
from .packages import unpack_packages

PACKAGE = "dataset-fashion-mnist"


def make(options, cache, folder):
    (package,) = unpack_packages([PACKAGE], cache)
    source = package / "usr/share/datasets/fashion-mnist"
    base_rows = options.n or (5_000 if options.small else 60_000)
    query_rows = 1_000 if options.small else 10_000
    for part, name, rows in (("train", "base", base_rows), ("t10k", "query", query_rows)):
        with gzip.open(source / f"{part}-images-idx3-ubyte.gz") as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
        write_vectors(folder / f"{name}.u8bin", pixels[:rows])
    return ".u8bin"
