"""Queries that no index can answer, or only in part."""

import numpy as np
from outcomes import marked, right, right_if, wrong
from vectors import DIM, QUERIES, ROWS, SIZE, K, nearest, recall

from cases.registry import Cases

CASES = Cases()


def judged(found, size=SIZE):
    """The answer to a query that has none."""
    ids, distances = (np.asarray(array) for array in found)
    if (ids == -1).all():
        return marked("every id is -1")
    if ((ids < -1) | (ids >= size)).any():
        return wrong(f"ids that do not exist: {ids.ravel()[:4].tolist()}")
    if not np.isfinite(distances).any():
        return marked("ids with distances that are no numbers")
    return wrong(f"{(ids >= 0).sum()} ids, distances {distances.ravel()[:3].tolist()}")


def with_element(value):
    """Three queries, the second of which has such an element."""
    queries = QUERIES[:3].copy()
    queries[1, 5] = value
    return queries


def second(found):
    return tuple(np.asarray(array)[1:2] for array in found)


@CASES.add()
def query_of_nan(adapter):
    """query of NaN"""
    return judged(adapter.search(adapter.built(), np.full((3, DIM), np.nan, np.float32), K))


@CASES.add()
def query_with_a_nan(adapter):
    """query with one NaN"""
    return judged(second(adapter.search(adapter.built(), with_element(np.nan), K)))


@CASES.add()
def query_with_infinity(adapter):
    """query with an infinite element"""
    return judged(second(adapter.search(adapter.built(), with_element(np.inf), K)))


@CASES.add("queries")
def huge_query(adapter):
    """queries of elements around 1e30, whose distances exceed float32"""
    return judged(adapter.search(adapter.built(), QUERIES[:3] * np.float32(1e30), K))


@CASES.add("k")
def k_above_size(adapter):
    """k larger than the index"""
    ids = np.asarray(adapter.search(adapter.built(ROWS[:300]), QUERIES[:3], 400)[0])
    if ids.shape[1] <= 300:
        return right(f"{ids.shape[1]} columns")
    rest = ids[:, 300:]
    return marked("padded with -1") if (rest == -1).all() else wrong(f"ends in {rest[0, :4].tolist()}")


def searched_with(adapter, k):
    ids = np.asarray(adapter.search(adapter.built(), QUERIES[:3], k)[0])
    return right("nothing") if ids.size == 0 else wrong(f"shape {ids.shape}")


@CASES.add("k")
def k_zero(adapter):
    """k = 0"""
    return searched_with(adapter, 0)


@CASES.add("k")
def k_negative(adapter):
    """k = -1"""
    return searched_with(adapter, -1)


@CASES.add("k")
def k_fraction(adapter):
    """k = 3.7"""
    ids = np.asarray(adapter.search(adapter.built(), QUERIES[:3], 3.7)[0])
    return wrong(f"accepted, shape {ids.shape}")


@CASES.add("k", "queries")
def k_2049(adapter):
    """k = 2049"""
    ids = np.asarray(adapter.search(adapter.built(), QUERIES[:3], 2049)[0])
    found = recall(ids, nearest(ROWS, QUERIES[:3], 2049))
    return right_if(found >= 0.5, f"recall {found:.3f}, {(ids[0] >= 0).sum()} ids")


@CASES.add("k")
def k_2_31(adapter):
    """k = 2^31"""
    ids = np.asarray(adapter.search(adapter.built(ROWS[:300]), QUERIES[:1], 2**31)[0])
    return right(f"{ids.shape[1]} columns") if ids.shape[1] <= 300 else marked(f"shape {ids.shape}")


@CASES.add("dim")
def too_few_dimensions(adapter):
    """queries of 16 dimensions, vectors of 32"""
    ids, _ = adapter.search(adapter.built(), np.ascontiguousarray(QUERIES[:3, :16]), K)
    return wrong(f"accepted: {np.asarray(ids)[0, :3].tolist()}")


@CASES.add("dim")
def too_many_dimensions(adapter):
    """queries of 64 dimensions, vectors of 32"""
    adapter.search(adapter.built(), np.hstack([QUERIES[:3], QUERIES[:3]]), K)
    return wrong("accepted")


@CASES.add()
def no_queries(adapter):
    """no query at all"""
    ids = np.asarray(adapter.search(adapter.built(), np.zeros((0, DIM), np.float32), K)[0])
    return right_if(ids.size == 0, f"shape {ids.shape}")


@CASES.add("queries")
def empty_index(adapter):
    """search in an empty index"""
    ids = np.asarray(adapter.search(adapter.empty(), QUERIES[:3], K)[0])
    return marked(f"shape {ids.shape}") if (ids == -1).all() else wrong(f"ids {ids.ravel()[:4].tolist()}")


@CASES.add()
def one_dimensional_query(adapter):
    """a vector instead of a matrix"""
    ids = np.asarray(adapter.search(adapter.built(), QUERIES[0], K)[0])
    return right_if(ids.ravel()[0] == 0, f"taken as one query: {ids.ravel()[:4].tolist()}")


@CASES.add()
def three_dimensional_queries(adapter):
    """an array of three dimensions"""
    ids = np.asarray(adapter.search(adapter.built(), QUERIES[:4].reshape(2, 2, DIM), K)[0])
    return wrong(f"accepted, shape {ids.shape}")
