"""Inverted files of additive codes."""
import numpy as np
import pytest
from checks import refuses

import nearwise
import oracle
from samples import assert_same, filled

QUICK = {"lists": 10, "code_bytes": 4, "rounds": 3, "train_iterations": 2, "encode_iterations": 4}


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(9).standard_normal((1200, 16), dtype=np.float32)


@pytest.fixture(scope="module")
def index(rows):
    return filled(nearwise.IvfLsq, rows, **QUICK)


def test_what_it_is(index):
    assert (len(index), index.code_bytes, index.dim, index.lists) == (1200, 4, 16, 10)
    assert repr(index).startswith("<nearwise.IvfLsq: 1200 vectors of 16 elements in 10 lists, 4 bytes each")
    assert "code_bytes 4, rounds 3, train_iterations 2, encode_iterations 4" in index.provenance["training"]


@pytest.mark.parametrize("metric", oracle.METRICS)
def test_a_rerank_at_everything_is_the_truth(rows, metric):
    index = filled(nearwise.IvfLsq, rows, metric=metric, **QUICK)
    found = index.search(rows[:20], 10, probes=10, rerank=rows, candidates=1200)
    truth = nearwise.knn(rows[:20], rows, 10, metric=metric)
    assert_same(found, truth)


def test_codes_lose_less_than_product_codes(rows, index):
    product = filled(nearwise.IvfPq, rows, lists=10, code_bytes=4)
    # Of every vector to the nearest reconstruction.
    lost, lost_by_product = (each.search(rows, 1, probes=10, codes_only=True).distances.mean() for each in (index, product))
    assert lost < lost_by_product


def test_saved_and_loaded(rows, index, tmp_path):
    index.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw")
    assert type(loaded) is nearwise.IvfLsq and type(loaded.empty_copy()) is nearwise.IvfLsq
    np.testing.assert_array_equal(loaded.search(rows[:30], 9).ids, index.search(rows[:30], 9).ids)
    loaded.remove(range(0, 1200, 2))
    more = index.empty_copy()
    more.add(rows, range(5000, 6200))
    loaded.merge(more)
    assert len(loaded) == 1800


def test_build_measures(rows):
    index = nearwise.IvfLsq.build(rows, target_recall=0.8, **QUICK)
    assert index.calibration.reached and index.calibration.candidates >= 25


def test_threads_do_not_matter_and_seeds_do(rows):
    def answers(**options):
        index = filled(nearwise.IvfLsq, rows, **QUICK, **options)
        return index.search(rows[:50], 5, probes=3).distances.tolist()

    assert answers(threads=1) == answers(threads=2, memory_limit="64MiB") != answers(seed=3)


@pytest.mark.parametrize(
    "wrong, words",
    [({"code_bytes": 0}, "code_bytes: expected at least 1"), ({"code_bytes": 33}, "code_bytes must be 1 to 32"),
     ({"train_iterations": 0}, "train_iterations"), ({"encode_iterations": 0}, "encode_iterations"),
     ({"encode_iterations": 65_537}, "encode_iterations must be 1 to 65536, got 65537")],
)
def test_what_makes_no_sense(rows, wrong, words):
    refuses((ValueError, nearwise.Error), words, nearwise.IvfLsq.train, rows, **{**QUICK, **wrong})
