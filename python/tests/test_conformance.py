"""What `nearwise.Searchable` promises of every index."""

import numpy as np
import pytest

import nearwise

RNG = np.random.default_rng(11)
BASE = np.round(RNG.standard_normal((800, 6)) * 2).astype(np.float32)  # with ties
QUERIES = np.round(RNG.standard_normal((20, 6)) * 2).astype(np.float32)
KINDS = {
    "Exact": (nearwise.Exact(BASE), dict(pad=True), {}),
    "IvfFlat": (nearwise.IvfFlat.build(BASE, lists=8), dict(probes=8), dict(probes=8)),
    "IvfPq": (nearwise.IvfPq.build(BASE, lists=8), dict(probes=8, candidates=900), dict(probes=8)),
    "IvfLsq": (nearwise.IvfLsq.build(BASE, lists=8, rounds=1), dict(probes=8, candidates=900), dict(probes=8)),
    "GraphIndex": (nearwise.GraphIndex.build(BASE), dict(beam=900), dict(beam=900)),
}
MASK = RNG.random(800) < 0.1


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def assert_same(left, right):
    np.testing.assert_array_equal(left.ids, right.ids)
    np.testing.assert_array_equal(left.distances, right.distances)


def test_it_is_searchable(kind):
    index, _, _ = kind
    assert isinstance(index, nearwise.Searchable)
    assert len(index) == 800 and index.metric == "sqeuclidean"


@pytest.mark.parametrize("k", [1, 10, 805])
def test_neighbors(kind, k):
    index, options, _ = kind
    assert_same(index.search(QUERIES, k, **options), nearwise.knn(QUERIES, BASE, k, pad=True))
    assert_same(index.search(QUERIES, k, filter=np.ones(800, bool), **options), nearwise.knn(QUERIES, BASE, k, pad=True))


@pytest.mark.parametrize("k", [1, 10, 200])
def test_filters(kind, k):
    index, options, _ = kind
    for given in (dict(filter=MASK), dict(filter=np.flatnonzero(MASK)), dict(exclude=[[i] for i in range(20)])):
        found = index.search(QUERIES, k, **given, **options)
        assert_same(found, nearwise.knn(QUERIES, BASE, k, pad=True, **given))
    assert (index.search(QUERIES, 3, filter=[], **options).ids == -1).all()


def test_range_search(kind):
    index, _, options = kind
    for given in ({}, dict(filter=MASK), dict(exclude=[[i] for i in range(20)])):
        found = index.range_search(QUERIES, 12.0, **given, **options)
        for one, other in zip(found, nearwise.range_search(QUERIES, BASE, 12.0, **given), strict=True):
            np.testing.assert_array_equal(one, other)


def test_without_other_arguments_ids_are_allowed_and_padding_comes_last(kind):
    index, _, _ = kind
    for given, allowed in ((dict(filter=MASK), MASK), (dict(filter=[3, 5]), np.isin(np.arange(800), [3, 5]))):
        ids = index.search(QUERIES, 10, **given).ids
        assert allowed[ids[ids >= 0]].all()
        assert (ids >= 0).sum(axis=1).tolist() == [min(10, allowed.sum())] * len(QUERIES)
