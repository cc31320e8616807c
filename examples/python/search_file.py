"""Search a mapped vector file, which may be larger than memory."""

import nearwise
import numpy as np

# A data set in the format of the big-ann benchmarks.
vectors = np.random.default_rng(7).integers(0, 256, (20_000, 96), dtype=np.uint8)
nearwise.write_vectors("vectors.u8bin", vectors)

base = nearwise.read_vectors("vectors.u8bin")  # a read-only array over the file
print(f"{base.shape[0]} vectors of {base.shape[1]} {base.dtype}")

found = nearwise.knn(base[:1000:100], base, k=5, metric="euclidean", memory_limit="64MiB", progress=True)
print(found.ids)

# Ground truth in a common format, for other tools.
nearwise.write_neighbors("truth.ivecs", found)
