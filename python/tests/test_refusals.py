"""A memory limit that is too small is refused before work begins, with a limit that suffices."""

import os
import re
import tempfile

import nearwise
import numpy as np
import pytest

ROWS = np.random.default_rng(5).standard_normal((3000, 24), dtype=np.float32)
FEW = ROWS[:400]


def planned(plan, limit, **options):
    with tempfile.TemporaryDirectory() as folder:
        rows = os.path.join(folder, "rows.fbin")
        nearwise.write_vectors(rows, ROWS)
        output = os.path.join(folder, "output.nw")
        plan(rows, os.path.join(folder, "work"), output, memory_limit=limit, **options).run()


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
    "plan_dedup": lambda limit: planned(nearwise.plan_dedup, limit, similarity=0.99),
    "plan_graph_index": lambda limit: planned(nearwise.plan_graph_index, limit, degree=16),
}


@pytest.mark.filterwarnings("ignore:target recall")
@pytest.mark.parametrize("name", CALLS)
def test_the_limit_that_a_refusal_names_suffices(name):
    with pytest.raises(nearwise.Error) as refusal:
        CALLS[name](1)
    assert refusal.value.code == "out_of_memory"
    named = re.search(r"limit of 1 B is too small, (.*) would suffice", str(refusal.value))
    assert named, str(refusal.value)
    CALLS[name](named.group(1))
