"""A k-NN graph and its uses: components, near duplicates, other libraries."""

import nearwise
import numpy as np

random = np.random.default_rng(5)
centres = 10 * random.standard_normal((5, 32), dtype=np.float32)
rows = centres[np.arange(5_000) % 5] + random.standard_normal((5_000, 32), dtype=np.float32)
rows[4_900:] = rows[:100] + 0.01 * random.standard_normal((100, 32), dtype=np.float32)  # near duplicates

graph = nearwise.build_knn_graph(rows, degree=10, metric="euclidean", target_recall=0.95)
print(graph)

# Connected components, numbered in the order of their first members.
components = graph.connected_components()
print("components of", components.sizes.tolist(), "vectors")

# Near duplicates. Vectors in no group have label -1.
duplicates = graph.near_duplicates(0.5)
print(len(duplicates.sizes), "groups of near duplicates; the first is", duplicates.members()[0].tolist())

# Mutual edges: fewer and more reliable.
mutual = graph.mutual_neighbors()
print(f"{len(mutual.ids) / graph.ids.size:.0%} of the edges are mutual; vector 0 keeps", mutual.of(0)[0].tolist())

# A file for scipy.sparse.load_npz, and the arrays for precomputed_knn of UMAP.
graph.save_npz("graph.npz")
ids, distances = graph.with_self()
print("with every vector as its own first neighbor:", ids.shape)

# scikit-learn, if it is installed.
try:
    from nearwise.sklearn import KNeighborsTransformer
    from sklearn.cluster import DBSCAN
    from sklearn.pipeline import make_pipeline
except ImportError:
    print("scikit-learn is not installed")
else:
    pipeline = make_pipeline(KNeighborsTransformer(n_neighbors=10), DBSCAN(eps=9.0, metric="precomputed"))
    labels = pipeline.fit_predict(rows)
    print("DBSCAN on the graph finds", len(set(labels) - {-1}), "clusters")
