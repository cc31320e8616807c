"""A memory limit that is too small is refused before work begins, with a limit that suffices."""

import copy
import functools
import os
import re
import tempfile

import nearwise
import numpy as np
import pytest

ROWS = np.random.default_rng(5).standard_normal((3000, 24), dtype=np.float32)
FEW = ROWS[:400]


def limited(limit):
    return nearwise.Context(memory_limit=limit)


@functools.cache
def built(kind):
    return {
        "IvfFlat": lambda: nearwise.IvfFlat.build(ROWS, lists=20),
        "IvfPq": lambda: nearwise.IvfPq.build(ROWS, lists=20, code_bytes=8),
        "IvfPq, codes only": lambda: nearwise.IvfPq.build(ROWS, lists=20, code_bytes=8, vectors="none"),
        "IvfLsq": lambda: nearwise.IvfLsq.build(ROWS, lists=20, code_bytes=2, rounds=1),
        "GraphIndex": lambda: nearwise.GraphIndex.build(ROWS, degree=16),
        "KnnGraph": lambda: nearwise.build_knn_graph(ROWS, 5),
        "KnnGraph, first half": lambda: nearwise.build_knn_graph(ROWS[:1500], 5),
        "KnnGraph, second half": lambda: nearwise.build_knn_graph(ROWS[1500:], 5),
        "ProductQuantizer": lambda: nearwise.ProductQuantizer.train(ROWS, parts=4, bits=4),
        "OptimizedProductQuantizer": lambda: nearwise.OptimizedProductQuantizer.train(ROWS, parts=4, bits=4, rounds=1),
        "AdditiveQuantizer": lambda: nearwise.AdditiveQuantizer.train(ROWS, codebooks=2, rounds=1),
    }[kind]()


def halves():
    found = nearwise.knn(FEW, ROWS[:1500], 10)
    more = nearwise.knn(FEW, ROWS[1500:], 10)
    return [found, (more.ids + 1500, more.distances)]


def planned(plan, limit, **options):
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows.fbin")
        nearwise.write_vectors(rows, ROWS)
        output = os.path.join(folder, "output.nw")
        plan(rows, os.path.join(folder, "work"), output, memory_limit=limit, **options).run()


def encode(quantizer, context):
    quantizer.encode(ROWS, context=context)


def decode(quantizer, context):
    quantizer.decode(quantizer.encode(ROWS), context=context)


def error(quantizer, context):
    quantizer.error(ROWS, context=context)


def tables(quantizer, context):
    quantizer.tables(FEW, context=context)


def others(kind):
    """Vectors with other ids than those of the index."""
    made = built(kind).empty_copy()
    made.add(FEW, np.arange(10_000, 10_400))
    return made


CALLS = {
    "knn": lambda limit: nearwise.knn(FEW, ROWS, 10, memory_limit=limit),
    "knn, one query": lambda limit: nearwise.knn(FEW[:1], ROWS, 10, memory_limit=limit),
    "Exact": lambda limit: nearwise.Exact(ROWS, memory_limit=limit),
    "range_search": lambda limit: nearwise.range_search(FEW, ROWS, 0.5, memory_limit=limit),
    "threshold_join": lambda limit: nearwise.threshold_join(ROWS, radius=0.5, memory_limit=limit),
    "dedup": lambda limit: nearwise.dedup(ROWS, similarity=0.99, memory_limit=limit),
    "exact_knn_graph": lambda limit: nearwise.exact_knn_graph(ROWS, 5, memory_limit=limit),
    "select_k": lambda limit: nearwise.select_k(ROWS, 5, memory_limit=limit),
    "train_kmeans": lambda limit: nearwise.train_kmeans(ROWS, 20, memory_limit=limit),
    "train_kmeans, mini-batches": lambda limit: nearwise.train_kmeans(ROWS, 20, batch_size=500, memory_limit=limit),
    "train_hierarchical_kmeans": lambda limit: nearwise.train_hierarchical_kmeans(ROWS, 40, memory_limit=limit),
    "assign": lambda limit: nearwise.assign(ROWS, FEW, memory_limit=limit),
    "Rotation.pca": lambda limit: nearwise.Rotation.pca(ROWS, 8, memory_limit=limit),
    "ProductQuantizer": lambda limit: nearwise.ProductQuantizer.train(ROWS, parts=4, bits=4, memory_limit=limit),
    "OptimizedProductQuantizer": lambda limit: nearwise.OptimizedProductQuantizer.train(
        ROWS, parts=4, bits=4, rounds=1, memory_limit=limit
    ),
    "AdditiveQuantizer": lambda limit: nearwise.AdditiveQuantizer.train(
        ROWS, codebooks=2, rounds=1, memory_limit=limit
    ),
    "IvfFlat.train": lambda limit: nearwise.IvfFlat.train(ROWS, lists=20, memory_limit=limit),
    "IvfPq.train": lambda limit: nearwise.IvfPq.train(ROWS, lists=20, code_bytes=4, bits=4, memory_limit=limit),
    "IvfLsq.train": lambda limit: nearwise.IvfLsq.train(ROWS, lists=20, code_bytes=2, rounds=1, memory_limit=limit),
    "IvfFlat.build": lambda limit: nearwise.IvfFlat.build(ROWS, lists=20, memory_limit=limit),
    "IvfPq.build": lambda limit: nearwise.IvfPq.build(ROWS, lists=20, code_bytes=8, memory_limit=limit),
    "IvfLsq.build": lambda limit: nearwise.IvfLsq.build(ROWS, lists=20, code_bytes=2, rounds=1, memory_limit=limit),
    "build_knn_graph": lambda limit: nearwise.build_knn_graph(ROWS, 5, memory_limit=limit),
    "GraphIndex.build": lambda limit: nearwise.GraphIndex.build(ROWS, degree=16, memory_limit=limit),
    "plan_graph": lambda limit: planned(nearwise.plan_graph, limit, degree=5),
    "plan_graph, pairs": lambda limit: planned(nearwise.plan_graph, limit, degree=5, method="pairs"),
    "plan_index": lambda limit: planned(nearwise.plan_index, limit, lists=20, code_bytes=4, bits=4),
    "plan_threshold_join": lambda limit: planned(nearwise.plan_threshold_join, limit, radius=0.5),
    "plan_threshold_join, partitions": lambda limit: planned(
        nearwise.plan_threshold_join, limit, radius=0.5, method="partitions"
    ),
    "plan_dedup": lambda limit: planned(nearwise.plan_dedup, limit, similarity=0.99),
    "plan_graph_index": lambda limit: planned(nearwise.plan_graph_index, limit, degree=16),
    "merge_neighbors": lambda limit: nearwise.merge_neighbors(halves(), 10, context=limited(limit)),
    "seed_kmeans": lambda limit: nearwise.seed_kmeans(ROWS, 20, memory_limit=limit),
    "sum_clusters": lambda limit: nearwise.sum_clusters(ROWS, FEW[:20], memory_limit=limit),
    "KnnGraph.with_rows": lambda limit: built("KnnGraph, first half").with_rows(ROWS, context=limited(limit)),
    "KnnGraph.without_rows": lambda limit: built("KnnGraph").without_rows(
        ROWS, np.arange(0, 3000, 7), context=limited(limit)
    ),
    "merge_knn_graphs": lambda limit: nearwise.merge_knn_graphs(
        ROWS, built("KnnGraph, first half"), built("KnnGraph, second half"), memory_limit=limit
    ),
} | {
    f"{kind}.{method.__name__}": functools.partial(
        lambda kind, method, limit: method(built(kind), limited(limit)), kind, method
    )
    for kind in ("ProductQuantizer", "OptimizedProductQuantizer", "AdditiveQuantizer")
    for method in (encode, decode, error, tables)
    if (kind, method) != ("AdditiveQuantizer", tables)
}

# Of indexes: name -> (kind, what comes before, call).
METHODS = {
    "IvfFlat.add": ("IvfFlat", None, lambda index, context: index.add(FEW, context=context)),
    "IvfPq.add": ("IvfPq", None, lambda index, context: index.add(FEW, context=context)),
    "IvfLsq.add": ("IvfLsq", None, lambda index, context: index.add(FEW, context=context)),
    "Ivf.add, replacing": ("IvfPq", None, lambda index, context: index.add(
        FEW, np.arange(2900, 3300), on_duplicate="replace", context=context)),
    "Ivf.add, keeping": ("IvfFlat", None, lambda index, context: index.add(
        FEW, np.arange(2900, 3300), on_duplicate="keep", context=context)),
    "Ivf.update": ("IvfPq", None, lambda index, context: index.update(np.arange(400), FEW, context=context)),
    "IvfFlat.remove": ("IvfFlat", None, lambda index, context: index.remove(np.arange(0, 3000, 3), context=context)),
    "IvfPq.remove": ("IvfPq", None, lambda index, context: index.remove(np.arange(900), context=context)),
    "Ivf.merge": ("IvfPq", None, lambda index, context: index.merge(others("IvfPq"), context=context)),
    "IvfFlat.calibrate": ("IvfFlat", None, lambda index, context: index.calibrate(context=context)),
    "IvfPq.calibrate": ("IvfPq", None, lambda index, context: index.calibrate(context=context)),
    "Ivf.calibrate, rows": ("IvfPq, codes only", None, lambda index, context: index.calibrate(ROWS, context=context)),
    "IvfFlat.search": ("IvfFlat", None, lambda index, context: index.search(FEW, 10, context=context)),
    "IvfPq.search": ("IvfPq", None, lambda index, context: index.search(FEW, 10, context=context)),
    "Ivf.search, rerank": ("IvfPq, codes only", None, lambda index, context: index.search(
        FEW, 10, rerank=ROWS, context=context)),
    "GraphIndex.add": ("GraphIndex", None, lambda index, context: index.add(FEW, context=context)),
    "GraphIndex.add, in place": ("GraphIndex", lambda index: index.add(ROWS[:200]), lambda index, context: index.add(
        FEW[:100], context=context)),
    "GraphIndex.add, rebuilding": ("GraphIndex", None, lambda index, context: index.add(ROWS, context=context)),
    "GraphIndex.add, compacting": ("GraphIndex", None, lambda index, context: index.add(
        ROWS[:1200], np.arange(1200), on_duplicate="replace", context=context)),
    "GraphIndex.update": ("GraphIndex", None, lambda index, context: index.update(
        np.arange(400), FEW, context=context)),
    "GraphIndex.compact": ("GraphIndex", lambda index: index.remove(np.arange(500)),
                           lambda index, context: index.compact(context=context)),
    "GraphIndex.calibrate": ("GraphIndex", None, lambda index, context: index.calibrate(context=context)),
    "GraphIndex.search": ("GraphIndex", None, lambda index, context: index.search(FEW, 10, context=context)),
}  # fmt: skip


def refused(call):
    """The limit that a refusal names."""
    with pytest.raises(nearwise.Error) as refusal:
        call()
    assert refusal.value.code == "out_of_memory"
    named = re.search(r"the memory limit of .* is too small, (.*) would suffice", str(refusal.value))
    assert named, str(refusal.value)
    return named.group(1)


@pytest.mark.filterwarnings("ignore:target recall")
@pytest.mark.parametrize("name", CALLS)
def test_the_limit_that_a_refusal_names_suffices(name):
    CALLS[name](refused(lambda: CALLS[name](1)))


@pytest.mark.filterwarnings("ignore:target recall")
@pytest.mark.parametrize("name", METHODS)
def test_a_method_that_is_refused_changes_nothing(name):
    kind, prepare, method = METHODS[name]
    index = copy.copy(built(kind))
    if prepare is not None:
        prepare(index)
    before = index.to_bytes()
    named = refused(lambda: method(index, limited(1)))
    assert index.to_bytes() == before
    method(index, limited(named))


# An index and the call count on one limit. 128 KiB hold what is loaded, but not a graph with room for more.
# What threads of a search keep for the next one is not known before.
@pytest.mark.filterwarnings("ignore:target recall")
@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"GraphIndex.add, in place", "GraphIndex.search"}))
def test_the_limit_of_an_index_that_a_refusal_names_suffices(name):
    kind, prepare, method = METHODS[name]
    saved = built(kind).to_bytes()

    def loaded(limit):
        index = nearwise.from_bytes(saved, memory_limit=limit)
        if prepare is not None:
            prepare(index)
        return index

    index = loaded("128KiB")
    before = index.to_bytes()
    named = refused(lambda: method(index, None))
    assert index.to_bytes() == before
    method(loaded(named), None)


# What the call itself needs is not known before the copies are made.
@pytest.mark.parametrize("copies, call", {
    "base: a converted copy of float64 .* the copy alone needs": lambda limit: nearwise.knn(
        FEW, ROWS.astype(np.float64), 10, memory_limit=limit
    ),
    "knn: the converted copies .* they alone need": lambda limit: nearwise.knn(
        FEW.astype(np.float64), ROWS.astype(np.float64), 10, memory_limit=limit
    ),
}.items())  # fmt: skip
def test_a_limit_below_converted_copies_names_one_that_holds_them(copies, call):
    with pytest.raises(nearwise.Error) as refusal:
        call(ROWS.nbytes + (0 if copies.startswith("base") else 1))
    assert refusal.value.code == "out_of_memory"
    named = re.search(f"{copies} at least ([0-9]+ B)", str(refusal.value))
    assert named, str(refusal.value)
    # Then the call is refused, no longer the copies.
    with pytest.raises(nearwise.Error, match="would suffice") as refusal:
        call(named.group(1))
    assert "converted cop" not in str(refusal.value)
