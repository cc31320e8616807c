"""Clusters of vectors, and the cluster of a new one."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
groups = 5 * random.standard_normal((20, 32))
rows = (groups.repeat(500, axis=0) + random.standard_normal((10_000, 32))).astype(np.float32)

trained = nearwise.train_kmeans(rows, 20, seed=1)
print("cluster sizes:", trained.sizes.tolist())
print("error of each iteration:", trained.errors.round().tolist())
print("converged:", trained.converged)

new = rows[:3] + 0.1
ids, distances = nearwise.assign(new, trained.centroids)
print("clusters of new vectors:", ids[:, 0].tolist(), "at squared distances", distances[:, 0].tolist())

# Spherical: only directions count, and centroids have length 1.
spherical = nearwise.train_kmeans(rows, 20, metric="cosine", initial=rows[::500])
print("lengths of the centroids:", np.linalg.norm(spherical.centroids, axis=1).round(3).tolist())

# Very many clusters: two levels take a fraction of the time.
many = nearwise.train_hierarchical_kmeans(rows, 1000)
print("1000 clusters, the largest with", many.sizes.max(), "vectors")
