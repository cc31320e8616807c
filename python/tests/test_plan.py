"""nearwise.plan_graph: tasks run by name, by several processes, and again."""

import multiprocessing
import pickle

import numpy as np
import pytest
from checks import refuses

import nearwise


@pytest.fixture(params=["partitions", "pairs"])
def method(request):
    return request.param


@pytest.fixture
def path(tmp_path):
    rows = np.random.default_rng(3).standard_normal((24_000, 8)).astype(np.float32)
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)
    return tmp_path / "rows.fbin"


def plan_in(path, name, **options):
    folder = path.parent
    return nearwise.plan_graph(path, folder / name, folder / f"{name}.nw", memory_limit="40MiB", **options)


def run_in_process(plan, name):
    return plan.run_task(name)


def test_tasks_by_name_give_the_bytes_of_a_run(path, method):
    whole = plan_in(path, "whole", seed=4, method=method)
    reports = []
    whole.run(progress=lambda done, total: reports.append((done, total)))
    assert reports and reports[-1][0] == reports[-1][1]
    graph = whole.load()
    graph.validate()
    assert graph.reached and graph.recall.low >= 0.95 and len(graph) == 24_000
    assert nearwise.measure_recall(nearwise.read_vectors(path), graph, sample=500, seed=8).high >= 0.95

    again = pickle.loads(pickle.dumps(plan_in(path, "single", seed=4, method=method)))
    # Seconds are measured anew.
    assert [task[:5] for task in again.tasks] == [task[:5] for task in whole.tasks]
    done = {task.name: again.run_task(task.name) for task in again.tasks}
    if method == "partitions":
        assert done["train-0"] == "done" and done["finish"] == "done" and done["train-1"] == "not needed"
    else:
        assert set(done.values()) == {"done"} and sum(name.startswith("build-") for name in done) >= 3
        assert all(again.is_done(name) for name in done)  # though outputs have gone
    assert again.run_task("finish") == "done before" and again.is_done("finish")
    first = "train-0" if method == "partitions" else "build-0000"
    assert again.is_done(first)
    assert again.remove_work() > 0 and again.remove_work() == 0
    assert not again.is_done(first)
    again.run()
    assert again.run_task("finish") == "done before"
    assert (path.parent / "single.nw").read_bytes() == (path.parent / "whole.nw").read_bytes()


def test_several_processes_share_a_work_folder(path, method):
    plan = plan_in(path, "whole", method=method)
    plan.run()
    shared = plan_in(path, "shared", threads=1, method=method)
    left = list(shared.tasks)
    done = set()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        while left:
            ready = [task for task in left if done.issuperset(task.after)]
            pool.starmap(run_in_process, [(shared, task.name) for task in ready], chunksize=1)
            done.update(task.name for task in ready)
            left = [task for task in left if task.name not in done]
    assert (path.parent / "shared.nw").read_bytes() == (path.parent / "whole.nw").read_bytes()
    # What goes in one process goes in several.
    assert {file.name for file in (path.parent / "shared").glob("*.nw")} == {
        file.name for file in (path.parent / "whole").glob("*.nw")
    }


def test_refusals(path):
    plan = plan_in(path, "work")
    refuses(ValueError, "no task 'cook'", plan.run_task, "cook")
    refuses(ValueError, "depends on 'train-0'", plan.run_task, "assign-0-0000")
    files = (path, path.parent / "a", path.parent / "a.nw")
    refuses(ValueError, "memory_limit", nearwise.plan_graph, *files, memory_limit="much")
    refuses(ValueError, "method: expected one of partitions, pairs, got 'both'", plan_in, path, "work", method="both")
    refuses(ValueError, "must have a memory limit", nearwise.plan_graph, *files, memory_limit=None)
    refuses("out_of_memory", "", nearwise.plan_graph, *files, memory_limit="1MiB")
    plan.run_task("input")
    refuses(ValueError, "another plan", plan_in(path, "work", degree=3).run)
