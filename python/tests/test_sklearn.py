"""nearwise.sklearn.KNeighborsTransformer: scikit-learn's own, with another engine."""

import nearwise
import numpy as np
import pytest
from checks import refuses
from nearwise.sklearn import KNeighborsTransformer
from sklearn import neighbors
from sklearn.base import clone
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(240, n_features=6, centers=4, cluster_std=1.0, random_state=2)


@parametrize_with_checks([KNeighborsTransformer(n_neighbors=3, n_jobs=1)])
def test_is_an_estimator_by_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("metric", ["euclidean", "l2", "minkowski", "sqeuclidean", "cosine"])
def test_answers_as_scikit_learn_does(blobs, mode, metric):
    rows, _ = blobs
    ours = KNeighborsTransformer(mode=mode, n_neighbors=7, metric=metric)
    theirs = neighbors.KNeighborsTransformer(mode=mode, n_neighbors=7, metric=metric, algorithm="brute")
    for fit_rows, answer in ((rows, "fit_transform"), (rows[:200], "transform")):
        if answer == "fit_transform":
            found, expected = ours.fit_transform(fit_rows), theirs.fit_transform(fit_rows)
        else:
            found, expected = ours.fit(fit_rows).transform(rows[200:]), theirs.fit(fit_rows).transform(rows[200:])
        assert found.shape == expected.shape and found.dtype == expected.dtype
        np.testing.assert_array_equal(np.diff(found.indptr), np.diff(expected.indptr))
        np.testing.assert_allclose(found.toarray(), expected.toarray(), rtol=1e-5, atol=1e-6)
        if mode == "distance":
            assert (np.diff(found.data.reshape(found.shape[0], -1)) >= 0).all()  # best first
    assert not hasattr(ours, "graph_")  # of the rows that were fitted before


def test_rows_are_their_own_first_neighbours_also_among_copies():
    rows = np.ones((6, 2), np.float32)
    found = KNeighborsTransformer(n_neighbors=2).fit_transform(rows)
    np.testing.assert_array_equal(found.indices.reshape(6, 3)[:, 0], np.arange(6))
    assert found.nnz == 18 and (found.data == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.float64])
def test_element_types(dtype):
    rows = np.random.default_rng(1).integers(0, 50, (80, 4)).astype(dtype)
    found = KNeighborsTransformer(n_neighbors=4).fit_transform(rows)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    expected = nearwise.exact_knn_graph(rows.astype(np.float32), 4, metric="euclidean")
    np.testing.assert_array_equal(found.indices.reshape(80, 5)[:, 1:], expected.ids)


@pytest.mark.filterwarnings("error")  # scikit-learn warns of graphs that are not in order
def test_in_front_of_what_takes_a_precomputed_graph(blobs):
    rows, labels = blobs
    clusters = make_pipeline(
        KNeighborsTransformer(n_neighbors=30), DBSCAN(eps=2.5, metric="precomputed")
    ).fit_predict(rows)
    same = DBSCAN(eps=2.5, metric="precomputed").fit_predict(
        neighbors.KNeighborsTransformer(n_neighbors=30).fit_transform(rows)
    )
    np.testing.assert_array_equal(clusters, same)
    assert len(set(clusters)) >= 4

    classify = make_pipeline(
        KNeighborsTransformer(n_neighbors=9, mode="distance"), KNeighborsClassifier(n_neighbors=5, metric="precomputed")
    )
    assert classify.fit(rows[:180], labels[:180]).score(rows[180:], labels[180:]) > 0.95

    embedded = make_pipeline(
        KNeighborsTransformer(n_neighbors=60), Isomap(n_neighbors=60, n_components=2, metric="precomputed")
    ).fit_transform(rows)
    assert embedded.shape == (240, 2) and np.isfinite(embedded).all()


def test_in_front_of_spectral_clustering(blobs):
    rows, labels = blobs
    found = make_pipeline(
        KNeighborsTransformer(n_neighbors=10),
        SpectralClustering(n_clusters=4, n_neighbors=10, affinity="precomputed_nearest_neighbors", random_state=0),
    ).fit_predict(rows)
    assert len(set(zip(found, labels))) == 4  # one cluster for each blob


def test_as_scanpy_uses_it(blobs):
    """scanpy's sc.pp.neighbors asks a transformer for n_neighbors and metric, calls fit_transform and takes the rows of the
    matrix for lists of equal length, with or without the row itself at their head."""
    rows, _ = blobs
    transformer = clone(KNeighborsTransformer(n_neighbors=15, metric="cosine", target_recall=1.0, random_state=3))
    parameters = transformer.get_params()
    assert (parameters["n_neighbors"], parameters["metric"], parameters["random_state"]) == (15, "cosine", 3)
    matrix = transformer.fit_transform(rows)
    lengths = np.diff(matrix.indptr)
    assert (lengths == lengths[0]).all()
    ids = matrix.indices.reshape(len(rows), -1)
    assert (ids[:, 0] == np.arange(len(rows))).all()
    np.testing.assert_array_equal(ids[:, 1:], transformer.graph_.ids)
    assert transformer.graph_.recall.low == 1


@pytest.mark.parametrize(
    "options, words",
    [
        ({"mode": "both"}, "mode: expected 'distance' or 'connectivity', got 'both'"),
        ({"metric": "manhattan"}, "metric: expected one of cosine, euclidean, .* got 'manhattan'"),
        ({"n_neighbors": 0}, "n_neighbors: expected at least 1, got 0"),
        ({"n_neighbors": 240}, "n_neighbors: expected at most 239 with mode 'distance' .* got 240"),
        ({"target_recall": 2.0}, "target_recall: expected above 0 and at most 1"),
    ],
)
def test_wrong_parameters(blobs, options, words):
    refuses(ValueError, words, KNeighborsTransformer(**options).fit_transform, blobs[0])


def test_one_neighbour_with_connectivity_is_the_row_itself(blobs):
    found = KNeighborsTransformer(mode="connectivity", n_neighbors=1).fit_transform(blobs[0])
    np.testing.assert_array_equal(found.indices, np.arange(240))
