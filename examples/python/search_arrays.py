"""Nearest neighbours of numpy arrays."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
base = random.standard_normal((10_000, 64), dtype=np.float32)
queries = base[:5] + 0.01 * random.standard_normal((5, 64), dtype=np.float32)

ids, distances = nearwise.knn(queries, base, k=3)
print("nearest rows of each query:")
print(ids)
print("squared distances:")
print(distances)

# Another metric, half precision, and only the first half of each vector: nothing is copied for that.
half = base.astype(np.float16)
found = nearwise.knn(half[:5, :32], half[:, :32], k=3, metric="cosine")
print("each row is its own nearest:", found.ids[:, 0].tolist())
