"""Nearest neighbours, exactly: the same answer on every machine.

    ids, distances = nearwise.knn(queries, base, k=10, metric="sqeuclidean")

Arrays of numpy are used where they lie, without a copy (see `nearwise.knn` for the few layouts that need one), and so
are those that other libraries have on a CUDA device, in builds with CUDA.
A wrong argument is a ValueError or TypeError that says what was expected and what was given; everything else that
can go wrong is a `nearwise.Error` with a `code`.
"""

from nearwise._additive_quantizer import AdditiveQuantizer, load_additive_quantizer
from nearwise._core import ContainerInfo, SectionInfo
from nearwise._core import version as _version
from nearwise._error import Error
from nearwise._exact import exact_knn_graph, knn
from nearwise._graph_uses import RowGroups, SmoothestPath
from nearwise._ivf import IvfFlat, IvfLsq, IvfPq, load_ivf
from nearwise._ivf_index import Ivf, MeasuredRecall
from nearwise._kmeans import KMeans, assign, train_hierarchical_kmeans, train_kmeans
from nearwise._kmeans_parts import ClusterSums, move_centroids, seed_kmeans, sum_clusters
from nearwise._knn_graph import (
    GraphRound,
    KnnGraph,
    RecallEstimate,
    build_knn_graph,
    load_knn_graph,
    measure_recall,
    merge_knn_graphs,
)
from nearwise._machine import info
from nearwise._merge_neighbors import merge_neighbors
from nearwise._neighbors import Neighbors
from nearwise._optimized_product_quantizer import OptimizedProductQuantizer
from nearwise._plan import Plan, PlannedTask, plan_graph, plan_index
from nearwise._prepared_base import Exact
from nearwise._product_quantizer import ProductQuantizer
from nearwise._range_search import RangeNeighbors, range_search
from nearwise._rotation import Rotation
from nearwise._select_k import Selection, select_k
from nearwise._storage import SavedNeighbors, inspect, load, save, verify
from nearwise._vector_file import read_neighbors, read_vectors, write_neighbors, write_vectors

__version__ = _version()

__all__ = [
    "AdditiveQuantizer",
    "ClusterSums",
    "ContainerInfo",
    "Error",
    "Exact",
    "GraphRound",
    "Ivf",
    "IvfFlat",
    "IvfLsq",
    "IvfPq",
    "KMeans",
    "KnnGraph",
    "MeasuredRecall",
    "Neighbors",
    "OptimizedProductQuantizer",
    "Plan",
    "PlannedTask",
    "ProductQuantizer",
    "RangeNeighbors",
    "RecallEstimate",
    "Rotation",
    "RowGroups",
    "SavedNeighbors",
    "SectionInfo",
    "Selection",
    "SmoothestPath",
    "__version__",
    "assign",
    "build_knn_graph",
    "exact_knn_graph",
    "info",
    "inspect",
    "knn",
    "load",
    "load_additive_quantizer",
    "load_ivf",
    "load_knn_graph",
    "measure_recall",
    "merge_knn_graphs",
    "merge_neighbors",
    "move_centroids",
    "plan_graph",
    "plan_index",
    "range_search",
    "read_neighbors",
    "read_vectors",
    "save",
    "seed_kmeans",
    "select_k",
    "sum_clusters",
    "train_hierarchical_kmeans",
    "train_kmeans",
    "verify",
    "write_neighbors",
    "write_vectors",
]
