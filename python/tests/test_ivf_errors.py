"""Wrong arguments of inverted files are named, and limits are kept."""

import nearwise
import numpy as np
import pytest
from checks import refuses, spoiled
from nearwise import _core
from samples import assert_same, filled


def test_memory_limit(rows):
    index = filled(nearwise.IvfFlat, rows, lists=8, memory_limit="4MiB")  # 200 KiB
    unlimited = filled(nearwise.IvfFlat, rows, lists=8)
    assert_same(index.search(rows, 3), unlimited.search(rows, 3))
    many = np.tile(rows, (30, 1))
    refuses("out_of_memory", "memory limit", index.add, many)
    assert len(index) == 2000
    refuses("out_of_memory", "", index.search, rows, 1000)  # 24 MB of results
    refuses("out_of_memory", "", nearwise.IvfFlat.train, rows, lists=8, memory_limit="10KiB")
    wide = rows.astype(np.float64)
    refuses("out_of_memory", "rows: a converted copy of float64", nearwise.IvfFlat.train, wide, memory_limit=100_000)
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
        ({"metric": "l3"}, ValueError, "metric: expected one of sqeuclidean, euclidean, inner_product, cosine"),
        ({"lists": 0}, ValueError, "lists: expected at least 1, got 0"),
        ({"lists": 2001}, ValueError, "train: lists must be 1 to 2000, as there are 2000 vectors, got 2001"),
        ({"lists": 1.5}, TypeError, "lists: expected an integer"),
        ({"iterations": 0}, ValueError, "iterations: expected at least 1, got 0"),
        ({"seed": -1}, ValueError, "seed: expected at least 0"),
        ({"seed": 2**64}, ValueError, "seed: expected at most"),
        ({"bits": 5}, ValueError, "train: bits must be 4 or 8, got 5"),
        ({"code_bytes": 25}, ValueError, "train: code_bytes must be 1 to 24, the dimension, got 25"),
        ({"device": "tpu"}, ValueError, "device must be cpu, cuda or cuda:N, got 'tpu'"),
        ({"isa": "mmx"}, ValueError, "mmx"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer"),
        ({"memory_limit": "much"}, ValueError, "memory_limit: expected bytes"),
        ({"progress": 3}, TypeError, "progress: expected None, True or a callable"),
        ({"colour": "red"}, TypeError, "colour"),
    ],
)
def test_wrong_options_of_the_training(options, kind, text, rows):
    refuses(kind, text, nearwise.IvfPq.train, rows, **{"lists": 4, **options})


def test_wrong_rows_of_the_training(rows):
    refuses(ValueError, "train: there must be at least 1 vector, got 0", nearwise.IvfFlat.train, rows[:0])
    refuses(ValueError, r"rows: expected a 2-D .*rows\[None, :\]", nearwise.IvfFlat.train, rows[0])
    refuses(ValueError, "256", nearwise.IvfPq.train, rows[:255], lists=2)
    refuses(ValueError, r"\b17\b", nearwise.IvfFlat.train, spoiled(rows, 17), lists=4)
    refuses(TypeError, "", nearwise.IvfFlat.train, rows, "cosine")


def test_wrong_additions(flat, rows):
    for call, kind, text in [
        (lambda: flat.add(rows[:, :23]), ValueError, "add: vectors and index must have the same dimension, got 23 and 24"),
        (lambda: flat.add(rows.astype(np.float16)), ValueError, "add: rows must have the element type of the training, f32, got f16"),
        (lambda: flat.add(spoiled(rows, 1234, np.inf)), ValueError, r"\b1234\b"),
        (lambda: flat.add(rows[:3], [1, 2]), ValueError, "add: expected one id per vector, got 2 for 3 vectors"),
        (lambda: flat.add(rows[:3], []), ValueError, "add: expected one id per vector, got 0 for 3 vectors"),
        (lambda: flat.add(rows[:3], [1, -2, 3]), ValueError, "add: ids must be 0 to 9223372036854775806, got -2"),
        (lambda: flat.add(rows[:1], [1.0]), ValueError, "ids: expected integers, got dtype float64"),
        (lambda: flat.add(rows[:1], [[1]]), ValueError, r"ids: expected a 1-D array, got shape \(1, 1\)"),
        (lambda: flat.add(rows[:1], np.array([2**63], np.uint64)), ValueError, "ids: expected at most 9223372036854775807"),
        (lambda: flat.remove([0.5]), ValueError, "ids: expected integers"),
    ]:
        refuses(kind, text, call)
    assert len(flat) == 2000


def test_wrong_searches(flat, rows):
    for call, kind, text in [
        (lambda: flat.search(rows[:, :23], 1), ValueError, "search: queries and index must have the same dimension, got 23 and 24"),
        (lambda: flat.search(rows[:2], 0), ValueError, "k: expected at least 1, got 0"),
        (lambda: flat.search(rows[:2], 1.5), TypeError, "k: expected an integer"),
        (lambda: flat.search(rows[:2], 1, probes=17), ValueError, "search: probes must be 1 to 16, got 17"),
        (lambda: flat.search(rows[:2], 1, probes=0), ValueError, "probes: expected at least 1"),
        (lambda: flat.search(rows[:2], 5, rerank=rows, candidates=4), ValueError, "candidates must be at least k = 5, got 4"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:1999]), ValueError, "a row for every id, got 1999 rows"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:0]), ValueError, "rerank must hold a vector for every id, got none"),
        (lambda: flat.search(rows[:2], 5, rerank=rows[:, :5]), ValueError, "5 and 24|24 and 5"),
        (lambda: flat.search(rows[None], 5), ValueError, "queries: expected a 2-D .* got 3-D"),
        (lambda: flat.search(rows[:2], 5, 3), TypeError, "positional"),
        (lambda: flat.list_size(16), ValueError, "list_size: .*0 to 15, got 16"),
        (lambda: flat.list_size(-1), ValueError, "list: expected at least 0"),
    ]:
        refuses(kind, text, call)


def test_ids_at_the_end_of_the_range(rows):
    index = nearwise.IvfFlat.train(rows, lists=2)
    index.add(rows[:1], [2**63 - 2])
    refuses(ValueError, "id", index.add, rows[1:2], [2**63 - 1])
    refuses(ValueError, "id", index.add, rows[1:3])  # there is one number left
    assert index.search(rows[:1], 1, probes=2).ids.tolist() == [[2**63 - 2]] and len(index) == 1


def test_classes_are_not_made_by_hand():
    for kind in (nearwise.Ivf, nearwise.IvfFlat, nearwise.IvfPq, nearwise.IvfLsq):
        refuses(TypeError, "an index is made by build or train of IvfFlat, IvfPq or IvfLsq", kind)
    refuses(TypeError, "", _core.Ivf)


def test_the_private_class_checks_again(flat, rows):
    kept, settings = flat._index, nearwise._context.Call("test", None).settings
    vectors = _core.Rows(array=rows[:2], type="f32", name="rows")
    with pytest.raises(ValueError):
        kept.add(rows=_core.Rows(array=rows.astype(np.float16), type="f16", name="rows"), ids=None, on_duplicate="refuse",
                 settings=settings, progress=None)
    refuses(TypeError, "", kept.add, rows=rows[:2], ids=None, on_duplicate="refuse", settings=settings, progress=None)
    refuses(TypeError, "", kept.add, rows=vectors, ids=np.arange(4)[::2], on_duplicate="refuse", settings=settings, progress=None)
    refuses(TypeError, "", kept.remove, ids=np.zeros(3, np.float64), settings=settings, progress=None)
    assert len(flat) == 2000
