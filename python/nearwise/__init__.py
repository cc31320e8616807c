"""Nearest-neighbor search, clustering, quantization and k-NN graphs, with the same results on every machine.

    ids, distances = nearwise.knn(queries, base, k=10, metric="sqeuclidean")

numpy arrays, and arrays of other libraries on a CUDA device, are used in place (`nearwise.knn` lists the
layouts that need a copy). Every operation takes a `nearwise.Context`, or its settings as plain keywords. None for
an argument with a default means the default. Every failure is a `nearwise.Error` with a `code`, and a ValueError,
FileNotFoundError, OSError or MemoryError where that fits; arguments of wrong types are a TypeError.
"""

from typing import TYPE_CHECKING

from nearwise._additive_quantizer import AdditiveQuantizer
from nearwise._bench.bench import bench
from nearwise._bench.report import BenchReport
from nearwise._context import Context
from nearwise._core import version as _version
from nearwise._dedup import dedup, plan_dedup, plan_threshold_join, threshold_join
from nearwise._deduplication import Deduplication
from nearwise._error import AccessError, ArgumentError, Error, FileError, NotFoundError, OutOfMemoryError
from nearwise._graph_uses import RowGroups, SmoothestPath
from nearwise._index.build import IndexChoice, IndexEstimate, build, choose_index
from nearwise._index.exact import Exact, exact_knn_graph, knn, range_search
from nearwise._index.filter import Filter
from nearwise._index.graph_index import GraphCalibration, GraphIndex
from nearwise._index.ivf import IvfFlat, IvfLsq, IvfPq
from nearwise._index.ivf_base import Ivf
from nearwise._index.ivf_search import Calibration, RecallAtK, RecallWarning, SearchPlan
from nearwise._index.searchable import Searchable
from nearwise._index.string_ids import StringIds
from nearwise._kmeans import KMeans, assign, train_hierarchical_kmeans, train_kmeans
from nearwise._kmeans_parts import ClusterSums, move_centroids, seed_kmeans, sum_clusters
from nearwise._knn_graph import GraphRound, KnnGraph, build_knn_graph, measure_recall, merge_knn_graphs
from nearwise._machine import info
from nearwise._neighbors import Neighbors, RangeNeighbors, merge_neighbors
from nearwise._plan import JoinReport, Plan, PlannedTask, plan_graph, plan_graph_index, plan_index
from nearwise._product_quantizer import OptimizedProductQuantizer, ProductQuantizer
from nearwise._recall import RecallEstimate
from nearwise._rotation import Rotation
from nearwise._select_k import Selection, select_k
from nearwise._storage import ContainerInfo, SavedNeighbors, SectionInfo, from_bytes, inspect, load, save, verify
from nearwise._suggest import missing_name as _missing_name
from nearwise._vector_file import read_neighbors, read_vectors, write_neighbors, write_vectors

__version__ = _version()

__all__ = [
    "AccessError", "AdditiveQuantizer", "ArgumentError", "BenchReport", "Calibration", "ClusterSums", "ContainerInfo",
    "Context", "Deduplication", "Error", "Exact", "FileError", "Filter", "GraphCalibration", "GraphIndex", "GraphRound",
    "IndexChoice", "IndexEstimate", "Ivf", "IvfFlat", "IvfLsq", "IvfPq", "JoinReport", "KMeans", "KnnGraph",
    "Neighbors", "NotFoundError", "OptimizedProductQuantizer", "OutOfMemoryError", "Plan", "PlannedTask",
    "ProductQuantizer", "RangeNeighbors", "RecallAtK", "RecallEstimate", "RecallWarning", "Rotation", "RowGroups",
    "SavedNeighbors", "SearchPlan", "Searchable", "SectionInfo", "Selection", "SmoothestPath", "StringIds",
    "__version__", "assign", "bench", "build", "build_knn_graph", "choose_index", "dedup", "exact_knn_graph",
    "from_bytes", "info", "inspect", "knn", "load", "measure_recall", "merge_knn_graphs", "merge_neighbors",
    "move_centroids", "plan_dedup", "plan_graph", "plan_graph_index", "plan_index", "plan_threshold_join",
    "range_search", "read_neighbors", "read_vectors", "save", "seed_kmeans", "select_k", "sum_clusters",
    "threshold_join", "train_hierarchical_kmeans", "train_kmeans", "verify", "write_neighbors", "write_vectors",
]

if not TYPE_CHECKING:  # checkers of types see the names that there are

    def __getattr__(name):
        raise _missing_name(name, __all__)


# Users see, catch and unpickle the classes as nearwise.Exact and so on.
for _value in list(globals().values()):
    if isinstance(_value, type) and _value.__module__.startswith("nearwise._") and "_core" not in _value.__module__:
        _value.__module__ = "nearwise"
