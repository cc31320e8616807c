"""Tasks of plans and of k-means on several nodes: each done once, in order, whichever process dies."""

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import nearwise
import nearwise.cluster
import numpy as np
import pytest
from checks import refuses, spoiled
from halting import Halting
from nearwise.cluster import _kmeans
from nearwise.cluster._ray import Node
from nearwise.cluster._room import Room
from ray import cloudpickle
from ray_nodes import ray, wait_for

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not see this folder


class Task(NamedTuple):
    name: str
    after: tuple
    memory_bytes: int = 1 << 20


class FilePlan:
    """A plan of the smallest kind: sums over a binary tree, each in a file."""

    def __init__(self, folder, leaves, seconds=0.0, spoiled=""):
        self.folder, self.seconds, self.spoiled = Path(folder), seconds, spoiled
        names = [f"leaf{number}" for number in range(leaves)]
        self.tasks = [Task(name, ()) for name in names]
        while len(names) > 1:
            pairs = list(zip(names[::2], names[1::2]))
            names = ["+".join(pair) for pair in pairs]
            self.tasks += [Task(name, pair) for name, pair in zip(names, pairs)]

    def run_task(self, name):
        output = self.folder / name
        if output.exists():
            return "done before"
        with open(self.folder / "begun", "a") as file:
            file.write(f"{name} {os.getpid()} {ray.get_runtime_context().get_node_id()}\n")
        if name == self.spoiled:
            raise nearwise.Error("spoiled", "corrupt")
        after = next(task.after for task in self.tasks if task.name == name)
        total = sum(int((self.folder / other).read_text()) for other in after) if after else int(name[4:])
        time.sleep(self.seconds)
        temporary = output.with_suffix(f".{os.getpid()}")
        temporary.write_text(str(total))
        temporary.rename(output)
        return "done"

    def with_threads(self, threads):
        return self

    def is_done(self, name):
        return (self.folder / name).exists()

    def begun(self):
        """(task, process, node) of everything that was begun, in that order."""
        path = self.folder / "begun"
        return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []

    def result(self):
        return int((self.folder / self.tasks[-1].name).read_text())


def test_all_tasks_in_order(cluster, tmp_path):
    plan = FilePlan(tmp_path, 16)
    ended = []
    nearwise.cluster.run(plan, on_task=lambda name, outcome: ended.append((name, outcome)))
    assert plan.result() == sum(range(16))
    assert sorted(name for name, _ in ended) == sorted(task.name for task in plan.tasks)
    assert {outcome for _, outcome in ended} == {"done"}
    place = {name: number for number, (name, _) in enumerate(ended)}
    assert all(place[other] < place[task.name] for task in plan.tasks for other in task.after)
    assert len(plan.begun()) == len(plan.tasks)
    reports = []
    last = plan.tasks[-1]
    (tmp_path / last.name).unlink()
    nearwise.cluster.run(plan, on_task=lambda *end: ended.append(end), progress=lambda *pair: reports.append(pair))
    again = ended[len(plan.tasks) :]
    assert [name for name, outcome in again if outcome == "done"] == [last.name] and len(again) == len(plan.tasks)
    assert len(plan.begun()) == len(plan.tasks) + 1 and reports[-1] == (31, 31)
    # With the result there, nothing else is looked at.
    for task in plan.tasks[:-1]:
        (tmp_path / task.name).unlink()
    nearwise.cluster.run(plan, on_task=lambda *end: ended.append(end))
    assert ended[2 * len(plan.tasks) :] == [(last.name, "done before")]


def running(plan, **options):
    """Runs it in a thread, for the test to interfere; returns how to wait for the end."""
    raised = []

    def work():
        try:
            nearwise.cluster.run(plan, **options)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def finish():
        thread.join(100)
        assert not thread.is_alive(), "not over after 100 s"
        if raised:
            raise raised[0]

    return finish


def test_a_killed_worker_and_a_killed_node_cost_their_tasks_only(cluster, tmp_path):
    plan = FilePlan(tmp_path, 32, seconds=0.7)
    finish = running(plan, threads=4)  # two at a time on each node
    wait_for(lambda: len(plan.begun()) >= 8)
    os.kill(int(plan.begun()[-1][1]), signal.SIGKILL)
    wait_for(lambda: len(plan.begun()) >= 16)
    cluster.kill(plan.begun()[-1][2])
    finish()
    assert plan.result() == sum(range(32))
    # One task by the worker, and two by the node.
    assert len(plan.tasks) < len(plan.begun()) <= len(plan.tasks) + 3


def test_a_task_that_kills_its_process_is_not_begun_for_ever(cluster, tmp_path):
    class Deadly(FilePlan):
        def run_task(self, name):
            if name == "leaf2":
                with open(self.folder / "deaths", "a") as file:
                    file.write("x")
                os.kill(os.getpid(), signal.SIGKILL)
            return super().run_task(name)

    plan = Deadly(tmp_path, 4)
    refuses("device", "run: leaf2 failed 3 times, the last time: ", nearwise.cluster.run, plan, retries=2)
    assert (tmp_path / "deaths").read_text() == "xxx"


def test_what_a_task_raises_arrives_at_once(cluster, tmp_path):
    plan = FilePlan(tmp_path, 4, spoiled="leaf1")
    refuses("corrupt", "spoiled", nearwise.cluster.run, plan)
    assert [name for name, *_ in plan.begun()].count("leaf1") == 1


def test_a_task_that_takes_too_long(cluster, tmp_path):
    plan = FilePlan(tmp_path, 2, seconds=60)
    began = time.monotonic()
    with pytest.raises(nearwise.Error, match="failed 2 times, the last time: not done within 10 s"):
        nearwise.cluster.run(plan, retries=1, timeout=10)
    assert time.monotonic() - began < 50
    # And its processes are gone.
    wait_for(lambda: not any(os.path.exists(f"/proc/{process}") for _, process, _ in plan.begun()))


def test_no_room_in_the_cluster(cluster, tmp_path):
    began = time.monotonic()
    with pytest.raises(nearwise.Error, match="no machine of the cluster has had 9 CPUs and .* for leaf0 since 1 s"):
        nearwise.cluster.run(FilePlan(tmp_path, 2), threads=9, timeout=1)
    assert time.monotonic() - began < 10


def bytes_of_nodes(share):
    """A part of the memory of a node, such as two tasks cannot both have at one."""
    return int(share * min(node["Resources"]["memory"] for node in ray.nodes() if node["Resources"].get("CPU")))


def test_a_task_without_memory_anywhere_is_named(cluster, tmp_path):
    plan = FilePlan(tmp_path, 2)
    plan.tasks = [task._replace(memory_bytes=bytes_of_nodes(100)) for task in plan.tasks]
    with pytest.raises(nearwise.Error, match=r"has had 1 CPUs and \d+ bytes of memory for leaf0 since 1 s"):
        nearwise.cluster.run(plan, timeout=1)
    assert not plan.begun()


def test_what_is_done_needs_no_room(cluster, tmp_path):
    """The cluster of the day before may have had larger machines."""
    plan = FilePlan(tmp_path, 4)
    plan.run_task("leaf1")
    plan.tasks = [
        task._replace(memory_bytes=bytes_of_nodes(100)) if task.name == "leaf1" else task for task in plan.tasks
    ]
    nearwise.cluster.run(plan, timeout=60, retries=0)
    assert plan.result() == sum(range(4))


def test_a_place_is_at_the_machine_with_most_room():
    room = Room([Node("small", 2, 100), Node("large", 4, 50)])
    assert [room.take(1, 10) for _ in range(6)] == ["large", "large", "small", "large", "small", "large"]
    assert room.take(1, 10) is None  # no CPUs
    room = Room([Node("small", 2, 100), Node("large", 4, 50)])
    assert [room.take(1, 60) for _ in range(2)] == ["small", None]  # no memory for another
    room.take_at("large", 4, 0)
    room.take_at("dead", 4, 0)  # of no interest
    assert [room.take(1, 10) for _ in range(2)] == ["small", None]


def test_waiting_for_memory_is_not_taking_too_long(cluster, tmp_path):
    """Of eight tasks three run at a time, each at its node, though CPUs are there for all: the last wait longer than they may take."""
    plan = FilePlan(tmp_path, 8, seconds=4)
    plan.tasks = [task._replace(memory_bytes=bytes_of_nodes(0.6)) for task in plan.tasks]
    nearwise.cluster.run(plan, timeout=10, retries=0)
    assert plan.result() == sum(range(8)) and len(plan.begun()) == len(plan.tasks)


def test_those_that_wait_for_memory_do_not_keep_another_from_its_timeout(cluster, tmp_path):
    class Hanging(FilePlan):
        def run_task(self, name):
            if name == "leaf3":  # begun after those that wait
                time.sleep(60)
            return super().run_task(name)

    plan = Hanging(tmp_path, 4)
    plan.tasks = [
        task._replace(memory_bytes=bytes_of_nodes(0.01 if task.name == "leaf3" else 100)) for task in plan.tasks
    ]
    began = time.monotonic()
    with pytest.raises(nearwise.Error, match="leaf3 failed 1 times, the last time: not done within 10 s"):
        nearwise.cluster.run(plan, threads=8, timeout=10, retries=0)  # one at a time on each node
    assert time.monotonic() - began < 40


def test_a_graph_built_while_a_worker_and_a_node_die(cluster, tmp_path):
    rows = np.random.default_rng(1).standard_normal((60_000, 16), dtype=np.float32)
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)

    def plan(name):
        folder = tmp_path / name
        return nearwise.plan_graph(
            tmp_path / "rows.fbin", folder / "work", folder / "graph.nw", memory_limit="48MiB", threads=1
        )

    plan("alone").run()
    (tmp_path / "marks").mkdir()
    halting = Halting(plan("cluster"), tmp_path / "marks", before="assign-0-0001", after="build-0-0002")
    ended = {}
    finish = running(halting, threads=4, on_task=ended.__setitem__)
    process, _ = wait_for(lambda: halting.halted(halting.before))
    os.kill(process, signal.SIGKILL)
    _, node = wait_for(lambda: halting.halted(halting.after))
    cluster.kill(node)
    assert "finish" not in ended
    finish()
    assert sorted(ended) == sorted(task.name for task in halting.tasks)
    assert ended[halting.before] == "done" and ended[halting.after] == "done before"
    assert (tmp_path / "cluster" / "graph.nw").read_bytes() == (tmp_path / "alone" / "graph.nw").read_bytes()


class Local:
    """What `run` does, in this process and in the opposite order."""

    def __call__(self, work, on_task):
        for task in reversed(work.tasks):
            on_task(task.name, work.run_task(task.name))


class Deadly:
    """A round of k-means whose third block kills the process that takes it first."""

    def __init__(self, work, mark):
        self.work, self.mark, self.tasks = work, mark, work.tasks

    def with_threads(self, threads):
        return self

    def is_done(self, name):
        return False

    def run_task(self, name):
        if name == "2" and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work.run_task(name)


def assert_same_training(found, expected):
    for name in ("centroids", "sizes", "errors"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.converged == expected.converged


@pytest.fixture
def kmeans_file(tmp_path):
    random = np.random.default_rng(6)
    rows = random.standard_normal((20, 24))[random.integers(20, size=9_000)] + random.standard_normal((9_000, 24)) / 4
    nearwise.write_vectors(tmp_path / "rows.fbin", rows.astype(np.float32))
    return tmp_path / "rows.fbin"


def test_kmeans_by_blocks(cluster, kmeans_file, tmp_path, metric="cosine"):
    rows = nearwise.read_vectors(kmeans_file)
    # All at one place: most clusters are empty at first, and are split.
    options = {"metric": metric, "iterations": 5, "tolerance": 0, "initial": rows[[7] * 12]}
    one_block = nearwise.cluster.train_kmeans(kmeans_file, 12, threads=4, **options | {"metric": "cos"})
    assert_same_training(one_block, nearwise.train_kmeans(rows, 12, **options))
    reports = []
    found = nearwise.cluster.train_kmeans(
        kmeans_file, 12, block_rows=1000, threads=4, progress=lambda *pair: reports.append(pair), **options
    )
    assert reports[0] == (1, 45) and reports[-1] == (45, 45)
    assert found.sizes.min() > 0 and found.sizes.sum() == 9_000

    file = _kmeans._File(str(kmeans_file), *rows.shape, 1000, metric, 0, 0)
    start = nearwise.seed_kmeans(rows, 12, metric=metric, initial=options["initial"])
    assert_same_training(_kmeans.Training(file, Local()).run(start, 5, 0), found)

    def deadly(work, on_task):
        nearwise.cluster.run(Deadly(work, tmp_path / type(work).__name__), threads=4, on_task=on_task)

    assert_same_training(_kmeans.Training(file, deadly).run(start, 5, 0), found)
    assert (tmp_path / "_Round").exists() and (tmp_path / "_SplitRound").exists()


@pytest.mark.parametrize("rows, dim, clusters", [(70_000, 100, 5), (300, 5_000, 40), (3_000, 2, 2_900), (1, 1, 1)])
def test_rounds_of_kmeans_keep_to_the_memory_they_ask_for(tmp_path, monkeypatch, rows, dim, clusters):
    nearwise.write_vectors(tmp_path / "rows.fbin", np.random.default_rng(1).standard_normal((rows, dim), np.float32))
    limits = []
    for name in ("sum_clusters", "draw_split_rows"):
        work = getattr(_kmeans, name)
        monkeypatch.setattr(
            _kmeans,
            name,
            lambda *given, work=work, **options: (limits.append(options["context"].memory_limit), work(*given, **options))[1],
        )
    centroids = nearwise.read_vectors(tmp_path / "rows.fbin")[:clusters]
    file = _kmeans._File(str(tmp_path / "rows.fbin"), rows, dim, 2**18, "sqeuclidean", 0, 0)
    start = {"file": file, "centroids": centroids}
    for work in (_kmeans._Round(**start), _kmeans._SplitRound(**start, moved=centroids, splits=[(0, 0)], iteration=1)):
        (task,) = work.tasks
        work.run_task(task.name)
        assert limits.pop() == task.memory_bytes


def test_kmeans_seeds_and_refuses_as_in_one_process(cluster, kmeans_file, tmp_path):
    rows = nearwise.read_vectors(kmeans_file)
    options = {"iterations": 3, "seed": 4}
    found = nearwise.cluster.train_kmeans(kmeans_file, 30, threads=4, memory_limit="64MiB", **options)
    assert_same_training(found, nearwise.train_kmeans(rows, 30, **options))
    broken = rows.copy()
    broken[8123, 3] = np.inf
    nearwise.write_vectors(tmp_path / "broken.fbin", broken)
    with pytest.raises(ValueError, match="row 8123 holds NaN or infinity"):
        nearwise.cluster.train_kmeans(tmp_path / "broken.fbin", 3, block_rows=2000, threads=4, initial=rows[:3])
    refuses(ValueError, "clusters", nearwise.cluster.train_kmeans, kmeans_file, 9_001)


def test_sums_of_blocks_are_added_in_one_order():
    values = np.random.default_rng(3).standard_normal(13) * 10.0 ** np.arange(13)
    totals = set()
    for seed in range(20):
        total = _kmeans.Total()
        for number in np.random.default_rng(seed).permutation(13):
            total.add(int(number), values[number])
        totals.add(total.take())
    a = values
    pairs = [a[i] + a[i + 1] for i in range(0, 12, 2)]
    assert totals == {((pairs[0] + pairs[1]) + (pairs[2] + pairs[3])) + ((pairs[4] + pairs[5]) + a[12])}
