"""Shared by the tests: repeatable properties, and a small data set."""

import os

import nearwise
import numpy as np
import pytest
from hypothesis import settings
from samples import filled

# Repeatable and without a database: a failure in CI is a failure here. More examples on demand.
settings.register_profile(
    "nearwise",
    max_examples=int(os.environ.get("NEARWISE_EXAMPLES", "60")),
    deadline=None,
    database=None,
    derandomize="NEARWISE_EXAMPLES" not in os.environ,
)
settings.load_profile("nearwise")

# In a process of their own: test_cluster.py.
collect_ignore = [] if os.environ.get("NEARWISE_ISOLATED") == "1" else ["cluster"]


@pytest.fixture
def base():
    return np.random.default_rng(1).standard_normal((300, 24), dtype=np.float32)


@pytest.fixture
def queries():
    return np.random.default_rng(2).standard_normal((20, 24), dtype=np.float32)


@pytest.fixture
def rows():
    return np.random.default_rng(5).standard_normal((2000, 24), dtype=np.float32)


@pytest.fixture
def flat(rows):
    return filled(nearwise.IvfFlat, rows, lists=16)


@pytest.fixture
def product(rows):
    return filled(nearwise.IvfPq, rows, lists=16, code_bytes=12)
