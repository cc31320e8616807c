"""Changes of graph indexes."""

import copy
import threading

import numpy as np
import pytest

import nearwise
from checks import refuses

RNG = np.random.default_rng(6)
ROWS = RNG.standard_normal((1500, 12)).astype(np.float32)
QUERIES = RNG.standard_normal((30, 12)).astype(np.float32)


@pytest.fixture
def index():
    return nearwise.GraphIndex.build(ROWS[:800], degree=16, target_recall=0.9)


def expect(index, content):
    """The index holds these rows of ROWS by id, and no others."""
    ids = np.array(sorted(content))
    rows = ROWS[[content[id] for id in ids]]
    assert len(index) == len(ids)
    np.testing.assert_array_equal(index.ids(), ids)
    np.testing.assert_array_equal(index.get(ids), rows)
    found, exact = index.search(QUERIES, 10, beam=len(ids)), nearwise.knn(QUERIES, rows, 10)
    np.testing.assert_array_equal(found.ids, ids[exact.ids])
    np.testing.assert_array_equal(found.distances, exact.distances)


def test_vectors_come_and_go(index):
    content = {id: id for id in range(800)}
    assert index.next_id == 800
    assert index.add(ROWS[800:900]) == 100 and index.next_id == 900
    content |= {id: id for id in range(800, 900)}
    expect(index, content)
    assert index.remove([5, 5, 850, 10_000]) == 2
    assert 5 not in index and 6 in index
    del content[5], content[850]
    expect(index, content)
    index.update([6, 7], ROWS[900:902])
    content |= {6: 900, 7: 901}
    expect(index, content)
    assert index.add(ROWS[902:905], [5, 7, 2000], on_duplicate="keep") == 2
    content |= {5: 902, 2000: 904}
    assert index.add(ROWS[905:907], [7, 2000], on_duplicate="replace") == 2
    content |= {7: 905, 2000: 906}
    expect(index, content)
    index.compact()
    expect(index, content)
    expect(copy.copy(index), content)
    assert index.remove(index.ids()) == len(content) and len(index) == 0
    assert (index.search(QUERIES, 3).ids == -1).all()
    index.add(ROWS[:50])
    expect(index, {2001 + row: row for row in range(50)})


def test_wrong_arguments(index):
    before = index.to_bytes()
    refuses("invalid_argument", "id 3 is in the index already", index.add, ROWS[:1], [3])
    refuses("invalid_argument", "expected one id per vector", index.add, ROWS[:2], [3])
    refuses("invalid_argument", "id 5000 is not in the index", index.update, [5000], ROWS[:1])
    refuses("invalid_argument", "element type", index.add, ROWS[:2].astype(np.float16))
    refuses("invalid_argument", "dimension", index.add, ROWS[:2, :5])
    refuses("invalid_argument", "on_duplicate", index.add, ROWS[:2], on_duplicate="maybe")
    refuses("invalid_argument", "row 1", index.add, np.array([[0] * 12, [np.nan] * 12], np.float32))
    assert index.to_bytes() == before


def test_a_memory_limit_is_kept():
    index = nearwise.GraphIndex.build(ROWS[:800], degree=16, target_recall=0.9, memory_limit="16MiB")
    index.add(ROWS[800:820])
    with pytest.raises(nearwise.OutOfMemoryError):
        index.add(np.tile(ROWS, (60, 1)))
    assert len(index) == 820


def test_threads_search_while_vectors_change(index):
    stop = threading.Event()
    wrong = []

    def search():
        while not stop.is_set():
            found = index.search(ROWS[:20], 1, beam=1000)
            if (found.distances != 0).any() or (found.ids[:, 0] != np.arange(20)).any():
                wrong.append(found)

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        index.add(ROWS[800:900], np.arange(5000, 5100))
        index.update(np.arange(5000, 5100), ROWS[900:1000])
        index.remove(np.arange(5000, 5100))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(index) == 800
