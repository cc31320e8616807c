"""nearwise.sklearn.NearestNeighbors and KMeans: scikit-learn's own, with another engine."""

import nearwise.sklearn
import numpy as np
import pytest
from sklearn import cluster, neighbors
from sklearn.datasets import make_blobs
from sklearn.utils.estimator_checks import parametrize_with_checks


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(300, n_features=6, centers=4, cluster_std=1.0, random_state=2)


@parametrize_with_checks([nearwise.sklearn.NearestNeighbors(n_neighbors=3, n_jobs=1), nearwise.sklearn.KMeans(3, n_jobs=1)])
def test_is_an_estimator_by_the_rules_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("metric", ["euclidean", "minkowski", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("own", [True, False])
def test_neighbors_are_those_of_scikit_learn(blobs, metric, own):
    rows, _ = blobs
    ours = nearwise.sklearn.NearestNeighbors(n_neighbors=7, radius=2.0, metric=metric).fit(rows[:200])
    theirs = neighbors.NearestNeighbors(n_neighbors=7, radius=2.0, metric=metric, algorithm="brute").fit(rows[:200])
    queries = None if own else rows[200:]
    distances, ids = ours.kneighbors(queries)
    expected_distances, expected_ids = theirs.kneighbors(queries)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-4, atol=1e-6)
    assert distances.dtype == np.float64 and ids.dtype == np.int64
    for mode in ("connectivity", "distance"):
        ours_graph, theirs_graph = ours.kneighbors_graph(queries, 3, mode), theirs.kneighbors_graph(queries, 3, mode)
        np.testing.assert_allclose(ours_graph.toarray(), theirs_graph.toarray(), rtol=1e-4, atol=1e-6)
    near, far = ours.radius_neighbors(queries), theirs.radius_neighbors(queries, sort_results=True)
    for (one, other) in zip(near[1], far[1], strict=True):
        np.testing.assert_array_equal(np.sort(one), np.sort(other))


def test_an_index_below_recall_1(blobs):
    rows = np.random.default_rng(3).standard_normal((20_000, 16)).astype(np.float32)
    exact = nearwise.sklearn.NearestNeighbors().fit(rows).kneighbors(rows[:200], return_distance=False)
    found = nearwise.sklearn.NearestNeighbors(target_recall=0.9).fit(rows).kneighbors(rows[:200], return_distance=False)
    assert np.mean([np.isin(one, other).mean() for one, other in zip(found, exact)]) > 0.85


def test_kmeans_is_about_as_good_as_scikit_learns(blobs):
    rows, _ = blobs
    ours = nearwise.sklearn.KMeans(4, random_state=1).fit(rows)
    theirs = cluster.KMeans(4, random_state=1, n_init=10).fit(rows)
    assert ours.inertia_ <= 1.05 * theirs.inertia_
    np.testing.assert_array_equal(ours.predict(rows), ours.labels_)
    np.testing.assert_array_equal(ours.transform(rows).argmin(axis=1), ours.labels_)
    np.testing.assert_allclose(ours.score(rows), -ours.inertia_)
    assert ours.transform(rows).shape == (300, 4) and ours.n_iter_ >= 1


def test_kmeans_repeats_with_any_number_of_jobs(blobs):
    rows, _ = blobs
    first = nearwise.sklearn.KMeans(4, random_state=5, n_jobs=1).fit(rows)
    for n_jobs in (2, -1, -2, None):
        other = nearwise.sklearn.KMeans(4, random_state=5, n_jobs=n_jobs).fit(rows)
        np.testing.assert_array_equal(first.cluster_centers_, other.cluster_centers_)
    given = nearwise.sklearn.KMeans(4, init=rows[:4]).fit(rows)
    assert given.cluster_centers_.shape == (4, 6)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (nearwise.sklearn.NearestNeighbors(metric="manhattan"), "metric: expected one of cosine"),
        (nearwise.sklearn.NearestNeighbors(n_neighbors=0), "n_neighbors: expected at least 1"),
        (nearwise.sklearn.NearestNeighbors(n_jobs=0), "n_jobs: expected None or an integer other than 0"),
        (nearwise.sklearn.KMeans(301), "n_clusters: expected at most n_samples=300, got 301"),
        (nearwise.sklearn.KMeans(init="best"), "init: expected one of k-means"),
        (nearwise.sklearn.KMeans(max_iter=0), "max_iter: expected at least 1"),
    ],
)
def test_wrong_parameters(blobs, estimator, words):
    with pytest.raises(ValueError, match=words):
        estimator.fit(blobs[0])
