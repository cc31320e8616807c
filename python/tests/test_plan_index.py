"""nearwise.plan_index: the index of a build in memory, by tasks over files."""

import pickle

import numpy as np
import pytest
from checks import refuses

import nearwise


@pytest.fixture
def path(tmp_path):
    rows = np.random.default_rng(3).standard_normal((20_000, 16)).astype(np.float32)
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)
    return tmp_path / "rows.fbin"


def plan_in(path, **options):
    return nearwise.plan_index(path, path.parent / "work", path.parent / "index.nw", memory_limit="48MiB", **options)


@pytest.mark.parametrize("codec, build", [("pq", nearwise.IvfPq.build), ("flat", nearwise.IvfFlat.build)])
def test_is_the_index_of_a_build(path, codec, build):
    plan = pickle.loads(pickle.dumps(plan_in(path, codec=codec, lists=40, seed=3, provenance={"base": "rows"})))
    assert plan.disk_bytes > 0 and plan.memory_bytes <= 48 << 20
    for task in plan.tasks:
        assert plan.run_task(task.name) == "done" and plan.run_task(task.name) == "done before"
    found, rows = plan.load(), nearwise.read_vectors(path)
    expected = build(rows, lists=40, seed=3)
    assert len(found) == len(rows) and found.calibration == expected.calibration
    for one, other in zip(found.search(rows[:50], 5), expected.search(rows[:50], 5)):
        np.testing.assert_array_equal(one, other)
    plan.run()  # is done
    assert found._context == nearwise.Context(device="cpu")
    given = nearwise.Context(threads=1, memory_limit="1GiB", isa="portable", device="cpu")
    again = plan.load(context=given)
    assert again._context == given
    np.testing.assert_array_equal(again.search(rows[:50], 5).ids, expected.search(rows[:50], 5).ids)
    # The plan's threads and instruction set hold, its memory limit holds only if it is given.
    other = plan_in(path, codec=codec, lists=40, seed=3, provenance={"base": "rows"}, threads=2)
    assert other.load()._context == nearwise.Context(threads=2, device="cpu")
    limited = nearwise.Context(memory_limit="48MiB")
    assert other.load(context=limited)._context == nearwise.Context(threads=2, memory_limit="48MiB", device="cpu")


def test_says_what_it_expects(path):
    refuses(ValueError, "codec: expected 'pq', 'lsq' or 'flat', got 'opq'", plan_in, path, codec="opq")
    refuses(ValueError, "lists must be 1 to 20000", plan_in, path, lists=30_000)
    refuses(ValueError, "code_bytes: .* got codec 'flat'", plan_in, path, codec="flat", code_bytes=16)
    for codec in ("flat", "lsq"):
        refuses(ValueError, f"bits: .* got codec '{codec}'", plan_in, path, codec=codec, bits=4)
    assert len(plan_in(path, codec="flat", bits=8)) > 3
    with pytest.raises(nearwise.Error, match="memory limit of 1 MiB is too small"):
        nearwise.plan_index(path, path.parent / "work", path.parent / "index.nw", memory_limit="1MiB")
