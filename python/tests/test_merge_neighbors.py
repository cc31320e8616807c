"""Answers of parts, joined: the answer of the whole, bit for bit."""

import nearwise
import numpy as np
import pytest
from checks import refuses
from samples import assert_same, random_rows

METRICS = ("sqeuclidean", "euclidean", "inner_product", "cosine")


def numbered_from(found, first):
    return nearwise.Neighbors(np.where(found.ids < 0, -1, found.ids + first), found.distances)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 10, 130])
def test_parts_are_the_whole(metric, k):
    base = random_rows(1, 120, 5, np.float32)  # ties everywhere
    queries = random_rows(2, 30, 5, np.float32)
    bounds = [0, 1, 50, 50, 117, 120]
    parts = [
        numbered_from(nearwise.knn(queries, base[first:last], k, metric=metric, pad=True), first)
        for first, last in zip(bounds, bounds[1:])
    ]
    expected = nearwise.knn(queries, base, k, metric=metric, pad=True)
    assert_same(nearwise.merge_neighbors(parts, k, metric=metric), expected)
    assert_same(nearwise.merge_neighbors(reversed(parts), k, metric=metric, threads=1), expected)


def test_arrays_that_may_not_be_written_to(queries, base):
    found = nearwise.knn(queries, base, 3)
    for array in found:
        array.flags.writeable = False
    assert_same(nearwise.merge_neighbors([found], 3), found)


def test_wrong_arguments(queries, base):
    found = nearwise.knn(queries, base, 3)
    refuses(ValueError, "at least one part", nearwise.merge_neighbors, [], 3)
    with pytest.raises(ValueError, match="same queries, got 20 and 19"):
        nearwise.merge_neighbors([found, (found.ids[1:], found.distances[1:])], 3)
    refuses(ValueError, "k: expected at least 1", nearwise.merge_neighbors, [found], 0)
    refuses(TypeError, "expected a pair", nearwise.merge_neighbors, [3], 3)
    refuses(ValueError, "metric", nearwise.merge_neighbors, [found], 3, metric="manhattan")
