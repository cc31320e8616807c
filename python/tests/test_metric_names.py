"""Names of metrics in other libraries are accepted; results have our own."""

import typing

import nearwise
import numpy as np
import pytest
from checks import callables_with, refuses
from nearwise import _kmeans, _neighbors, _options, _quantizer

ALIASES = {"l2": "sqeuclidean", "l2sq": "sqeuclidean", "ip": "inner_product", "dot": "inner_product", "cos": "cosine"}
ROWS = np.random.default_rng(4).standard_normal((300, 8), dtype=np.float32)
FOUND = nearwise.knn(ROWS[:5], ROWS, 3)
PQ = nearwise.ProductQuantizer.train(ROWS, parts=2, bits=4, iterations=1)
LSQ = nearwise.AdditiveQuantizer.train(ROWS, codebooks=1, rounds=1, iterations=1)

# Arrays that depend on the metric.
CALLS = {
    "knn": lambda metric: nearwise.knn(ROWS[:5], ROWS, 3, metric=metric),
    "exact_knn_graph": lambda metric: nearwise.exact_knn_graph(ROWS, 3, metric=metric),
    "range_search": lambda metric: nearwise.range_search(ROWS[:5], ROWS, 0.9, metric=metric),
    "threshold_join": lambda metric: nearwise.threshold_join(ROWS, radius=0.9, metric=metric),
    "dedup": lambda metric: nearwise.dedup(ROWS, radius=0.9, metric=metric),
    "Exact": lambda metric: nearwise.Exact(ROWS, metric=metric).search(ROWS[:5], 3),
    "build": lambda metric: nearwise.build(ROWS, metric=metric).search(ROWS[:5], 3),
    "choose_index": lambda metric: [nearwise.choose_index(ROWS, metric=metric).kind],
    "bench": lambda metric: [
        nearwise.bench(ROWS, kinds="exact", against=[], target_recalls=[0.9], repeat=1, metric=metric).fields["metric"]
    ],
    "GraphIndex.build": lambda metric: nearwise.GraphIndex.build(ROWS, degree=16, metric=metric).search(ROWS[:5], 3),
    "assign": lambda metric: nearwise.assign(ROWS, ROWS[:4], metric=metric),
    "train_kmeans": lambda metric: nearwise.train_kmeans(ROWS, 4, metric=metric),
    "train_hierarchical_kmeans": lambda metric: nearwise.train_hierarchical_kmeans(ROWS, 9, metric=metric),
    "seed_kmeans": lambda metric: [nearwise.seed_kmeans(ROWS, 4, metric=metric)],
    "sum_clusters": lambda metric: nearwise.sum_clusters(ROWS, ROWS[:4], metric=metric),
    "move_centroids": lambda metric: [
        nearwise.move_centroids(nearwise.sum_clusters(ROWS, ROWS[:4]), ROWS[:4], metric=metric)
    ],
    "build_knn_graph": lambda metric: nearwise.build_knn_graph(ROWS, 3, metric=metric),
    "measure_recall": lambda metric: nearwise.measure_recall(ROWS, nearwise.build_knn_graph(ROWS, 3), metric=metric),
    "merge_neighbors": lambda metric: nearwise.merge_neighbors([FOUND, (FOUND.ids + 900, -FOUND.distances)], 3, metric=metric),
    "IvfFlat.build": lambda metric: nearwise.IvfFlat.build(ROWS, lists=4, metric=metric).search(ROWS[:5], 3),
    "IvfFlat.train": lambda metric: [nearwise.IvfFlat.train(ROWS, lists=4, metric=metric).centroids],
    "IvfPq.build": lambda metric: nearwise.IvfPq.build(ROWS, lists=4, bits=4, metric=metric).search(ROWS[:5], 3),
    "IvfPq.train": lambda metric: [nearwise.IvfPq.train(ROWS, lists=4, bits=4, metric=metric).centroids],
    "IvfLsq.build": lambda metric: nearwise.IvfLsq.build(ROWS, lists=4, code_bytes=1, rounds=1, metric=metric).search(
        ROWS[:5], 3
    ),
    "IvfLsq.train": lambda metric: [
        nearwise.IvfLsq.train(ROWS, lists=4, code_bytes=1, rounds=1, metric=metric).centroids
    ],
    "ProductQuantizer.tables": lambda metric: PQ.tables(ROWS[:5], metric),
    "OptimizedProductQuantizer.tables": lambda metric: nearwise.OptimizedProductQuantizer(
        nearwise.Rotation.from_matrix(np.eye(8)), PQ
    ).tables(ROWS[:5], metric=metric),
    "AdditiveQuantizer.search": lambda metric: LSQ.search(ROWS[:5], LSQ.encode(ROWS), 3, metric=metric),
}
FILES = {"save", "plan_graph", "plan_index", "plan_graph_index", "plan_threshold_join", "plan_dedup"}
WITHOUT_COSINE = {"ProductQuantizer.tables", "OptimizedProductQuantizer.tables", "AdditiveQuantizer.search"}


@pytest.mark.parametrize("name", CALLS)
def test_aliases(name):
    for alias, own in ALIASES.items():
        if own == "cosine" and name in WITHOUT_COSINE:
            continue
        for one, other in zip(CALLS[name](alias), CALLS[name](own), strict=True):
            np.testing.assert_array_equal(one, other)


def test_every_callable_with_a_metric_is_tested():
    assert callables_with("metric") == {*CALLS, *FILES}


def test_results_have_our_names(tmp_path):
    for alias, own in ALIASES.items():
        prepared, graph = nearwise.Exact(ROWS, metric=alias), nearwise.build_knn_graph(ROWS, 3, metric=alias)
        index = nearwise.IvfFlat.train(ROWS, lists=4, metric=alias)
        for made in (prepared, graph, index):
            assert made.metric == own and own in repr(made)
        nearwise.save(tmp_path / "found.nw", FOUND, metric=alias)
        assert nearwise.load(tmp_path / "found.nw").metric == own


@pytest.mark.parametrize("plan", [nearwise.plan_graph, nearwise.plan_index, nearwise.plan_graph_index])
def test_plans(plan, tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    made = plan(tmp_path / "rows.fbin", tmp_path / "work", tmp_path / "out.nw", metric="ip", memory_limit="64MiB")
    made.run()
    assert made.load().metric == "inner_product"
    # The same plan under its other name.
    again = plan(
        tmp_path / "rows.fbin", tmp_path / "work", tmp_path / "out.nw", metric="inner_product", memory_limit="64MiB"
    )
    assert again.is_done(again.tasks[-1].name)


@pytest.mark.parametrize("plan", [nearwise.plan_threshold_join, nearwise.plan_dedup])
def test_plans_of_joins(plan, tmp_path):
    nearwise.write_vectors(tmp_path / "rows.fbin", ROWS)
    for alias, own in ALIASES.items():
        found = []
        for metric in (alias, own):
            made = plan(
                tmp_path / "rows.fbin", tmp_path / own, tmp_path / f"{own}.nw", metric=metric, radius=0.9,
                memory_limit="64MiB",
            )  # fmt: skip
            found.append(made)
            made.run()
        assert found[1].is_done("join-0000-0000")
        assert nearwise.inspect(tmp_path / f"{own}.nw").metadata["metric"] == own


def test_l2_is_squared_as_in_faiss_and_hnswlib():
    assert nearwise.knn([[0.0, 0.0]], [[3.0, 4.0]], 1, metric="l2").distances.tolist() == [[25]]


def test_ip_is_the_product_as_in_faiss():
    assert nearwise.knn([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]], 2, metric="ip").distances.tolist() == [[11, 2]]


def test_scikit_learn_means_something_else_by_l2():
    transformers = pytest.importorskip("nearwise.sklearn")
    matrix = transformers.KNeighborsTransformer(n_neighbors=1, metric="l2").fit_transform([[0.0, 0.0], [3.0, 4.0]])
    assert matrix.max() == 5


@pytest.mark.parametrize("name", ["L2", "l1", "", "angle", "squared", "innerproduct"])
def test_other_names_are_refused(name):
    refuses(ValueError, "metric: expected one of sqeuclidean, euclidean, inner_product, cosine", CALLS["knn"], name)


def test_angular_is_ambiguous():
    words = "metric: 'angular' is a different distance in every library; 'cosine' is 1 - cos and has the same order"
    for name in ("knn", "IvfFlat.train", "move_centroids"):
        refuses(ValueError, words, CALLS[name], "angular")
    refuses(TypeError, "metric: expected a string, got 2", CALLS["knn"], 2)


def test_types_have_the_names():
    """Type checkers accept what is accepted, and know that results have our names."""

    def names(kind):
        return {name for part in typing.get_args(kind) for name in (typing.get_args(part) or (part,))}

    assert ALIASES == _options.METRIC_ALIASES
    assert names(_neighbors.MetricArgument) == {*names(_neighbors.Metric), *ALIASES}
    assert names(_kmeans.KMeansMetricArgument) == {*names(_kmeans.KMeansMetric), *ALIASES}
    assert names(_quantizer.TableMetricArgument) == {*names(_quantizer.TableMetric), *ALIASES} - {"cos"}
