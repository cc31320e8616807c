"""nearwise.plan_graph_index: a graph index by tasks over files."""

import pickle

import numpy as np
import pytest
from checks import refuses

import nearwise


@pytest.fixture
def path(tmp_path):
    rows = np.random.default_rng(3).integers(0, 256, (3000, 12), dtype=np.uint8)
    nearwise.write_vectors(tmp_path / "rows.u8bin", rows)
    return tmp_path / "rows.u8bin"


def plan_in(path, **options):
    return nearwise.plan_graph_index(path, path.parent / "work", path.parent / "index.nw", memory_limit="64MiB", **options)


def test_is_the_index_of_the_graph_of_plan_graph(path):
    plan = pickle.loads(pickle.dumps(plan_in(path, degree=32, seed=3, provenance={"base": "rows"})))
    for task in plan.tasks:
        assert plan.run_task(task.name) in ("done", "not needed")
    found, rows = plan.load(), nearwise.read_vectors(path)
    graph = nearwise.plan_graph(path, path.parent / "other", path.parent / "graph.nw", 32, memory_limit="64MiB", seed=3)
    graph.run()
    expected = nearwise.GraphIndex.from_knn_graph(graph.load(), rows, degree=32, seed=3)
    assert found.calibration == expected.calibration and found.provenance["base"] == "rows"
    for one, other in zip(found.search(rows, 40, beam=60), expected.search(rows, 40, beam=60)):
        np.testing.assert_array_equal(one, other)
    plan.run()  # is done
    assert plan.remove_work() > 0


def test_says_what_it_expects(path):
    refuses(ValueError, "degree must be a multiple of 16", plan_in, path, degree=20)
    refuses(ValueError, "graph_recall must be below 1", plan_in, path, graph_recall=1)
    with pytest.raises(nearwise.Error, match="memory limit of 1 MiB is too small"):
        nearwise.plan_graph_index(path, path.parent / "work", path.parent / "index.nw", memory_limit="1MiB")
