"""Exact nearest neighbors of numpy arrays."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
base = random.standard_normal((10_000, 64), dtype=np.float32)
queries = base[:5] + 0.01 * random.standard_normal((5, 64), dtype=np.float32)

ids, distances = nearwise.knn(queries, base, k=3)
print("nearest vectors of each query:")
print(ids)
print("squared distances:")
print(distances)

# Another metric, half precision, and only the first half of each vector: without a copy.
half = base.astype(np.float16)
# Settings of several calls are kept in a context.
context = nearwise.Context(threads=2, memory_limit="1GiB")
found = nearwise.knn(half[:5, :32], half[:, :32], k=3, metric="cosine", context=context)
print("each vector is its own nearest:", found.ids[:, 0].tolist())
