"""Wrong arguments of inverted files are named, and limits are kept."""

import nearwise
import numpy as np
import pytest
from nearwise import _core
from samples import assert_same


def test_memory_limit(rows):
    index = nearwise.IvfFlat.train(rows, lists=8, memory_limit="4MiB")
    index.add(rows)  # 200 KiB
    unlimited = nearwise.IvfFlat.train(rows, lists=8)
    unlimited.add(rows)
    assert_same(index.search(rows, 3), unlimited.search(rows, 3))
    many = np.tile(rows, (30, 1))
    with pytest.raises(nearwise.Error, match="memory limit") as caught:
        index.add(many)
    assert caught.value.code == "out_of_memory" and len(index) == 2000
    with pytest.raises(nearwise.Error) as caught:
        index.search(rows, 1000)  # 24 MB of results
    assert caught.value.code == "out_of_memory"
    with pytest.raises(nearwise.Error) as caught:
        nearwise.IvfFlat.train(rows, lists=8, memory_limit="10KiB")
    assert caught.value.code == "out_of_memory"
    with pytest.raises(nearwise.Error, match="rows: a converted copy of float64") as caught:
        nearwise.IvfFlat.train(rows.astype(np.float64), memory_limit=100_000)
    assert caught.value.code == "out_of_memory"
    assert_same(index.search(rows[:5], 3), unlimited.search(rows[:5], 3))  # still usable


def test_the_limit_holds_what_was_loaded_and_changed(flat, rows, tmp_path):
    flat.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw", memory_limit="1MiB")
    loaded.add(rows[:10])
    with pytest.raises(nearwise.Error) as caught:
        for _ in range(10):
            loaded.add(rows)
    assert caught.value.code == "out_of_memory"
    assert len(loaded) % 2000 == 10 and len(loaded) * (96 + 8) < 1 << 20


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"metric": "l2"}, ValueError, "metric: expected one of sqeuclidean, euclidean, inner_product, cosine"),
        ({"lists": 0}, ValueError, "lists: expected at least 1, given 0"),
        ({"lists": 2001}, ValueError, "train: at most as many lists as rows expected, given 2001 lists and 2000 rows"),
        ({"lists": 1.5}, TypeError, "lists: expected an integer"),
        ({"iterations": 0}, ValueError, "iterations: expected at least 1, given 0"),
        ({"seed": -1}, ValueError, "seed: expected at least 0"),
        ({"seed": 2**64}, ValueError, "seed: expected at most"),
        ({"bits": 5}, ValueError, "train: codes of 4 or 8 bits expected, given 5"),
        ({"code_bytes": 25}, ValueError, "train: codes of at most 24 bytes expected, one per dimension, given 25"),
        ({"device": "tpu"}, ValueError, "device must be cpu, cuda or cuda:N, given 'tpu'"),
        ({"isa": "mmx"}, ValueError, "mmx"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer"),
        ({"memory_limit": "much"}, ValueError, "memory_limit: expected bytes"),
        ({"progress": 3}, TypeError, "progress: expected None, True or a callable"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_wrong_options_of_the_training(options, kind, text, rows):
    with pytest.raises(kind, match=text):
        nearwise.IvfPq.train(rows, **{"lists": 4, **options})


def test_wrong_rows_of_the_training(rows):
    with pytest.raises(ValueError, match="train: at least 1 row expected, given 0"):
        nearwise.IvfFlat.train(rows[:0])
    with pytest.raises(ValueError, match=r"rows: expected a 2-D .*rows\[None, :\]"):
        nearwise.IvfFlat.train(rows[0])
    with pytest.raises(ValueError, match="256"):
        nearwise.IvfPq.train(rows[:255], lists=2)
    damaged = rows.copy()
    damaged[17, 3] = np.nan
    with pytest.raises(ValueError, match=r"\b17\b"):
        nearwise.IvfFlat.train(damaged, lists=4)
    with pytest.raises(TypeError):
        nearwise.IvfFlat.train(rows, "cosine")


def test_wrong_additions(flat, rows):
    damaged = rows.copy()
    damaged[1234, 3] = np.inf
    for call, kind, text in [
        (lambda: flat.add(rows[:, :23]), ValueError, "23 and 24"),
        (lambda: flat.add(rows.astype(np.float16)), ValueError, "add: rows of f32 expected, as those of the training, given f16"),
        (lambda: flat.add(damaged), ValueError, r"\b1234\b"),
        (lambda: flat.add(rows[:3], [1, 2]), ValueError, "add: expected one id per vector, given 2 for 3 vectors"),
        (lambda: flat.add(rows[:3], []), ValueError, "add: expected one id per vector, given 0 for 3 vectors"),
        (lambda: flat.add(rows[:3], [1, -2, 3]), ValueError, "add: ids of 0 or larger expected, given -2"),
        (lambda: flat.add(rows[:1], [1.0]), ValueError, "ids: expected integers, given dtype float64"),
        (lambda: flat.add(rows[:1], [[1]]), ValueError, r"ids: expected a 1-D array, given shape \(1, 1\)"),
        (lambda: flat.add(rows[:1], np.array([2**63], np.uint64)), ValueError, "ids: expected at most 9223372036854775807"),
        (lambda: flat.remove([0.5]), ValueError, "ids: expected integers"),
    ]:
        with pytest.raises(kind, match=text):
            call()
    assert len(flat) == 2000


def test_wrong_searches(flat, rows):
    for call, kind, text in [
        (lambda: flat.search(rows[:, :23], 1), ValueError, "23 and 24"),
        (lambda: flat.search(rows[:2], 0), ValueError, "k: expected at least 1, given 0"),
        (lambda: flat.search(rows[:2], 1.5), TypeError, "k: expected an integer"),
        (lambda: flat.search(rows[:2], 1, probes=17), ValueError, "search: probes of at most 16 lists expected, given 17"),
        (lambda: flat.search(rows[:2], 1, probes=0), ValueError, "probes: expected at least 1"),
        (lambda: flat.search(rows[:2], 5, rerank=rows, candidates=4), ValueError, "at least k = 5 candidates expected, given 4"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:1999]), ValueError, "must hold a row for every id, given 1999 rows for ids to 1999"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:0]), ValueError, "rerank must hold a vector for every id, given none"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:, :5]), ValueError, "5 and 24|24 and 5"),
        (lambda: flat.search(rows[0], 5), ValueError, r"queries\[None, :\]"),
        (lambda: flat.search(rows[:2], 5, 3), TypeError, "positional"),
        (lambda: flat.list_size(16), ValueError, "list_size: a list of 0 to 15 expected, given 16"),
        (lambda: flat.list_size(-1), ValueError, "list: expected at least 0"),
    ]:
        with pytest.raises(kind, match=text):
            call()


def test_ids_at_the_end_of_the_range(rows):
    index = nearwise.IvfFlat.train(rows, lists=2)
    index.add(rows[:1], [2**63 - 2])
    with pytest.raises(ValueError, match="id"):
        index.add(rows[1:2], [2**63 - 1])
    with pytest.raises(ValueError, match="id"):
        index.add(rows[1:3])  # there is one number left
    assert index.search(rows[:1], 1, probes=2).ids.tolist() == [[2**63 - 2]] and len(index) == 1


def test_classes_are_not_made_by_hand():
    for kind in (nearwise.Ivf, nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq):
        with pytest.raises(TypeError, match="an index is made by build or train of IvfFlat, IvfPq or IvfLsq"):
            kind()
    with pytest.raises(TypeError):
        _core.Ivf()


def test_the_private_class_checks_again(flat, rows):
    kept, settings = flat._index, nearwise._context.Call("test", None).settings
    vectors = _core.Rows(array=rows[:2], type="f32", name="rows")
    with pytest.raises(ValueError):
        kept.add(rows=_core.Rows(array=rows.astype(np.float16), type="f16", name="rows"), ids=None, settings=settings, progress=None)
    with pytest.raises(TypeError):
        kept.add(rows=rows[:2], ids=None, settings=settings, progress=None)
    with pytest.raises(TypeError):
        kept.add(rows=vectors, ids=np.arange(4)[::2], settings=settings, progress=None)
    with pytest.raises(TypeError):
        kept.remove(ids=np.zeros(3, np.float64), settings=settings, progress=None)
    assert len(flat) == 2000
