"""Searches restricted to some ids."""

import copy
import pickle
import threading

import numpy as np
import pytest
from checks import refuses

import nearwise

RNG = np.random.default_rng(5)
BASE = RNG.standard_normal((2000, 12), dtype=np.float32)
QUERIES = RNG.standard_normal((30, 12), dtype=np.float32)
MASK = RNG.random(2000) < 0.3
FEW = np.arange(700) >= 600


def expected(allowed, k=5, queries=QUERIES, base=BASE):
    """By exact search of each query's allowed vectors alone; `allowed`: a mask, or one for each query."""
    masks = np.broadcast_to(allowed, (len(queries), len(base)))
    ids = np.full((len(queries), k), -1)
    distances = np.full((len(queries), k), np.inf, np.float32)
    for row, (query, mask) in enumerate(zip(queries, masks, strict=True)):
        rows = np.flatnonzero(mask)
        found = nearwise.knn(query[None], base[rows], k, pad=True) if rows.size else None
        if found is not None:
            ids[row] = np.where(found.ids[0] >= 0, rows[found.ids[0]], -1)
            distances[row] = found.distances[0]
    return nearwise.Neighbors(ids, distances)


def assert_same(left, right):
    np.testing.assert_array_equal(left.ids, right.ids)
    np.testing.assert_array_equal(left.distances, right.distances)


def lists(density):
    masks = RNG.random((len(QUERIES), len(BASE))) < density
    return [np.flatnonzero(mask) for mask in masks], masks


PER_QUERY, PER_QUERY_MASKS = lists(0.05)
FORMS = {
    "mask": (dict(filter=MASK), MASK),
    "mask as a list": (dict(filter=MASK.tolist()), MASK),
    "ids": (dict(filter=np.flatnonzero(MASK)), MASK),
    "ids of 32 bits, in no order": (dict(filter=RNG.permutation(np.flatnonzero(MASK)).astype(np.uint32)), MASK),
    "no ids": (dict(filter=[]), np.zeros(2000, bool)),
    "a Filter": (dict(filter=nearwise.Filter(MASK)), MASK),
    "exclude": (dict(exclude=np.flatnonzero(MASK)), ~MASK),
    "exclude by a mask": (dict(exclude=MASK), ~MASK),
    "mask, exclude by a mask": (dict(filter=MASK, exclude=FEW.tolist()), MASK & ~np.pad(FEW, (0, 1300))),
    "both": (dict(filter=MASK, exclude=np.arange(500)), MASK & (np.arange(2000) >= 500)),
    "a Filter and exclude": (dict(filter=nearwise.Filter(MASK), exclude=[7, 8]), MASK & ~np.isin(np.arange(2000), [7, 8])),
    "per query": (dict(filter=PER_QUERY), PER_QUERY_MASKS),
    "exclude per query": (dict(exclude=[ids.tolist() for ids in PER_QUERY]), ~PER_QUERY_MASKS),
    "mask, exclude per query": (dict(filter=MASK, exclude=PER_QUERY), MASK & ~PER_QUERY_MASKS),
}


@pytest.mark.parametrize("name", FORMS)
def test_exact_search(name):
    options, allowed = FORMS[name]
    assert_same(nearwise.knn(QUERIES, BASE, 5, **options), expected(allowed))
    assert_same(nearwise.Exact(BASE).search(QUERIES, 5, **options), expected(allowed))


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq])
@pytest.mark.parametrize("name", FORMS)
def test_inverted_files_that_scan_all_allowed_vectors(kind, name):
    index = INDEXES[kind]
    options, allowed = FORMS[name]
    # Excludes of single queries alone are a search of lists, and so are few of all.
    more = dict(probes=index.lists, candidates=2000) if name == "exclude per query" else dict(scanned=2000)
    assert_same(index.search(QUERIES, 5, **more, **options), expected(allowed))


INDEXES = {
    kind: kind.build(BASE, lists=20, **options)
    for kind, options in ((nearwise.IvfFlat, {}), (nearwise.IvfPq, {}), (nearwise.IvfLsq, {"rounds": 1}))
}


@pytest.mark.parametrize("name", FORMS)
def test_range_search(name):
    options, allowed = FORMS[name]
    radius = 9.0
    everything = nearwise.range_search(QUERIES, BASE, radius)
    masks = np.broadcast_to(allowed, (len(QUERIES), len(BASE)))
    for found in (
        nearwise.range_search(QUERIES, BASE, radius, **options),
        nearwise.Exact(BASE).range_search(QUERIES, radius, **options),
        INDEXES[nearwise.IvfFlat].range_search(QUERIES, radius, probes=20, **options),
        INDEXES[nearwise.IvfPq].range_search(QUERIES, radius, probes=20, **options),
    ):
        for query in range(len(QUERIES)):
            ids = everything.of(query)[0]
            np.testing.assert_array_equal(found.of(query)[0], ids[masks[query][ids]])


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq])
def test_few_excluded_ids_are_those_of_each_query(kind):
    index = INDEXES[kind]
    for count in (1, 30):
        ids = index.search(QUERIES[0], 40).ids
        found = index.search(QUERIES[:count], 5, exclude=ids)
        assert_same(found, index.search(QUERIES[:count], 5, exclude=np.isin(np.arange(2000), ids)))
        assert_same(found, index.search(QUERIES[:count], 5, exclude=[ids] * count))
        assert not np.isin(found.ids, ids).any()
        both = index.search(QUERIES[:count], 5, filter=MASK, exclude=ids[:20], scanned=2000)
        assert_same(both, expected(MASK & ~np.isin(np.arange(2000), ids[:20]), queries=QUERIES[:count]))
    # The next nearest are found, as by a search for more.
    truth = nearwise.knn(QUERIES[0], BASE, 45).ids
    found = index.search(QUERIES[0], 5, exclude=truth[:40]).ids
    assert np.isin(found, truth).sum() >= 4


def test_plans_are_explained():
    index = INDEXES[nearwise.IvfPq]
    few = index.search(QUERIES, 5, filter=[1, 2, 3], explain=True)
    assert few.exact and few.allowed == 3 and few.probes == 0
    fixed = index.search(QUERIES, 5, filter=MASK, probes=3, explain=True)
    assert not fixed.exact and fixed.allowed == MASK.sum()
    codes = index.search(QUERIES, 5, filter=MASK, codes_only=True, explain=True)
    assert not codes.exact and codes.exact_cost == np.inf


def test_ids_of_ones_own():
    index = nearwise.IvfPq.train(BASE, lists=20)
    ids = np.arange(2000) * 10**12
    index.add(BASE, ids=ids)
    wanted = ids[[5, 90, 1500]]
    found = index.search(BASE[:50], 3, filter=wanted)
    assert set(found.ids.ravel()) <= set(wanted)
    assert_same(
        found._replace(ids=found.ids // 10**12), expected(np.isin(np.arange(2000), [5, 90, 1500]), 3, BASE[:50])
    )


def test_objects():
    made = nearwise.Filter(MASK, exclude=[3])
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), made & made):
        assert_same(nearwise.knn(QUERIES, BASE, 5, filter=other), nearwise.knn(QUERIES, BASE, 5, filter=made))
    assert pickle.loads(pickle.dumps(made & made)).allows(3) is False
    assert made.queries is None and nearwise.Filter(PER_QUERY).queries == len(QUERIES)
    assert repr(nearwise.Filter(PER_QUERY)) == f"<nearwise.Filter of {len(QUERIES)} queries>"
    for mask in (MASK, MASK[:13], list(MASK[:9]), MASK[:0]):
        again = pickle.loads(pickle.dumps(nearwise.Filter(mask)))
        assert [again.allows(i) for i in range(20)] == [i < len(mask) and bool(mask[i]) for i in range(20)]
    assert len(pickle.dumps(nearwise.Filter(np.ones(800_000, bool)))) < 110_000  # a bit per id
    assert pickle.loads(pickle.dumps(nearwise.Filter([5, 7]))).allows(7)
    denied = nearwise.Filter(exclude=np.array([True, False, True]))
    for other in (denied, pickle.loads(pickle.dumps(denied)), nearwise.Filter(exclude=[True, False, True])):
        assert [other.allows(i) for i in range(5)] == [False, True, False, True, True]
    assert nearwise.Filter(exclude=np.empty(0, bool)).allows(0)
    assert len(pickle.dumps(nearwise.Filter(exclude=np.ones(800_000, bool)))) < 110_000
    matrix = np.array([[1, -1], [2, 3]])
    assert [nearwise.Filter(exclude=matrix).allows(i, 1) for i in range(4)] == [True, True, False, False]


def test_wrong_filters_are_refused():
    refuses(ValueError, "filter: expected a 1-D mask", nearwise.Filter, MASK.reshape(2, -1))
    refuses(ValueError, "exclude: expected a 1-D mask", nearwise.Filter, exclude=MASK.reshape(2, -1))
    refuses(ValueError, "dtype float64", nearwise.Filter, np.array([1.5]))
    refuses(ValueError, "ids from 0", nearwise.Filter, [-1])
    refuses(ValueError, "ids from 0", nearwise.Filter, np.array([2**63], np.uint64))
    refuses(ValueError, "dtype float64", nearwise.Filter, exclude=[0.5])
    refuses(ValueError, "list for every query", nearwise.knn, QUERIES, BASE, 3, filter=[[1], [2]])
    refuses(ValueError, "list for every query", INDEXES[nearwise.IvfPq].search, QUERIES, 3, exclude=[[1], [2]])
    refuses(IndexError, "below 2", nearwise.Filter([[1], [2]]).allows, 1, 2)


def test_one_filter_in_many_threads():
    index, made = INDEXES[nearwise.IvfPq], nearwise.Filter(MASK)
    answers = [index.search(QUERIES, 5, filter=nearwise.Filter(MASK))] * 8
    found = [None] * 8

    def search(place):
        found[place] = index.search(QUERIES, 5, filter=made)

    threads = [threading.Thread(target=search, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, answer in zip(found, answers, strict=True):
        assert_same(one, answer)
