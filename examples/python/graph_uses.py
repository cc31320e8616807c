"""A graph of nearest neighbours and what it is good for: components, near duplicates, other libraries."""

import nearwise
import numpy as np

random = np.random.default_rng(5)
centres = 10 * random.standard_normal((5, 32), dtype=np.float32)
rows = centres[np.arange(5_000) % 5] + random.standard_normal((5_000, 32), dtype=np.float32)
rows[4_900:] = rows[:100] + 0.01 * random.standard_normal((100, 32), dtype=np.float32)  # nearly the same once more

graph = nearwise.build_knn_graph(rows, degree=10, metric="euclidean", recall=0.95)
print(graph)

# Which rows hang together? Groups are numbered in the order of their first rows.
components = graph.connected_components()
print("components of", components.sizes.tolist(), "rows")

# Which rows are nearly the same? Rows in no group have label -1.
duplicates = graph.near_duplicates(0.5)
print(len(duplicates.sizes), "groups of near duplicates; the first is rows", duplicates.members()[0].tolist())

# Edges that both ends have: fewer and surer ones.
mutual = graph.mutual_neighbors()
print(f"{len(mutual.ids) / graph.ids.size:.0%} of the edges are mutual; row 0 keeps", mutual.of(0)[0].tolist())

# A file that scipy.sparse.load_npz reads, and the arrays that UMAP takes as precomputed_knn.
graph.save_npz("graph.npz")
ids, distances = graph.with_self()
print("with every row as its own first neighbour:", ids.shape)

# scipy.sparse and scikit-learn, where they are installed.
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
