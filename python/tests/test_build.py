"""nearwise.build and nearwise.choose_index."""

import nearwise
import numpy as np
import pytest
from checks import refuses

MILLION = np.empty((1_000_000, 128), np.uint8)  # only its shape is read


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(3).standard_normal((4000, 24), dtype=np.float32)


@pytest.mark.parametrize(
    ("kind", "made", "options"),
    [
        ("exact", nearwise.Exact, {}),
        ("exact", nearwise.Exact, {"target_recall": 1}),
        ("graph", nearwise.GraphIndex, {}),
        ("ivf_flat", nearwise.IvfFlat, {"queries": "batch"}),
        ("ivf_pq", nearwise.IvfPq, {"queries": "batch"}),
    ],
)
@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_builds_every_kind(monkeypatch, rows, kind, made, options, metric):
    """Whatever is chosen: the choice itself is tested below and in C++."""
    real = nearwise._core.choose_index

    def choose(**arguments):
        estimates, reason, table = real(**arguments)
        return sorted(estimates, key=lambda estimate: estimate["kind"] != kind), reason, table

    monkeypatch.setattr(nearwise._core, "choose_index", choose)
    index = nearwise.build(rows, metric=metric, threads=1, **options)
    assert type(index) is made and index.metric == metric and index._context.threads == 1
    found = index.search(rows[:100], 10)
    exact = nearwise.knn(rows[:100], rows, 10, metric=metric)
    shared = [len(set(a) & set(b)) for a, b in zip(found.ids.tolist(), exact.ids.tolist())]
    assert sum(shared) >= 0.93 * 1000


def test_the_choice_is_what_is_built(rows):
    assert nearwise.choose_index(rows).kind == "exact"
    assert isinstance(nearwise.build(rows), nearwise.Exact)


def test_few_queries_do_not_pay_for_an_index():
    assert nearwise.choose_index(MILLION, threads=2).kind == "graph"
    assert nearwise.choose_index(MILLION, threads=2, expected_queries=100).kind == "exact"
    assert nearwise.choose_index(MILLION, target_recall=1.0).kind == "exact"


def test_explains(rows):
    choice = nearwise.choose_index(MILLION, memory_limit="600MiB", threads=2)
    assert choice.kind == choice.estimates[0].kind != "graph"
    assert "of those that fit into 600 MiB" in choice.reason
    lines = choice.explain().splitlines()
    assert lines[0] == f"{choice.kind}: {choice.reason}"
    assert len(lines) == 2 + len(choice.estimates)
    assert any(line.startswith("graph") and line.endswith("too large") for line in lines)
    assert all(estimate.total_seconds > 0 and estimate.bytes > 0 for estimate in choice.estimates)


def test_wrong_arguments(rows):
    refuses(ValueError, "queries: expected one of single, batch, got 'many'", nearwise.build, rows, queries="many")
    refuses(ValueError, "target_recall", nearwise.build, rows, target_recall=0)
    refuses(ValueError, "expected_queries", nearwise.choose_index, rows, expected_queries=-1)
    refuses(TypeError, "'recall'; did you mean 'target_recall'", nearwise.build, rows, recall=0.9)
    refuses("out_of_memory", "memory", nearwise.build, rows, memory_limit="1KiB")
