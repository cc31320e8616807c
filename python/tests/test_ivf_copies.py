"""Copies of inverted files: copy.copy, copy.deepcopy, pickling and bytes."""

import copy
import pickle

import nearwise
import numpy as np
import pytest
from checks import refuses
from samples import random_rows


@pytest.fixture(scope="module")
def rows():
    return random_rows(5, 800, 12, np.float32)


def by_bytes(index):
    return nearwise.from_bytes(index.to_bytes(), type(index))


COPIES = [copy.copy, copy.deepcopy, by_bytes, lambda index: pickle.loads(pickle.dumps(index))]


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("kind", [nearwise.IvfFlat, nearwise.IvfPq])
def test_a_copy_is_an_index_of_its_own(rows, kind, copied):
    index = kind.build(rows, lists=8, seed=2)
    index.provenance = index.provenance | {"note": "mine"}
    other = copied(index)
    assert type(other) is kind and other.calibration == index.calibration and other.provenance == index.provenance
    assert other.to_bytes() == index.to_bytes()
    before = index.search(rows[:9], 5)
    other.remove(before.ids[:, 0])
    other.add(rows[:1], [10**9])
    assert len(index) == 800 and 10**9 not in index and 10**9 in other
    np.testing.assert_array_equal(index.search(rows[:9], 5).ids, before.ids)


def test_a_copy_remembers_the_context(rows):
    index = nearwise.IvfPq.build(rows, lists=8, threads=1, memory_limit="64MiB")
    assert pickle.loads(pickle.dumps(index))._context == index._context


def test_bytes_of_something_else(rows):
    data = nearwise.IvfPq.build(rows, lists=8).to_bytes()
    refuses(TypeError, "expected a KnnGraph, the file holds an IvfPq", nearwise.from_bytes, data, nearwise.KnnGraph)
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(nearwise.Error, match="bytes.nw"):
        nearwise.from_bytes(damaged)
    with pytest.raises(nearwise.Error):
        nearwise.from_bytes(b"")
    refuses(TypeError, "bytes-like", nearwise.from_bytes, "text")
