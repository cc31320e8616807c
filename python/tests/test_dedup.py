"""Pairs within a threshold, and the removal of near-duplicates, against all distances in numpy."""

import numpy as np
import pytest

import nearwise

METRICS = ["sqeuclidean", "euclidean", "inner_product", "cosine"]


def clustered(rows=400, dim=8, seed=1):
    chance = np.random.default_rng(seed)
    centers = chance.standard_normal((rows // 8, dim))
    near = centers[chance.integers(len(centers), size=rows)] + 0.02 * chance.standard_normal((rows, dim))
    return near.astype(np.float32)


def pairs_of(rows, threshold, metric):
    """From the distances that knn reports to all rows."""
    ids, distances = nearwise.knn(rows, rows, len(rows), metric=metric)
    inside = distances >= np.float32(threshold) if metric == "inner_product" else distances <= np.float32(threshold)
    found = [(i, j) for i, (row, keep) in enumerate(zip(ids, inside, strict=True)) for j in row[keep] if j > i]
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_are_those_within_the_threshold(metric):
    rows = clustered()
    threshold = {"sqeuclidean": 0.01, "euclidean": 0.1, "inner_product": 8.0, "cosine": 0.001}[metric]
    expected = pairs_of(rows, threshold, metric)
    assert len(expected) > 50
    found = nearwise.threshold_join(rows, radius=threshold, metric=metric)
    assert np.array_equal(found.pairs(), expected)
    assert found.offsets[-1] == len(found.ids) == len(found.distances)
    assert np.array_equal(found.of(3)[0], expected[expected[:, 0] == 3][:, 1])


def test_similarity_is_one_less_the_cosine_distance():
    rows = clustered()
    by_similarity = nearwise.threshold_join(rows, similarity=0.999)
    by_radius = nearwise.threshold_join(rows, radius=np.float32(1 - 0.999), metric="cosine")
    assert np.array_equal(by_similarity.pairs(), by_radius.pairs())
    products = nearwise.threshold_join(rows, similarity=8.0, metric="ip")
    assert np.array_equal(products.pairs(), pairs_of(rows, 8.0, "inner_product"))


@pytest.mark.parametrize("grouping", ["star", "connected"])
@pytest.mark.parametrize("keep", ["first", "medoid", "scores"])
def test_kept_rows_have_no_duplicates_and_every_removed_row_has_one(keep, grouping):
    rows = clustered()
    scores = np.random.default_rng(2).permutation(len(rows))
    found = nearwise.dedup(rows, radius=0.1, metric="euclidean", keep=scores if keep == "scores" else keep, grouping=grouping)
    pairs = nearwise.threshold_join(rows, radius=0.1, metric="euclidean").pairs()
    assert found.pairs == len(pairs)
    is_kept = np.zeros(len(rows), bool)
    is_kept[found.kept] = True
    assert 0 < len(found.kept) < len(rows)
    assert not (is_kept[pairs[:, 0]] & is_kept[pairs[:, 1]]).any()
    assert np.array_equal(found.removed_by == -1, is_kept)
    assert np.array_equal(found.groups[is_kept], np.flatnonzero(is_kept))
    assert is_kept[found.groups].all()
    known = {tuple(pair) for pair in pairs} | {tuple(pair[::-1]) for pair in pairs}
    removed = np.flatnonzero(~is_kept)
    assert all((row, found.removed_by[row]) in known for row in removed)
    assert (found.distances[removed] <= np.float32(0.1)).all()
    assert np.isinf(found.distances[is_kept]).all()
    if keep == "scores" and grouping == "connected":
        best = {group: max(np.flatnonzero(found.groups == group), key=lambda row: scores[row]) for group in found.kept}
        assert all(group == row for group, row in best.items())


def test_the_same_decisions_with_any_threads_and_instruction_set():
    rows = clustered(3000)
    first = nearwise.dedup(rows, similarity=0.999, threads=1)
    for isa in nearwise.info()["instruction_sets"]:
        for threads in (1, 3):
            other = nearwise.dedup(rows, similarity=0.999, threads=threads, isa=isa)
            assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_no_rows_and_one_row():
    assert nearwise.dedup(np.zeros((1, 3), np.float32), radius=1).kept.tolist() == [0]
    assert nearwise.dedup(np.zeros((0, 3), np.float32), radius=1).kept.tolist() == []
    assert nearwise.threshold_join(np.zeros((0, 3), np.float32), radius=1).pairs().shape == (0, 2)


@pytest.mark.parametrize("call", [nearwise.threshold_join, nearwise.dedup])
def test_one_threshold_is_expected(call):
    rows = clustered(50)
    with pytest.raises(TypeError, match="radius= or similarity="):
        call(rows)
    with pytest.raises(TypeError, match="radius= or similarity="):
        call(rows, radius=1, similarity=0.9)
    with pytest.raises(ValueError, match="cosine or inner_product, got euclidean"):
        call(rows, similarity=0.9, metric="euclidean")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"keep": "last"}, "first, medoid"),
        ({"keep": [1.0, 2.0]}, "a score for each of the 50 rows expected, got 2"),
        ({"keep": np.zeros((50, 1))}, "1-D array of scores, got 2-D"),
        ({"keep": np.full(50, np.nan)}, "the score of row 0 is NaN"),
        ({"grouping": "all"}, "star, connected"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(nearwise.ArgumentError, match=words):
        nearwise.dedup(clustered(50), radius=0.1, **arguments)
