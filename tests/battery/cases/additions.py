"""Vectors and ids that should not get into an index, and their removal."""

import numpy as np
from outcomes import NotApplicable, marked, right, right_if, wrong
from vectors import DIM, QUERIES, ROWS, SIZE, K, nearest, recall

from cases.registry import Cases

CASES = Cases()


def poisoned(adapter, value):
    """An index of which every 50th vector is such: do the others stay findable?"""
    vectors = ROWS.copy()
    vectors[::50] = value
    index = adapter.built(vectors)
    good = np.ones(SIZE, bool)
    good[::50] = False
    ids = np.asarray(adapter.search(index, QUERIES, K)[0])
    found = recall(ids, np.flatnonzero(good)[nearest(ROWS[good], QUERIES, K)])
    clean = adapter.quality(adapter.built())
    bad = int((~good[ids.clip(0, SIZE - 1)] & (ids >= 0)).sum())
    note = f"accepted; recall of the others {found:.3f}, without such vectors {clean:.3f}; {bad} of them returned"
    return right_if(found >= clean - 0.05 and bad == 0, note)


@CASES.add(seconds=120)
def vectors_of_nan(adapter):
    """2 % of the vectors are NaN"""
    return poisoned(adapter, np.nan)


@CASES.add(seconds=120)
def infinite_vectors(adapter):
    """2 % of the vectors are infinite"""
    return poisoned(adapter, np.inf)


@CASES.add("dim", "extend")
def vectors_of_other_dimension(adapter):
    """adding vectors of 16 dimensions to an index of 32"""
    index = adapter.built()
    adapter.add(index, np.ascontiguousarray(ROWS[:300, :16]))
    return wrong("accepted")


@CASES.add("extend")
def no_vectors(adapter):
    """adding nothing"""
    index = adapter.built()
    adapter.add(index, np.zeros((0, DIM), np.float32))
    return right_if(adapter.size(index) == SIZE, f"size {adapter.size(index)}")


def built_of(adapter, vectors):
    quality = adapter.quality(adapter.built(vectors))
    return right_if(quality >= adapter.least_recall, f"recall {quality:.3f}")


@CASES.add()
def vectors_of_fortran_float64(adapter):
    """vectors of float64 in Fortran order"""
    return built_of(adapter, np.asfortranarray(ROWS.astype(np.float64)))


@CASES.add()
def vectors_of_big_endian(adapter):
    """vectors of big-endian numbers"""
    return built_of(adapter, ROWS.astype(">f4"))


@CASES.add("ids")
def negative_ids(adapter):
    """ids from -1 to -100"""
    index = adapter.empty()
    adapter.add(index, ROWS[:100], -np.arange(1, 101, dtype=np.int64))
    ids = np.asarray(adapter.search(index, ROWS[:3], 1)[0]).ravel().tolist()
    if adapter.marks_missing and ids[0] == -1:
        return wrong("accepted: id -1 is the mark for no result as well")
    return right_if(ids == [-1, -2, -3], f"ids {ids}")


@CASES.add("ids")
def repeated_ids(adapter):
    """one id for ten vectors"""
    index = adapter.empty()
    adapter.add(index, ROWS[:10], np.zeros(10, np.int64))
    size = adapter.size(index)
    if size == 1:
        return right("the last one stays")
    adapter.remove(index, [0])
    left = adapter.size(index)
    return right_if((size, left) == (10, 0), f"{size} vectors, {left} after removing the id")


@CASES.add("ids")
def too_few_ids(adapter):
    """50 ids for 100 vectors"""
    index = adapter.empty()
    adapter.add(index, ROWS[:100], np.arange(50, dtype=np.int64))
    return wrong(f"accepted, size {adapter.size(index)}")


@CASES.add("ids")
def fractional_ids(adapter):
    """ids of float64"""
    index = adapter.empty()
    adapter.add(index, ROWS[:10], np.arange(10) + 0.5)
    return wrong("accepted and cut to integers")


@CASES.add("ids")
def large_ids(adapter):
    """ids beyond 2^40"""
    index = adapter.empty()
    adapter.add(index, ROWS[:10], np.arange(10, dtype=np.int64) + 2**40)
    found = int(np.asarray(adapter.search(index, ROWS[:1], 1)[0]).ravel()[0])
    return right_if(found == 2**40, f"id {found}")


@CASES.add("cosine")
def zero_vectors(adapter):
    """zero vectors under cosine"""
    vectors = ROWS.copy()
    vectors[::50] = 0
    index = adapter.empty(metric="cosine")
    adapter.add(index, vectors)
    found = recall(adapter.search(index, QUERIES, K)[0], nearest(vectors, QUERIES, K, "cosine"))
    zero = np.asarray(adapter.search(index, np.zeros((1, DIM), np.float32), 3)[0]).ravel().tolist()
    repeated = len(set(zero)) < len(zero) and -1 not in zero
    return right_if(found >= adapter.least_recall and not repeated, f"recall {found:.3f}; a zero query finds {zero}")


@CASES.add("queries")
def equal_vectors(adapter):
    """one vector that differs from 1,999 equal ones is found"""
    vectors = np.ones((2000, DIM), np.float32)
    vectors[-1] = 5
    found = int(np.asarray(adapter.search(adapter.built(vectors), vectors[-1:], 1)[0])[0, 0])
    return right_if(found == 1999, f"id {found}")


@CASES.add("remove")
def removing_what_is_not_there(adapter):
    """removing an id that does not exist"""
    index = adapter.built(ROWS[:300])
    adapter.remove(index, [10**6])
    return right_if(adapter.size(index) == 300, f"size {adapter.size(index)}")


@CASES.add("remove", "queries")
def search_after_removing_all(adapter):
    """search after removing every vector"""
    index = adapter.built(ROWS[:300])
    adapter.remove(index, list(range(300)))
    ids = np.asarray(adapter.search(index, QUERIES[:2], 3)[0])
    return marked("no result") if ids.size == 0 or (ids == -1).all() else wrong(f"ids {ids[0].tolist()}")


def got(adapter, id):
    vector = adapter.get(adapter.built(ROWS[:300]), id)
    return marked("None") if vector is None else wrong(f"returned {np.asarray(vector).ravel()[:3].tolist()}")


@CASES.add("get")
def getting_what_is_not_there(adapter):
    """the vector of an id that does not exist"""
    return got(adapter, 10**6)


@CASES.add("get")
def getting_a_negative_id(adapter):
    """the vector of id -5"""
    return got(adapter, -5)


@CASES.add("capacity")
def beyond_capacity(adapter):
    """200 vectors for an index of 100"""
    index = adapter.empty(capacity=100)
    adapter.add(index, ROWS[:200])
    return wrong(f"accepted, size {adapter.size(index)}")


@CASES.add("extend")
def a_failed_addition(adapter):
    """an index goes on as before after an addition that was refused"""
    index = adapter.built()
    before = [np.array(array) for array in adapter.answers(index)]
    vectors = ROWS[:50].copy()
    vectors[-1, 3] = np.nan
    try:
        adapter.add(index, vectors)
    except Exception:
        after = adapter.answers(index)
        same = adapter.size(index) == SIZE and all(np.array_equal(one, other) for one, other in zip(before, after))
        return right_if(same, f"size {adapter.size(index)}")
    raise NotApplicable("vectors with NaN are accepted")
