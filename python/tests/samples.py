"""Rows for the tests of answers."""

import ml_dtypes
import numpy as np

TYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8)
TAILS = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100)


def random_rows(seed, rows, dim, dtype, spread=4):
    """Few different values, so that ties are frequent."""
    values = np.random.default_rng(seed).integers(0, spread, (rows, dim))
    return values.astype(np.float32).astype(dtype)


def positive_rows(seed, rows, dim, dtype):
    """Values that every type holds, in no pattern."""
    values = np.random.default_rng(seed).standard_normal((rows, dim)) * 20
    return values.clip(0, 100).astype(np.float32).astype(dtype)


def filled(kind, rows, **options):
    """An index of a class, trained on rows that are then added."""
    index = kind.train(rows, **options)
    index.add(rows)
    return index


def assert_same(found, expected):
    """Named tuples of arrays, bit for bit."""
    assert type(found) is type(expected)
    for name, left, right in zip(found._fields, found, expected):
        assert left.dtype == right.dtype, name
        np.testing.assert_array_equal(left.view(f"u{left.itemsize}"), right.view(f"u{right.itemsize}"), name)
