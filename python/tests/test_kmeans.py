"""train_kmeans and assign: Lloyd's iterations as numpy makes them, and arguments that are named when they are wrong."""

import functools

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import MACHINES, refuses, reports_of, spoiled, stops_by_progress
from hypothesis import assume, given
from samples import TAILS, TYPES, assert_same, positive_rows, random_rows

METRICS = ("sqeuclidean", "inner_product", "cosine")


@pytest.fixture
def blobs():
    """Ten groups of 40 rows far from each other."""
    random = np.random.default_rng(3)
    centres = random.standard_normal((10, 8)) * 100
    return (centres.repeat(40, axis=0) + random.standard_normal((400, 8))).astype(np.float32)


def assert_same_training(found, expected):
    for name in ("centroids", "sizes", "errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.converged == expected.converged


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(12, 200),
    dim=st.sampled_from(TAILS),
    clusters=st.integers(1, 12),
    dtype=st.sampled_from(TYPES),
    metric=st.sampled_from(METRICS),
)
def test_iterates_as_lloyd_does(seed, rows, dim, clusters, dtype, metric):
    data = positive_rows(seed, rows, dim, dtype)
    initial = data[:clusters]
    found = nearwise.train_kmeans(data, clusters, metric=metric, iterations=3, tolerance=0, initial=initial)
    iterations = len(found.errors)
    assert iterations == 3 or found.converged
    centroids, sizes, errors = oracle.lloyd(data, initial, iterations, metric)
    assume(sizes.min() > 0)  # where a cluster loses all its rows, its centroid is moved
    np.testing.assert_array_equal(found.centroids, centroids)
    np.testing.assert_array_equal(found.sizes, sizes[-1])
    np.testing.assert_allclose(found.errors, errors, rtol=1e-9, atol=1e-9)


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 100),
    dim=st.sampled_from(TAILS),
    centroids=st.integers(1, 40),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    metric=st.sampled_from(oracle.METRICS),
)
def test_assign_equals_the_definition(seed, rows, dim, centroids, types, metric):
    data = random_rows(seed, rows, dim, types[0])
    points = random_rows(seed + 1, centroids, dim, types[1])
    oracle.check(nearwise.assign(data, points, metric=metric), data, points, 1, metric)


def test_what_it_returns(base):
    trained = nearwise.train_kmeans(base, 7)
    assert isinstance(trained, nearwise.KMeans)
    assert trained.centroids.dtype == np.float32 and trained.centroids.shape == (7, 24)
    assert trained.sizes.dtype == np.int64 and trained.sizes.shape == (7,) and trained.sizes.sum() == 300
    assert trained.errors.dtype == np.float64 and (np.diff(trained.errors) <= 0).all()
    assert trained.converged is True
    assert trained.centroids.flags.writeable and trained.errors.flags.writeable
    assert nearwise.train_kmeans(base, 7, iterations=1).converged is False


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seeding", ["plus_plus", "random"])
def test_seeds(seeding, metric, base):
    first = nearwise.train_kmeans(base, 12, seed=1, seeding=seeding, metric=metric, iterations=2)
    assert_same_training(
        nearwise.train_kmeans(base, 12, seed=1, seeding=seeding, metric=metric, iterations=2), first
    )
    for seed in (0, 2, 2**64 - 1):
        other = nearwise.train_kmeans(base, 12, seed=seed, seeding=seeding, metric=metric, iterations=2)
        assert (other.centroids != first.centroids).any(), seed


def test_finds_separate_groups(blobs):
    for seed in range(4):
        trained = nearwise.train_kmeans(blobs, 10, seed=seed)
        assert trained.sizes.tolist() == [40] * 10
        groups = nearwise.assign(blobs, trained.centroids).ids.reshape(10, 40)
        assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 10


def test_min_cluster_size(blobs):
    blobs[17] = 10_000
    assert nearwise.train_kmeans(blobs, 11).sizes.min() == 1
    assert nearwise.train_kmeans(blobs, 11, min_cluster_size=5, iterations=50).sizes.min() > 1


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("clusters", "balance"), [(7, 1), (7, 1.25), (299, 1), (1, 3.0)])
def test_balance_bounds_every_cluster(base, metric, clusters, balance):
    base[100:250] = base[0]
    most = max(-(-300 // clusters), int(balance * 300 / clusters))
    trained = nearwise.train_kmeans(base, clusters, metric=metric, balance=balance)
    assert trained.sizes.max() <= most and trained.sizes.sum() == 300
    found = nearwise.assign(base, trained.centroids, metric=metric, balance=balance)
    assert np.bincount(found.ids[:, 0], minlength=clusters).max() <= most
    # Rows that are not at their nearest centroid found it full.
    nearest = nearwise.assign(base, trained.centroids, metric=metric).ids[:, 0]
    sizes = np.bincount(found.ids[:, 0], minlength=clusters)
    assert (sizes[nearest[nearest != found.ids[:, 0]]] == most).all()


def test_batches_within_memory_that_all_rows_exceed(tmp_path):
    random = np.random.default_rng(4)
    centres = np.array([[30, 30], [30, 220], [220, 30], [220, 220]])
    rows = (centres.repeat(50_000, axis=0) + random.integers(-5, 6, (200_000, 2))).astype(np.uint8)
    nearwise.write_vectors(tmp_path / "rows.u8bin", rows)
    mapped = nearwise.read_vectors(tmp_path / "rows.u8bin")
    limit = 1_000_000
    refuses(nearwise.Error, "memory limit", nearwise.train_kmeans, mapped, 4, memory_limit=limit, threads=1)
    trained = nearwise.train_kmeans(mapped, 4, batch_size=1024, memory_limit=limit, threads=1, tolerance=0)
    assert sorted(trained.centroids.round(-1).tolist()) == centres.tolist()
    assert trained.sizes.sum() == 1024 * len(trained.errors) and (trained.sizes > 0).all()
    np.testing.assert_allclose(
        trained.errors[-1], nearwise.assign(rows, trained.centroids).distances.sum(dtype=np.float64), rtol=0.2
    )
    assert_same_training(nearwise.train_kmeans(rows, 4, batch_size=1024, tolerance=0), trained)


def test_tolerance(base):
    lengths = [len(nearwise.train_kmeans(base, 20, iterations=60, tolerance=share).errors) for share in (0.1, 0)]
    assert lengths[0] < lengths[1]


def test_two_levels(blobs):
    trained = nearwise.train_hierarchical_kmeans(blobs, 36, seed=2)
    assert trained.centroids.shape == (36, 8) and trained.sizes.sum() == 400 and trained.errors.shape == (1,)
    found = nearwise.assign(blobs, trained.centroids).distances.astype(np.float64).sum()
    assert 0 < found <= trained.errors[0] * 1.0001
    refuses(TypeError, "initial", nearwise.train_hierarchical_kmeans, blobs, 36, initial=blobs[:36])


def test_same_bytes_whatever_the_machine_offers(base):
    expected = nearwise.train_kmeans(base, 15, seed=5)
    for option in (*MACHINES, {"memory_limit": "400kB", "threads": 1}):
        assert_same_training(nearwise.train_kmeans(base, 15, seed=5, **option), expected)
        assert_same(nearwise.assign(base, base[:9], **option), nearwise.knn(base, base[:9], 1))


@pytest.mark.parametrize(
    "layout",
    [
        lambda rows: rows[::2],
        lambda rows: rows[:, :16],
        lambda rows: rows[:, ::2],
        lambda rows: rows[::-1],
        np.asfortranarray,
        lambda rows: rows.astype(np.float64),
        lambda rows: rows.astype(">f4"),
        lambda rows: rows.tolist(),
    ],
)
def test_every_layout(layout, base):
    given_rows = layout(base)
    plain = np.ascontiguousarray(given_rows, dtype=np.float32)
    expected = nearwise.train_kmeans(plain, 6, initial=plain[:6])
    assert_same_training(nearwise.train_kmeans(given_rows, 6, initial=given_rows[:6]), expected)
    assert_same(nearwise.assign(given_rows, given_rows[:6]), nearwise.assign(plain, plain[:6]))


def test_rows_stay_as_they_are(base, tmp_path):
    expected = nearwise.train_kmeans(base, 6)
    original = base.copy()
    base.flags.writeable = False
    assert_same_training(nearwise.train_kmeans(base, 6), expected)
    np.testing.assert_array_equal(base, original)
    nearwise.write_vectors(tmp_path / "base.fbin", base)
    assert_same_training(nearwise.train_kmeans(nearwise.read_vectors(tmp_path / "base.fbin"), 6), expected)


def test_initial_of_another_type():
    rows = positive_rows(1, 90, 9, np.uint8)
    for dtype in TYPES:
        initial = rows[:4].astype(np.float32).astype(dtype)
        assert_same_training(
            nearwise.train_kmeans(rows, 4, initial=initial), nearwise.train_kmeans(rows, 4, initial=rows[:4])
        )


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"clusters": 0}, ValueError, "clusters: expected at least 1, got 0"),
        ({"clusters": 301}, ValueError, "301 clusters and 300 rows"),
        ({"clusters": 2.0}, TypeError, r"clusters: expected an integer, got 2.0 \(float\)"),
        ({"metric": "euclidean"}, ValueError, "sqeuclidean, inner_product or cosine, got euclidean"),
        ({"metric": "manhattan"}, ValueError, "manhattan"),
        ({"metric": 1}, TypeError, "metric: expected a string"),
        ({"iterations": 0}, ValueError, "iterations: expected at least 1, got 0"),
        ({"tolerance": -1}, ValueError, "tolerance must not be negative, got -1"),
        ({"tolerance": float("nan")}, ValueError, "tolerance: expected a number, got NaN"),
        ({"tolerance": "0"}, TypeError, r"tolerance: expected a number, got '0' \(str\)"),
        ({"seeding": "best"}, ValueError, "seeding: expected one of plus_plus, random, got 'best'"),
        ({"seeding": 3}, TypeError, "seeding: expected a string"),
        ({"min_cluster_size": 0}, ValueError, "min_cluster_size: expected at least 1"),
        ({"min_cluster_size": 61}, ValueError, "min_cluster_size must be 1 to 60"),
        ({"balance": 0.5}, ValueError, "balance: expected at least 1, got 0.5"),
        ({"balance": "1"}, TypeError, r"balance: expected a number, got '1' \(str\)"),
        ({"batch_size": 4}, ValueError, "at least the number of clusters, 5, got 4"),
        ({"batch_size": 1.5}, TypeError, "batch_size: expected an integer"),
        ({"batch_size": 50, "balance": 2}, ValueError, "batch_size and balance cannot be combined"),
        ({"initial": np.zeros((4, 24), np.float32)}, ValueError, r"\[5, 24\], got \[4, 24\]"),
        ({"initial": np.zeros((5, 23), np.float32)}, ValueError, r"\[5, 24\], got \[5, 23\]"),
        ({"initial": np.zeros((0, 24), np.float32)}, ValueError, "initial: expected centroids"),
        ({"initial": np.zeros(24, np.float32)}, ValueError, r"initial: expected a 2-D .*initial\[None, :\]"),
        ({"initial": np.full((5, 24), np.nan, np.float32)}, ValueError, "initial centroid 0 holds NaN"),
        ({"seed": -1}, ValueError, "seed: expected at least 0, got -1"),
        ({"seed": 2**64}, ValueError, "seed: expected at most"),
        ({"seed": 0.5}, TypeError, "seed: expected an integer"),
        ({"device": "abacus"}, ValueError, "got 'abacus'"),
        ({"progress": 3}, TypeError, "progress"),
    ],
)
def test_wrong_arguments(options, kind, text, base):
    refuses(kind, text, nearwise.train_kmeans, base, **{"clusters": 5, **options})


def test_wrong_rows(base):
    refuses(ValueError, r"rows: expected a 2-D .*rows\[None, :\]", nearwise.train_kmeans, base[0], 1)
    refuses(ValueError, "rows: dtype complex128", nearwise.train_kmeans, base.astype(complex), 1)
    refuses(ValueError, r"centroids: expected a 2-D", nearwise.assign, base, base[0])
    refuses(ValueError, "at least 1 centroid", nearwise.assign, base, base[:0])
    refuses(ValueError, "row 211 holds NaN or infinity", nearwise.train_kmeans, spoiled(base, 211, np.inf), 2)


def test_memory_limit(base):
    refuses("out_of_memory", "", nearwise.train_kmeans, base, 5, memory_limit=1000)
    refuses("out_of_memory", "", nearwise.train_kmeans, base.astype(np.float64), 5, memory_limit=1000)
    refuses("out_of_memory", "", nearwise.train_hierarchical_kmeans, base, 5, memory_limit=1000)
    refuses("out_of_memory", "", nearwise.assign, base, base[:5], memory_limit=1000)


def test_progress(base):
    for call in (
        (functools.partial(nearwise.train_kmeans, iterations=3, tolerance=0), base, 5),
        (nearwise.train_hierarchical_kmeans, base, 9),
        (nearwise.assign, base, base[:5]),
    ):
        done, total = reports_of(*call)[-1]
        assert done == total > 0
        stops_by_progress(*call)
