"""A base prepared once for many searches, and the exact k-NN graph of the same vectors."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
base = random.standard_normal((20_000, 64), dtype=np.float32)

prepared = nearwise.Exact(base, metric="cosine")
print(prepared)
for number in range(3):
    query = base[number] + 0.1 * random.standard_normal((1, 64), dtype=np.float32)
    ids, distances = prepared.search(query, k=3)
    print(f"query {number}: {ids[0].tolist()}, the best at {distances[0, 0]:.4f}")

# All vectors within a radius of each query.
found = prepared.range_search(base[:3], radius=0.6)
for number in range(3):
    ids, distances = found.of(number)
    print(f"vector {number} has {len(ids)} vectors within 0.6, itself first: {ids[:3].tolist()}")

# The nearest other vectors of every vector.
graph = nearwise.exact_knn_graph(base, k=5, metric="cosine")
print("the nearest other vectors of vector 0:", graph.ids[0].tolist())
