"""A base prepared once, for searches that come one by one; and the exact graph of the same rows."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
base = random.standard_normal((20_000, 64), dtype=np.float32)

prepared = nearwise.Exact(base, metric="cosine")
print(prepared)
for number in range(3):
    query = base[number] + 0.1 * random.standard_normal((1, 64), dtype=np.float32)
    ids, distances = prepared.knn(query, k=3)
    print(f"question {number}: rows {ids[0].tolist()}, the best at {distances[0, 0]:.4f}")

# All rows within a radius: as many as there are, for each query.
found = prepared.range_search(base[:3], radius=0.6)
for number in range(3):
    ids, distances = found.of(number)
    print(f"row {number} has {len(ids)} rows within 0.6, itself first: {ids[:3].tolist()}")

# Everyone's nearest others.
graph = nearwise.exact_knn_graph(base, k=5, metric="cosine")
print("the nearest others of row 0:", graph.ids[0].tolist())
