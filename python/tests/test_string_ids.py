"""Names of vectors and their ids."""

import copy
import pickle
import threading

import nearwise
import numpy as np
import pytest
from checks import damage, in_threads, refuses
from hypothesis import given
from hypothesis import strategies as st

NAMES = ["b", "a", "", "été", "中文", "🍐", "a b", "a\0b", "b" * 3000]


def by_bytes(names):
    return nearwise.from_bytes(names.to_bytes(), nearwise.StringIds)


def by_pickle(names):
    return pickle.loads(pickle.dumps(names))


def test_ids_are_numbers_in_the_order_of_appearance():
    names = nearwise.StringIds(["b", "a", "b"])
    assert len(names) == 2 and list(names) == ["b", "a"]
    added = names.add(["c", "a", "d", "c"])
    assert added.tolist() == [2, 1, 3, 2] and added.dtype == np.int64
    assert names.ids(["d", "b", "d"]).tolist() == [3, 0, 3]
    assert names.add([]).tolist() == [] == names.ids([]).tolist() and names.ids([]).dtype == np.int64
    assert "c" in names and "e" not in names and 0 not in names and None not in names
    assert repr(names) == "<nearwise.StringIds: 4 names>" and len(nearwise.StringIds()) == 0


def test_names_have_the_shape_of_the_ids():
    names = nearwise.StringIds(["a", "b", "c"])
    assert names.names([2, -1, 0]) == ["c", None, "a"]
    assert names.names(np.array([[0, 1], [2, -1]])) == [["a", "b"], ["c", None]]
    assert names.names(np.array([1], np.uint8)) == ["b"]
    assert names.names([]) == [] and names.names(np.empty((2, 0), np.int64)) == [[], []]
    for wrong in ([3], [-2], [[0, 2**60]]):
        refuses(nearwise.ArgumentError, rf"ids: expected -1 to 2, got {np.min(wrong) if wrong == [-2] else np.max(wrong)}",
                names.names, wrong)  # fmt: skip
    refuses(nearwise.ArgumentError, "ids: expected integers, got dtype float64", names.names, [0.5])
    refuses(nearwise.ArgumentError, "1-D or 2-D", names.names, 1)


def test_what_is_no_name_is_refused_and_nothing_added():
    names = nearwise.StringIds(["a"])
    refuses(nearwise.ArgumentError, "names: 'x' has no id", names.ids, ["a", "x"])
    refuses(TypeError, r"expected several names, as in \['ab'\]", names.add, "ab")
    refuses(TypeError, r"expected strings, got 5 \(int\) at 1", names.add, ["new", 5])
    refuses(TypeError, r"got b'x' \(bytes\)", names.ids, [b"x"])
    refuses(TypeError, "expected strings, got NoneType", names.add, None)
    refuses(TypeError, "1-D array of strings, got 1-D of dtype int64", names.add, np.arange(3))
    refuses(TypeError, "1-D array of strings, got 2-D", names.add, np.array([["a"]]))
    refuses(nearwise.ArgumentError, r"text that UTF-8 encodes, got 'x\\udcff'", names.add, ["new", "x\udcff"])
    assert list(names) == ["a"]


def test_arrays_of_names():
    names = nearwise.StringIds(np.array(["x", "yy"]))
    assert names.ids(np.array(["yy", "x"], object)).tolist() == [1, 0]
    assert all(type(name) is str for name in names)
    assert names.add(iter(("yy", "z"))).tolist() == [1, 2]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, by_pickle, by_bytes])
def test_a_copy_is_independent(copied):
    names = nearwise.StringIds(NAMES)
    other = copied(names)
    assert type(other) is nearwise.StringIds and list(other) == NAMES
    assert other.ids(NAMES).tolist() == names.ids(NAMES).tolist() == list(range(len(NAMES)))
    other.add(["more"])
    assert "more" not in names and len(names) == len(NAMES)


@given(st.lists(st.text()))
def test_files_hold_what_is_given(texts):
    names = nearwise.StringIds(text for text in texts if text.isprintable())
    assert list(by_bytes(names)) == list(names)


def test_files(tmp_path):
    path = tmp_path / "names.nw"
    nearwise.StringIds(NAMES).save(path)
    assert list(nearwise.load(path)) == list(nearwise.load(path, nearwise.StringIds)) == NAMES
    info = nearwise.verify(path)
    assert info.kind == "names" and [part.name for part in info.sections] == ["metadata", "offsets", "text"]
    refuses(TypeError, "expected an Ivf, the file holds a StringIds", nearwise.load, path, nearwise.Ivf)
    damage(path)
    refuses("corrupt", "names.nw", nearwise.load, path)
    refuses("not_found", "missing", nearwise.load, tmp_path / "missing.nw")
    refuses("cannot_create", "", nearwise.StringIds().save, tmp_path / "missing" / "names.nw")


def test_threads_share_the_numbers():
    names = nearwise.StringIds()
    start = threading.Barrier(4)

    def add(first):
        start.wait()
        for number in range(first, first + 2000):
            names.add([f"name {number}"])

    in_threads(add, (0,), (1000,), (0,), (1500,))()
    assert len(names) == 3500 == len(set(names))
    assert names.ids(list(names)).tolist() == list(range(3500))


def test_names_of_an_index():
    rows = np.random.default_rng(0).standard_normal((300, 8), dtype=np.float32)
    titles = [f"page {number}" for number in range(300)]
    names = nearwise.StringIds(titles[::-1])  # other numbers than those of the rows
    index = nearwise.IvfPq.train(rows, lists=4, bits=4)
    index.add(rows, names.ids(titles))
    first = names.names(index.search(rows[:20], 1).ids)
    assert [row[0] for row in first] == titles[:20]
    allowed = names.names(index.search(rows[:20], 3, filter=names.ids(["page 7", "page 9"])).ids)
    assert all(set(row) == {"page 7", "page 9", None} for row in allowed)
    others = names.names(index.search(rows[:20], 3, exclude=names.ids(titles[:20])[:, None]).ids)
    assert all(title not in row for title, row in zip(titles, others))
    assert index.remove(names.ids(["page 3"])) == 1 and "page 3" in names
