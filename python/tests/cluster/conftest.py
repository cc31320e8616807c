"""A cluster for the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # samples.py

from ray_nodes import Nodes  # noqa: E402


@pytest.fixture(scope="session")
def started_cluster():
    nodes = Nodes(count=3, cpus=8)
    yield nodes
    nodes.end()


@pytest.fixture
def cluster(started_cluster):
    started_cluster.repair()
    return started_cluster
