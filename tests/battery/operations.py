"""Every operation that takes a memory limit, as calls of random shapes: for memory.py and exhaustion.py."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Given:
    """What the calls of one run work on. The same seed draws the same."""

    nearwise: Any
    rows: np.ndarray  # a mapped file
    folder: Path
    few: np.ndarray  # the first of the rows
    k: int
    lists: int
    degree: int

    @property
    def path(self):
        return self.folder / "rows.npy"

    @property
    def more(self):
        """As many rows as `few`, which follow them."""
        return self.rows[len(self.few) : 2 * len(self.few)]

    @property
    def edges(self):
        """Of a graph index."""
        return max(16, self.degree // 16 * 16)

    @property
    def radius(self):
        """About one squared distance in 100 is smaller."""
        dim = self.rows.shape[1]
        return 2 * dim - 4.4 * (2 * dim) ** 0.5

    def limited(self, limit):
        return self.nearwise.Context(memory_limit=limit)

    def saved(self, name, make):
        """What `make` returns, from a file: made by the first process of a run that asks for it, without a limit."""
        path = self.folder / f"{name}.nw"
        if not path.exists():
            make().save(path)
        return self.nearwise.load(path)

    def ivf(self, kind):
        """A saved index of the first rows."""
        options = {
            "IvfFlat": {},
            "IvfPq": {"code_bytes": 8},
            "IvfLsq": {"code_bytes": 4, "rounds": 1, "train_iterations": 2, "encode_iterations": 4},
        }[kind]
        build = getattr(self.nearwise, kind).build
        return self.saved(kind, lambda: build(self.few, lists=16, iterations=2, **options))

    def graph_index(self):
        return self.saved("graph_index", lambda: self.nearwise.GraphIndex.build(self.few, degree=self.edges))

    def graph(self, name, rows):
        return self.saved(name, lambda: self.nearwise.build_knn_graph(rows, self.degree))

    def even(self):
        """A filter, as a mask."""
        return np.arange(len(self.rows)) % 2 == 0


def given(nearwise, rows, folder, draw):
    few = rows[: max(300, len(rows) // draw.choice((4, 16, 64)))]
    return Given(
        nearwise, rows, folder, few, draw.choice((1, 10, 100)), draw.choice((16, 64)), draw.choice((8, 16, 32))
    )


def planned(name, of=lambda given: {}):
    """A call that plans and runs."""

    def call(given, limit):
        with tempfile.TemporaryDirectory(dir=given.folder) as work:
            plan = getattr(given.nearwise, name)
            plan(given.path, work, Path(work) / "output.nw", memory_limit=limit, **of(given)).run()

    return call


def searched(kind, of):
    """A call that builds an index and searches it within one limit."""

    def call(given, limit):
        index = getattr(given.nearwise, kind).build(given.rows, memory_limit=limit, **of(given))
        return index.search(given.few, given.k)

    return call


# name -> call(given, memory_limit)
CALLS = {
    "knn": lambda given, limit: given.nearwise.knn(given.few, given.rows, given.k, memory_limit=limit),
    "knn of one query": lambda given, limit: given.nearwise.knn(given.rows[0], given.rows, given.k, memory_limit=limit),
    "Exact": lambda given, limit: given.nearwise.Exact(given.rows, memory_limit=limit).search(given.few, given.k),
    "range_search": lambda given, limit: given.nearwise.range_search(
        given.few[:300], given.rows, 0.1 * given.rows.shape[1], memory_limit=limit
    ),
    "range_search of many answers": lambda given, limit: given.nearwise.range_search(
        given.few[:300], given.rows, given.radius, memory_limit=limit
    ),
    "threshold_join": lambda given, limit: given.nearwise.threshold_join(
        given.few, radius=0.1 * given.rows.shape[1], memory_limit=limit
    ),
    "threshold_join of many pairs": lambda given, limit: given.nearwise.threshold_join(
        given.few, radius=given.radius, memory_limit=limit
    ),
    "dedup": lambda given, limit: given.nearwise.dedup(given.few, similarity=0.999, memory_limit=limit),
    "exact_knn_graph": lambda given, limit: given.nearwise.exact_knn_graph(given.few, given.degree, memory_limit=limit),
    "select_k": lambda given, limit: given.nearwise.select_k(given.rows, min(given.k, 32), memory_limit=limit),
    "select_k of wide rows": lambda given, limit: given.nearwise.select_k(
        given.rows.reshape(50, -1), given.k, memory_limit=limit
    ),
    "train_kmeans": lambda given, limit: given.nearwise.train_kmeans(
        given.rows, given.lists, iterations=3, memory_limit=limit
    ),
    "train_kmeans in mini-batches": lambda given, limit: given.nearwise.train_kmeans(
        given.rows, given.lists, batch_size=2000, iterations=3, memory_limit=limit
    ),
    "train_hierarchical_kmeans": lambda given, limit: given.nearwise.train_hierarchical_kmeans(
        given.rows, 200, iterations=3, memory_limit=limit
    ),
    "seed_kmeans": lambda given, limit: given.nearwise.seed_kmeans(given.rows, given.lists, memory_limit=limit),
    "sum_clusters": lambda given, limit: given.nearwise.sum_clusters(
        given.rows, np.array(given.rows[: given.lists]), memory_limit=limit
    ),
    "assign": lambda given, limit: given.nearwise.assign(given.rows, np.array(given.rows[:200]), memory_limit=limit),
    "Rotation.pca": lambda given, limit: given.nearwise.Rotation.pca(given.rows, 8, memory_limit=limit),
    "ProductQuantizer": lambda given, limit: given.nearwise.ProductQuantizer.train(
        given.rows, parts=8, iterations=3, memory_limit=limit
    ).encode(given.rows),
    "OptimizedProductQuantizer": lambda given, limit: given.nearwise.OptimizedProductQuantizer.train(
        given.few, parts=8, bits=4, iterations=3, rounds=2, memory_limit=limit
    ).encode(given.few),
    "AdditiveQuantizer": lambda given, limit: given.nearwise.AdditiveQuantizer.train(
        given.few, codebooks=4, rounds=1, memory_limit=limit
    ).encode(given.few),
    "IvfFlat.build": lambda given, limit: given.nearwise.IvfFlat.build(
        given.rows, lists=given.lists, iterations=2, memory_limit=limit
    ),
    "IvfPq": searched("IvfPq", lambda given: {"lists": given.lists, "code_bytes": 8, "iterations": 2}),
    "IvfPq of vectors in half precision": searched(
        "IvfPq", lambda given: {"lists": given.lists, "code_bytes": 8, "iterations": 2, "vectors": "f16"}
    ),
    "IvfLsq.build": lambda given, limit: given.nearwise.IvfLsq.build(
        given.few, lists=16, code_bytes=4, rounds=1, iterations=2, memory_limit=limit
    ),
    "build_knn_graph": lambda given, limit: given.nearwise.build_knn_graph(
        given.rows, given.degree, memory_limit=limit
    ),
    "GraphIndex": searched("GraphIndex", lambda given: {"degree": given.edges}),
    "plan_graph": planned("plan_graph", lambda given: {"degree": given.degree}),
    "plan_graph by pairs": planned("plan_graph", lambda given: {"degree": given.degree, "method": "pairs"}),
    "plan_index": planned("plan_index", lambda given: {"lists": given.lists}),
    "plan_graph_index": planned("plan_graph_index", lambda given: {"degree": given.edges}),
    "plan_threshold_join": planned("plan_threshold_join", lambda given: {"radius": 0.1 * given.rows.shape[1]}),
    "plan_dedup": planned("plan_dedup", lambda given: {"radius": 0.1 * given.rows.shape[1]}),
    "plan_dedup by partitions": planned(
        "plan_dedup", lambda given: {"radius": 0.01 * given.rows.shape[1], "method": "partitions"}
    ),
}

# Those that work on something made before: name -> function(given), which returns call(memory_limit).
PREPARED: dict[str, Callable[[Given], Callable[[Any], object]]] = {}


def prepared(name):
    def added(prepare):
        PREPARED[name] = prepare
        return prepare

    return added


@prepared("knn under a filter")
def knn_under_a_filter(given):
    allowed = given.even()
    return lambda limit: given.nearwise.knn(given.few, given.rows, given.k, filter=allowed, memory_limit=limit)


@prepared("knn without some ids of each query")
def knn_without_ids(given):
    denied = np.random.default_rng(1).integers(0, len(given.rows), (len(given.few), 8))
    return lambda limit: given.nearwise.knn(given.few, given.rows, given.k, exclude=denied, memory_limit=limit)


@prepared("range_search under a filter")
def range_search_under_a_filter(given):
    allowed, radius = given.nearwise.Filter(given.even()), 0.1 * given.rows.shape[1]
    return lambda limit: given.nearwise.range_search(
        given.few[:300], given.rows, radius, filter=allowed, memory_limit=limit
    )


@prepared("merge_neighbors")
def merge_neighbors(given):
    half = len(given.rows) // 2
    parts = [given.nearwise.knn(given.few, part, given.k) for part in (given.rows[:half], given.rows[half : 2 * half])]
    parts[1] = (parts[1].ids + half, parts[1].distances)
    return lambda limit: given.nearwise.merge_neighbors(parts, given.k, context=given.limited(limit))


@prepared("ProductQuantizer.decode")
def decode(given):
    quantizer = given.saved("quantizer", lambda: given.nearwise.ProductQuantizer.train(given.few, parts=8, bits=4))
    codes = quantizer.encode(given.rows)
    return lambda limit: quantizer.decode(codes, context=given.limited(limit))


@prepared("AdditiveQuantizer.search")
def additive_search(given):
    train = given.nearwise.AdditiveQuantizer.train
    quantizer = given.saved("quantizer", lambda: train(given.few, codebooks=4, rounds=1))
    codes = quantizer.encode(given.more)
    return lambda limit: quantizer.search(given.few, codes, min(given.k, len(codes)), context=given.limited(limit))


def adding(kind):
    def prepare(given):
        index = given.ivf(kind)
        return lambda limit: index.add(given.more, context=given.limited(limit))

    return prepare


for _kind in ("IvfFlat", "IvfPq", "IvfLsq"):
    PREPARED[f"{_kind}.add"] = adding(_kind)


@prepared("IvfPq.add with ids, replacing")
def replacing(given):
    index = given.ivf("IvfPq")
    ids = np.arange(len(given.few) // 2, len(given.few) // 2 + len(given.more))
    return lambda limit: index.add(given.more, ids, on_duplicate="replace", context=given.limited(limit))


@prepared("IvfFlat.update")
def ivf_update(given):
    index, ids = given.ivf("IvfFlat"), np.arange(len(given.few) // 2)
    return lambda limit: index.update(ids, given.more[: len(ids)], context=given.limited(limit))


@prepared("IvfFlat.remove")
def ivf_remove(given):
    index, ids = given.ivf("IvfFlat"), np.arange(0, len(given.few), 3)
    return lambda limit: index.remove(ids, context=given.limited(limit))


@prepared("Ivf.merge")
def ivf_merge(given):
    index = given.ivf("IvfPq")

    def other():
        made = index.empty_copy()
        made.add(given.more, np.arange(10**6, 10**6 + len(given.more)))
        return made

    others = given.saved("other", other)
    return lambda limit: index.merge(others, context=given.limited(limit))


@prepared("IvfPq.calibrate")
def ivf_calibrate(given):
    index = given.ivf("IvfPq")
    return lambda limit: index.calibrate(context=given.limited(limit))


@prepared("IvfFlat.search")
def ivf_search(given):
    index = given.ivf("IvfFlat")
    return lambda limit: index.search(given.more, given.k, context=given.limited(limit))


@prepared("IvfPq.search under a filter")
def ivf_search_under_a_filter(given):
    index, allowed = given.ivf("IvfPq"), given.even()
    return lambda limit: index.search(given.more, given.k, filter=allowed, context=given.limited(limit))


@prepared("IvfPq.search re-ranked by other vectors")
def ivf_rerank(given):
    index = given.ivf("IvfPq")
    return lambda limit: index.search(given.more, given.k, rerank=given.few, context=given.limited(limit))


@prepared("Ivf.range_search")
def ivf_range_search(given):
    index = given.ivf("IvfFlat")
    return lambda limit: index.range_search(given.more, given.radius, context=given.limited(limit))


@prepared("KnnGraph.with_rows")
def with_rows(given):
    graph = given.graph("graph", given.few[: len(given.few) * 2 // 3])
    return lambda limit: graph.with_rows(given.few, context=given.limited(limit))


@prepared("KnnGraph.without_rows")
def without_rows(given):
    graph, ids = given.graph("graph", given.few), np.arange(0, len(given.few), 7)
    return lambda limit: graph.without_rows(given.few, ids, context=given.limited(limit))


@prepared("merge_knn_graphs")
def merge_knn_graphs(given):
    half = len(given.few) // 2
    left, right = given.graph("left", given.few[:half]), given.graph("right", given.few[half:])
    return lambda limit: given.nearwise.merge_knn_graphs(given.few, left, right, memory_limit=limit)


@prepared("measure_recall")
def measure_recall(given):
    graph = given.graph("graph", given.few)
    return lambda limit: given.nearwise.measure_recall(given.few, graph, memory_limit=limit)


@prepared("GraphIndex.from_knn_graph")
def from_knn_graph(given):
    graph = given.saved("graph", lambda: given.nearwise.build_knn_graph(given.few, 32))
    make = given.nearwise.GraphIndex.from_knn_graph
    return lambda limit: make(graph, given.few, degree=given.edges, memory_limit=limit)


@prepared("GraphIndex.add")
def graph_index_add(given):
    index = given.graph_index()
    return lambda limit: index.add(given.more[: len(given.more) // 4], context=given.limited(limit))


@prepared("GraphIndex.add, rebuilding")
def graph_index_rebuild(given):
    index, many = given.graph_index(), given.rows[len(given.few) : 3 * len(given.few)]
    return lambda limit: index.add(many, context=given.limited(limit))


@prepared("GraphIndex.update")
def graph_index_update(given):
    index, ids = given.graph_index(), np.arange(len(given.few) // 8)
    return lambda limit: index.update(ids, given.more[: len(ids)], context=given.limited(limit))


@prepared("GraphIndex.compact")
def graph_index_compact(given):
    def removed():
        index = given.graph_index()
        index.remove(np.arange(0, len(given.few), 6))
        return index

    index = given.saved("removed", removed)
    return lambda limit: index.compact(context=given.limited(limit))


@prepared("GraphIndex.search under a filter")
def graph_index_search(given):
    index, allowed = given.graph_index(), given.even()
    return lambda limit: index.search(given.more, given.k, filter=allowed, context=given.limited(limit))


@prepared("GraphIndex.calibrate")
def graph_index_calibrate(given):
    index = given.graph_index()
    return lambda limit: index.calibrate(context=given.limited(limit))


NAMES = (*CALLS, *PREPARED)
# Operations that consist of two calls: the second may need more than the first knew.
TWO_CALLS = dict.fromkeys(
    (
        *("Exact", "GraphIndex", "IvfPq", "IvfPq of vectors in half precision"),
        *("ProductQuantizer", "OptimizedProductQuantizer", "AdditiveQuantizer"),
    ),
    2,
)
# Those whose results have a size that is known at the end only: a refusal need not name a limit.
UNKNOWN_RESULTS = ("range_search of many answers", "threshold_join of many pairs", "Ivf.range_search")


def call_of(name, given):
    """call(memory_limit), after what comes before it."""
    if name in CALLS:
        return lambda limit: CALLS[name](given, limit)
    return PREPARED[name](given)


def sufficient(error):
    """The limit in bytes that a refusal names; None: it names none."""
    named = re.search(r"([\d.]+) (\w+) would suffice", str(error))
    return named and int(float(named[1]) * {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[named[2]])
