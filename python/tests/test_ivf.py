"""Inverted files: the answers of their definition, from rows that come and go."""

import copy
import gc
import inspect
import pickle
import warnings
from pathlib import Path

import hypothesis.strategies as st
import nearwise
import numpy as np
import oracle
import pytest
from checks import MACHINES, fields_of, refuses
from hypothesis import given
from nearwise import _core
from samples import TAILS, TYPES, assert_same, filled, positive_rows, random_rows


def expected(index, rows, ids, queries, k, probes, metric="sqeuclidean"):
    """Lists by nearest centroid, and in those that a query probes all distances from the rows themselves."""
    lists = oracle.knn(rows, index.centroids, 1, metric)[0][:, 0]
    probed = oracle.knn(queries, index.centroids, probes, metric)[0]
    distances = oracle.distances(queries, rows, metric)
    found_ids = np.full((len(queries), k), -1, np.int64)
    found = np.full((len(queries), k), -np.inf if metric == "inner_product" else np.inf, np.float32)
    for query in range(len(queries)):
        inside = np.flatnonzero(np.isin(lists, probed[query]))
        key = distances[query, inside] * (-1 if metric == "inner_product" else 1)
        best = inside[np.lexsort((ids[inside], key))][:k]
        found_ids[query, : len(best)] = ids[best]
        found[query, : len(best)] = distances[query, best]
    return nearwise.Neighbors(found_ids, found)


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 120),
    query_rows=st.integers(0, 9),
    dim=st.sampled_from(TAILS),
    k=st.integers(1, 40),
    lists=st.integers(1, 12),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    metric=st.sampled_from(oracle.METRICS),
    data=st.data(),
)
def test_flat_equals_the_definition(seed, count, query_rows, dim, k, lists, types, metric, data):
    rows = random_rows(seed, count, dim, types[0])
    queries = random_rows(seed + 1, query_rows, dim, types[1])
    index = nearwise.IvfFlat.train(rows, lists=min(lists, count), metric=metric, seed=seed)
    ids = np.random.default_rng(seed).permutation(count) * 3
    index.add(rows, ids)
    probes = data.draw(st.integers(1, index.lists))
    assert_same(index.search(queries, k, probes=probes), expected(index, rows, ids, queries, k, probes, metric))


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("dtype", TYPES)
def test_flat_at_a_size_that_is_scanned(dtype, metric):
    rows = positive_rows(3, 1500, 40, dtype)
    index = filled(nearwise.IvfFlat, rows, lists=9, metric=metric)
    queries = rows[::50].astype(np.float32)
    assert_same(index.search(queries, 20, probes=4), expected(index, rows, np.arange(1500), queries, 20, 4, metric))
    assert_same(index.search(queries, 20, probes=9), nearwise.knn(queries, rows, 20, metric=metric))


@pytest.mark.parametrize("metric", oracle.METRICS)
@pytest.mark.parametrize("bits", [4, 8])
def test_a_rerank_at_everything_is_the_truth(rows, bits, metric):
    index = filled(nearwise.IvfPq, rows, lists=16, code_bytes=6, bits=bits, metric=metric)
    queries = rows[:40] + np.float32(0.1)
    truth = expected(index, rows, np.arange(2000), queries, 10, 5, metric)
    assert_same(index.search(queries, 10, probes=5, rerank=rows, candidates=2000), truth)
    half = nearwise.IvfPq.train(rows, lists=16, code_bytes=6, bits=bits, metric=metric)
    half.add(rows.astype(np.float16))  # codes are of any type's rows
    assert len(half) == 2000


def test_codes_that_lose_nothing():
    """One part per element and no more different values than codewords: codes decode to the vector itself."""
    rows = random_rows(1, 1000, 8, np.float32, spread=5)
    index = filled(nearwise.IvfPq, rows, lists=1, code_bytes=8)
    found = index.search(rows[:50], 1000)
    assert sorted(found.ids[0]) == list(range(1000))
    true = np.take_along_axis(oracle.distances(rows[:50], rows, "sqeuclidean"), found.ids, axis=1)
    np.testing.assert_allclose(found.distances, true, rtol=1e-4, atol=1e-4)


def test_more_bytes_and_more_probes_find_more(rows):
    truth = nearwise.knn(rows[:200], rows, 10).ids

    def recall(code_bytes, probes, **look):
        index = filled(nearwise.IvfPq, rows, lists=16, code_bytes=code_bytes)
        found = index.search(rows[:200], 10, probes=probes, **look).ids
        return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth, found)])

    few, many = recall(4, 2), recall(24, 16)
    again = recall(4, 16, rerank=rows, candidates=200)
    assert few < many and few < again
    assert many > 0.8 and again > 0.9


def test_same_bits_for_any_threads_and_instruction_set(rows):
    saved = set()
    for options in ({}, *MACHINES):
        index = filled(nearwise.IvfPq, rows, lists=8, code_bytes=8, **options)
        found = index.search(rows[:30], 5, rerank=rows)
        saved.add((index.centroids.tobytes(), found.ids.tobytes(), found.distances.tobytes()))
    assert len(saved) == 1


def test_the_batch_does_not_matter(product, rows):
    together = product.search(rows[:50], 7)
    for number in range(0, 50, 9):
        alone = product.search(rows[number : number + 1], 7)
        np.testing.assert_array_equal(alone.ids[0], together.ids[number])
        np.testing.assert_array_equal(alone.distances[0], together.distances[number])


def test_seeds(rows):
    def centroids(**options):
        return nearwise.IvfFlat.train(rows, lists=8, **options).centroids.tobytes()

    assert centroids() == centroids(seed=0)
    assert centroids(seed=7) == centroids(seed=7, threads=1) != centroids()
    assert centroids(seed=2**64 - 1) != centroids(seed=7)


def test_what_it_says_of_itself(rows, flat, product):
    assert (len(flat), flat.size, flat.dim, flat.lists, flat.code_bytes, flat.metric) == (2000, 2000, 24, 16, 96, "sqeuclidean")
    assert product.code_bytes == 12
    assert sum(flat.list_size(number) for number in range(16)) == 2000
    nearest = oracle.knn(rows, flat.centroids, 1)[0][:, 0]
    assert [flat.list_size(number) for number in range(16)] == np.bincount(nearest, minlength=16).tolist()
    assert repr(flat) == "<nearwise.IvfFlat: 2000 vectors of 24 elements in 16 lists, 96 bytes each, sqeuclidean>"
    assert repr(product).startswith("<nearwise.IvfPq: 2000 vectors")
    assert isinstance(flat, nearwise.Ivf) and isinstance(product, nearwise.Ivf)


def test_centroids_outlive_the_index(rows):
    centroids = nearwise.IvfFlat.train(rows, lists=4).centroids
    copy = centroids.copy()
    gc.collect()
    rubbish = [np.full_like(copy, np.nan) for _ in range(50)]
    np.testing.assert_array_equal(centroids, copy)
    assert centroids.dtype == np.float32 and centroids.shape == (4, 24) and not centroids.flags.writeable
    del rubbish


def test_probes_may_be_set(flat, rows):
    assert flat.probes == 2  # sqrt(16) / 2
    flat.probes = 5
    assert flat.probes == 5
    assert_same(flat.search(rows[:9], 4), flat.search(rows[:9], 4, probes=5))
    for wrong, message in ((0, "probes: expected at least 1, got 0"), (17, "probes must be 1 to 16, got 17")):
        with pytest.raises(ValueError, match=message):
            flat.probes = wrong


def recall_of(index, vectors, probes, **look):
    """10-recall@10 of all rows, none being its own neighbour."""
    truth = nearwise.exact_knn_graph(vectors, 10, metric=index.metric).ids
    found = index.search(vectors, 11, probes=probes, **look).ids
    others = [[id for id in line if id != row][:10] for row, line in enumerate(found)]
    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth, others)])


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq])
def test_build_measures_the_probes(rows, kind):
    index = kind.build(rows, seed=3, target_recall=0.8)
    measured = index.calibration
    assert len(index) == 2000 and measured.reached and measured.target_recall == 0.8
    assert (measured.probes, measured.recall.rows, measured.neighbors, measured.rows) == (index.probes, 500, 10, 2000)
    assert measured.recall.low <= measured.recall.value <= measured.recall.high
    look = {"candidates": measured.candidates} if kind is nearwise.IvfPq else {}
    # Of the whole, of which 500 rows were the sample.
    assert abs(measured.recall.value - recall_of(index, rows, index.probes, **look)) < 0.03
    assert abs(measured.recall_without_rerank.value - recall_of(index, rows, index.probes, codes_only=True)) < 0.04
    assert measured == kind.build(rows, seed=3, target_recall=0.8, threads=1, memory_limit="64MiB").calibration
    assert measured != kind.build(rows, seed=4, target_recall=0.8).calibration
    whole = index.calibrate(rows, target_recall=0.85, queries=5000)
    assert whole == index.calibration and whole.recall.rows == 2000
    look = {"candidates": whole.candidates} if kind is nearwise.IvfPq else {}
    assert whole.recall.value == pytest.approx(recall_of(index, rows, index.probes, **look))
    assert_same(index.search(rows[:9], 4),
                index.search(rows[:9], 4, rerank=rows, probes=index.probes, candidates=index.candidates))
    index.probes = 3
    assert index.calibration is None


def test_a_recall_that_cannot_be_reached_is_a_warning(rows):
    index = filled(nearwise.IvfPq, rows, lists=8, code_bytes=2)
    with pytest.warns(UserWarning, match=r"target recall 0.9 cannot be reached: 0\.\d+ of the 10 nearest found in \d of 8 lists") as caught:
        measured = index.calibrate(rows, rerank=False)
    assert caught[0].filename == __file__
    assert not measured.reached and not measured.candidates and measured.recall == measured.recall_without_rerank
    many = random_rows(4, 8000, 24, np.float32)
    with pytest.warns(UserWarning, match="target recall 1.0 cannot be reached") as caught:
        nearwise.IvfPq.build(many, lists=8, code_bytes=1, bits=4, target_recall=1.0, iterations=1, training_rows=312)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "wrong, error",
    [({"target_recall": 0}, "target_recall: expected above 0"), ({"target_recall": 1.01}, "at most 1"), ({"target_recall": float("nan")}, "NaN"),
     ({"queries": 0}, "queries: expected at least 1")],
)
def test_wrong_measurements(flat, rows, wrong, error):
    refuses(ValueError, error, flat.calibrate, rows, **wrong)
    refuses(ValueError, "a row for every id, got 1999 rows", flat.calibrate, rows[:-1])
    refuses(TypeError, "rerank: expected True or False", flat.calibrate, rows, rerank=1)
    refuses(ValueError, "at least 2 vectors", flat.empty_copy().calibrate, rows)
    if "target_recall" in wrong:
        refuses(ValueError, error, nearwise.IvfFlat.build, rows, **wrong)


def test_ids(rows):
    index = nearwise.IvfFlat.train(rows, lists=3)
    index.add(rows[:10])
    index.add(rows[10:12], [100, 50])
    index.add(rows[12:14])  # after the largest
    index.add(rows[14:16], np.array([77, 78], np.uint8))
    index.add(rows[16:17], np.arange(20)[14:15])
    assert index.search(rows[:17], 1, probes=3).ids[:, 0].tolist() == [*range(10), 100, 50, 101, 102, 77, 78, 14]
    refuses(ValueError, "ids must differ, got 7 twice", index.add, rows[:2], [7, 7])


def test_ids_that_are_there_already(rows):
    index = filled(nearwise.IvfPq, rows, lists=8, code_bytes=4)
    refuses(ValueError, "id 5 is in the index already", index.add, rows[:2], [5, 10**15])
    assert len(index) == 2000 and 10**15 not in index
    assert index.add(rows[:2], [5, 10**15], on_duplicate="keep") == 1
    np.testing.assert_array_equal(index.get([5, 10**15]), rows[[5, 1]])
    assert index.add(rows[:2], [5, 10**15], on_duplicate="replace") == 2
    np.testing.assert_array_equal(index.get([5, 10**15]), rows[[0, 1]])
    index.update([5], rows[5:6])
    np.testing.assert_array_equal(index.get([5]), rows[5:6])
    refuses(ValueError, "id 4242 is not in the index", index.update, [4242], rows[:1])
    refuses(ValueError, "id 4242 is not in the index", index.get, [4242])
    refuses(ValueError, "on_duplicate: expected one of refuse, replace, keep", index.add, rows[:1], on_duplicate="never")
    assert index.ids().tolist() == [*range(2000), 10**15]
    assert 5 in index and np.int64(5) in index and 2000 not in index and -1 not in index and "5" not in index
    assert index.remove([5, 5, 7000]) == 1 and 5 not in index
    index.compact()
    assert_same(index.search(rows[6:9], 1), nearwise.knn(rows[6:9], rows, 1))


@pytest.mark.parametrize("vectors", ["keep", "f16", "u8", "none"])
def test_what_is_kept_of_the_vectors(rows, vectors, tmp_path):
    index = nearwise.IvfPq.build(rows, lists=8, code_bytes=4, vectors=vectors)
    assert index.vectors == vectors and index.vector_bytes == {"keep": 96, "f16": 48, "u8": 24, "none": 0}[vectors]
    assert index.keeps_vectors == (vectors == "keep")
    index.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw")
    assert_same(loaded.search(rows[:50], 5), index.search(rows[:50], 5))
    np.testing.assert_array_equal(loaded.get(range(100)), index.get(range(100)))
    error = np.abs(index.get(range(2000)) - rows).max()
    assert error <= {"keep": 0, "f16": 0.004, "u8": 0.03, "none": 4}[vectors]
    if vectors != "none":
        truth = nearwise.knn(rows[:100], rows, 10).ids
        found = index.search(rows[:100], 10).ids
        assert np.mean([len(set(a) & set(b)) for a, b in zip(truth, found)]) > 8.9
    refuses(ValueError, "vectors: must be keep, f16, u8, none or file", nearwise.IvfPq.build, rows, vectors="all")


def test_a_search_that_misses_the_target_warns_once(rows):
    index = nearwise.IvfPq.build(rows, lists=8, code_bytes=2, target_recall=0.9)
    with pytest.warns(nearwise.RecallWarning, match=r"searches of this index find 0\.\d+ of the 10 nearest") as caught:
        index.search(rows[:3], 10, codes_only=True)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(rows[:3], 10, codes_only=True)
        nearwise.IvfPq.build(rows, lists=8, code_bytes=2, target_recall=0.9).search(rows[:3], 10)


@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq])
def test_the_recall_holds_for_other_k(kind):
    every = np.random.default_rng(5).standard_normal((4400, 12), dtype=np.float32)
    vectors, queries = every[:4000], every[4000:]
    index = kind.build(vectors, lists=100, **({} if kind is nearwise.IvfFlat else {"code_bytes": 4}))
    assert [one.k for one in index.calibration.other_k] == [1, 100]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in (1, 10, 40, 100):
            truth, found = nearwise.knn(queries, vectors, k).ids, index.search(queries, k).ids
            assert np.mean([len(set(a) & set(b)) / k for a, b in zip(truth, found)]) >= 0.895
    message = r"calibrated for k up to 100, and not known for k = 1000: call calibrate\(largest_k=1000\)"
    with pytest.warns(nearwise.RecallWarning, match=message) as caught:
        index.search(queries[:3], 1000)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index.search(queries[:3], 1000)  # once
        wide = copy.copy(index)
        wide.calibrate(largest_k=1000)
        wide.search(queries[:3], 1000)


def test_fewer_vectors_than_k_are_all_found(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = nearwise.IvfFlat.build(rows[:70], lists=6)
        assert (index.search(rows[:9], 200).ids >= 0).sum(axis=1).tolist() == [70] * 9


@pytest.mark.parametrize("kind", [nearwise.IvfPq, nearwise.IvfLsq])
def test_vectors_in_a_file(rows, tmp_path, kind):
    path = tmp_path / "base.fbin"
    nearwise.write_vectors(path, rows)
    options = {"lists": 8, "code_bytes": 4} | ({"rounds": 1} if kind is nearwise.IvfLsq else {})
    kept = kind.build(rows, **options)
    linked = kind.build(nearwise.read_vectors(path), vectors=f"file:{path}", **options)
    assert linked.vectors == f"file:{path}" and linked.vector_bytes == 4 and linked.keeps_vectors
    assert linked.calibration == kept.calibration
    linked.save(tmp_path / "index.nw")
    for index in (linked, copy.copy(linked), pickle.loads(pickle.dumps(linked)), nearwise.load(tmp_path / "index.nw")):
        assert index.vectors == linked.vectors
        assert_same(index.search(rows[:30], 7), kept.search(rows[:30], 7))
        np.testing.assert_array_equal(index.get([5, 3]), rows[[5, 3]])
    refuses(ValueError, "vectors must be those from row 2000 on", linked.add, rows[:3])
    assert len(linked) == 2000
    linked.remove([7])
    linked.add(rows[7:8], [7])  # the row of its id
    refuses(ValueError, "vector 0 is not row 0", kind.build, rows[::-1], vectors=f"file:{path}", **options)
    refuses("not_found", "missing", kind.build, rows, vectors=f"file:{tmp_path / 'missing.fbin'}", **options)
    path.rename(tmp_path / "elsewhere.fbin")
    refuses(FileNotFoundError, "base.fbin', which does not exist", nearwise.load, tmp_path / "index.nw")


def test_rows_of_another_order_are_refused(rows):
    index = nearwise.IvfPq.build(rows, lists=30, code_bytes=4, vectors="none", target_recall=0.1)
    refuses(ValueError, "must hold the vectors of the index by id", index.search, rows[:5], 3, rerank=rows[::-1])


def test_candidates_from_elsewhere(rows):
    index = filled(nearwise.IvfPq, rows, lists=8, code_bytes=4)
    truth = nearwise.knn(rows[:9], rows, 30)
    candidates = np.hstack([truth.ids[:, ::-1], np.full((9, 1), -1), np.full((9, 1), 10**12)])
    found = index.rerank(rows[:9], candidates, 5)
    assert_same(found, nearwise.Neighbors(truth.ids[:, :5], truth.distances[:, :5]))


def test_the_lower_id_wins_a_tie(rows):
    index = nearwise.IvfFlat.train(rows, lists=3)
    index.add(np.repeat(rows[:1], 5, axis=0), [9, 4, 12, 5, 0])
    assert index.search(rows[:1], 6).ids.tolist() == [[0, 4, 5, 9, 12, -1]]


def test_padding(rows):
    for metric in oracle.METRICS:
        index = nearwise.IvfFlat.train(rows, lists=4, metric=metric)
        worst = -np.inf if metric == "inner_product" else np.inf
        nothing = index.search(rows[:2], 3)
        assert (nothing.ids == -1).all() and (nothing.distances == worst).all()
        index.add(rows[:2])
        some = index.search(rows[:2], 5, probes=4)
        assert (some.ids[:, :2] >= 0).all() and (some.ids[:, 2:] == -1).all() and (some.distances[:, 2:] == worst).all()


def test_remove(flat, rows):
    assert flat.remove([3, 5, 99_999, 3]) == 2
    assert flat.remove(np.array([], np.int64)) == 0 and flat.remove([]) == 0
    assert len(flat) == 1998
    kept = np.setdiff1d(np.arange(2000), [3, 5])
    assert_same(flat.search(rows[:20], 8, probes=6), expected(flat, rows[kept], kept, rows[:20], 8, 6))
    assert flat.remove(np.arange(2000)) == 1998 and len(flat) == 0
    flat.add(rows[:1])
    assert flat.search(rows[:1], 1, probes=16).ids.tolist() == [[2000]]  # ids are not given twice


def test_merge(rows, flat, product):
    for whole in (flat, product):
        left, right = whole.empty_copy(), whole.empty_copy()
        assert type(left) is type(whole) and len(left) == 0 and left.probes == whole.probes
        left.add(rows[:700])
        right.add(rows[700:], np.arange(700, 2000))
        left.merge(right)
        assert (len(left), len(right)) == (2000, 1300)
        assert_same(left.search(rows[:30], 9), whole.search(rows[:30], 9))
    refuses(ValueError, "merge: both indexes must have the same quantizers", flat.merge, product)
    with pytest.raises(ValueError, match="merge: both indexes must have the same quantizers"):
        flat.merge(nearwise.IvfFlat.train(rows, lists=16, seed=1))
    refuses(ValueError, "merge: the other index must not be the index itself", flat.merge, flat)
    refuses(TypeError, "other: expected an index, got ndarray", flat.merge, rows)


def test_arrays_as_they_lie(rows, tmp_path):
    wide = np.full((4000, 40), np.nan, np.float32)
    wide[::2, 3:27] = rows
    strided = wide[::2, 3:27]
    strided.flags.writeable = False
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)
    mapped = nearwise.read_vectors(tmp_path / "rows.fbin")
    answers = []
    for given_rows in (rows, strided, mapped, rows.astype(np.float64), np.asfortranarray(rows), rows.tolist()):
        index = filled(nearwise.IvfPq, given_rows, lists=5, code_bytes=6)
        answers.append(index.search(given_rows[:20], 5, rerank=given_rows))
    for answer in answers[1:]:
        assert_same(answer, answers[0])


def test_rows_that_are_gone_are_not_needed(rows):
    own = rows.copy()
    index = filled(nearwise.IvfFlat, own, lists=4)
    own[:] = np.nan
    assert index.search(rows[:50], 1, probes=4).ids[:, 0].tolist() == list(range(50))


def test_types_are_shipped():
    stub = (Path(_core.__file__).parent / "_core.pyi").read_text()
    for name in ("class Ivf:", "def make_ivf(", "def load_ivf("):
        assert name in stub


def test_keywords_are_the_fields_of_the_options():
    machine = fields_of("context.h", "ContextOptions").keys() - {"clock", "memory_in_use"}
    training = {"metric", "lists", "iterations", "training_rows"} | machine
    for offered, expected_names in [
        (nearwise.IvfFlat.train, training),
        (nearwise.IvfPq.train, training | {"code_bytes", "bits", "vectors"}),
        (nearwise.IvfLsq.train, training | {"vectors", "code_bytes", "rounds", "train_iterations", "encode_iterations"}),
        (nearwise.Ivf.search, {"probes", "codes_only", "rerank", "candidates", "context", "progress"}),
        (nearwise.Ivf.calibrate, {"target_recall", "queries", "rerank", "context", "progress"}),
        (nearwise.load, machine - {"seed", "progress"}),
    ]:
        assert expected_names <= set(inspect.signature(offered).parameters), offered
    for kind in (nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq):
        trained, built = (set(inspect.signature(made).parameters) for made in (kind.train, kind.build))
        assert built - trained == {"target_recall"} and trained <= built
