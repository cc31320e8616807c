"""Dimensions, parameters and training data that make no index."""

import numpy as np
from outcomes import marked, right, right_if, wrong
from vectors import QUERIES, ROWS, K, nearest, recall

from cases.registry import Cases

CASES = Cases()


@CASES.add()
def no_dimensions(adapter):
    """vectors without elements"""
    index = adapter.empty(dim=0)
    adapter.add(index, np.zeros((500, 0), np.float32))
    adapter.search(index, np.zeros((1, 0), np.float32), 1)
    return wrong("accepted and searched")


@CASES.add("declared")
def negative_dimensions(adapter):
    """dimension -1"""
    adapter.add(adapter.declared(-1), ROWS[:5])
    return wrong("accepted")


@CASES.add("declared")
def far_too_many_dimensions(adapter):
    """dimension 2^31"""
    adapter.declared(2**31)
    return right("made without memory for vectors")


@CASES.add()
def senseless_parameters(adapter):
    """senseless parameters: degree 0, more lists than vectors, more parts than dimensions"""
    index = adapter.degenerate()
    if "queries" in adapter.lacks or adapter.size(index) == 0:
        return wrong("accepted")
    found = recall(adapter.search(index, QUERIES, K)[0], nearest(ROWS[:500], QUERIES, K))
    return right_if(found > 0.5, f"accepted, recall {found:.3f}")


@CASES.add()
def too_few_training_vectors(adapter):
    """training on 10 vectors"""
    adapter.train(ROWS[:10])
    return wrong("accepted")


@CASES.add()
def training_on_nan(adapter):
    """training on a vector with NaN"""
    vectors = ROWS.copy()
    vectors[3, 3] = np.nan
    adapter.train(vectors)
    return wrong("accepted")


@CASES.add()
def search_before_training(adapter):
    """search before training"""
    ids = np.asarray(adapter.search(adapter.untrained(), QUERIES[:2], 3)[0])
    return marked("every id is -1") if (ids == -1).all() else wrong(f"ids {ids[0].tolist()}")


@CASES.add("capacity")
def capacity_beyond_32_bits(adapter):
    """a capacity of 2^33 vectors"""
    adapter.empty(dim=1, capacity=2**33)
    return wrong("accepted, with internal ids of 32 bits")


@CASES.add()
def one_vector(adapter):
    """an index of a single vector"""
    index = adapter.built(ROWS[:1])
    if "queries" in adapter.lacks:
        return right(f"size {adapter.size(index)}")
    ids = np.asarray(adapter.search(index, ROWS[:1], 1)[0])
    return right_if(ids.ravel().tolist() == [0], f"ids {ids.ravel().tolist()}")
