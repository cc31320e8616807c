"""Search in parts and replicas of them: the answers of one process, also while processes and nodes die."""

import inspect
import os
import signal
import subprocess
import sys
import time

import nearwise
import nearwise.cluster
import numpy as np
import pytest
from checks import refuses
from nearwise.cluster import _replica
from ray_nodes import ray, wait_for
from samples import assert_same, filled, random_rows

SHARDS = 4
METRICS = ("sqeuclidean", "inner_product")


@pytest.fixture(scope="module")
def vectors():
    return np.random.default_rng(1).standard_normal((40_000, 48), dtype=np.float32)


@pytest.fixture(scope="module")
def queries():
    return np.random.default_rng(2).standard_normal((3_000, 48), dtype=np.float32)


@pytest.fixture(scope="module")
def vector_file(vectors, tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "base.fbin"
    nearwise.write_vectors(path, vectors)
    return path


@pytest.fixture(scope="module")
def index(vectors):
    index = filled(nearwise.IvfFlat, vectors, lists=64)
    index.probes = 5
    return index


@pytest.fixture(scope="module")
def index_files(index, vectors, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    bounds = [len(vectors) * part // SHARDS for part in range(SHARDS + 1)]
    paths = []
    for first, last in zip(bounds, bounds[1:]):
        part = index.empty_copy()
        part.add(vectors[first:last], np.arange(first, last))
        part.probes = 5
        paths.append(folder / f"part{first}.nw")
        part.save(paths[-1])
    return paths


@pytest.mark.parametrize("metric", METRICS)
def test_exact_is_the_whole(cluster, tmp_path, metric):
    base = random_rows(3, 500, 6, np.uint8)  # ties everywhere
    asked = random_rows(4, 70, 6, np.uint8)
    nearwise.write_vectors(tmp_path / "base.u8bin", base)
    alias = {"sqeuclidean": "l2"}.get(metric, metric)
    with nearwise.cluster.ShardedExact(tmp_path / "base.u8bin", 3, replicas=2, metric=alias) as search:
        assert (len(search), search.dim, search.metric, search.shards) == (500, 6, metric, 3)
        for k in (1, 10, 200):  # more than a part has
            for block in (None, 1, 33, 1000):
                found = search.search(asked, k, block_queries=block)
                assert_same(found, nearwise.knn(asked, base, k, metric=metric))
        padded = search.search(asked, 501, pad=True)
        assert_same(padded, nearwise.knn(asked, base, 501, metric=metric, pad=True))
        refuses(ValueError, "at most the size of the base, 500, got 501", search.search, asked, 501)
        assert search.search(asked[:0], 3).ids.shape == (0, 3)
        assert search.search(asked[0], 3).ids.tolist() == search.search(asked[:1], 3).ids[0].tolist()


def test_inverted_files_are_the_whole(cluster, index, index_files, queries):
    with nearwise.cluster.ShardedIvf(index_files, replicas=2) as search:
        for options in ({}, {"probes": 3}, {"probes": 64}):
            assert_same(search.search(queries, 100, **options), index.search(queries, 100, **options))
        assert "40000 vectors of 48 elements in 4 parts, sqeuclidean, 8 processes" in repr(search)
        reports = []
        search.search(queries, 1, progress=lambda done, total: reports.append((done, total)))
        assert reports[-1] == (3000, 3000) and [done for done, _ in reports] == sorted(done for done, _ in reports)


def test_filters(cluster, vector_file, vectors, index, index_files, queries):
    mask = np.random.default_rng(9).random(len(vectors)) < 0.3
    excluded = [[i, i + 1] for i in range(len(queries))]
    for options in (dict(filter=mask), dict(exclude=excluded), dict(filter=np.flatnonzero(mask), exclude=excluded)):
        expected = nearwise.knn(queries, vectors, 5, **options)
        with nearwise.cluster.ShardedExact(vector_file, 3) as search:
            for block in (None, 700):
                assert_same(search.search(queries, 5, block_queries=block, **options), expected)
        with nearwise.cluster.ShardedIvf(index_files) as search:
            assert_same(search.search(queries, 5, probes=64, block_queries=700, **options), expected)
            found = search.search(queries, 5, **options).ids
            assert mask[found].all() or "filter" not in options
            refuses(ValueError, "list for each of the", search.search, queries[:3], 5, exclude=excluded)


def merged(indexes, queries, k, **options):
    """What one process finds in several indexes."""
    return nearwise.merge_neighbors([index.search(queries, k, **options) for index in indexes], k)


def test_graph_indexes_are_merged(cluster, tmp_path, vectors, queries):
    indexes, paths = [], []
    for first in (0, 2000, 4000):
        rows = vectors[first : first + 2000]
        indexes.append(nearwise.GraphIndex.build(rows, ids=np.arange(first, first + 2000), degree=16))
        paths.append(tmp_path / f"part{first}.nw")
        indexes[-1].save(paths[-1])
    mask = np.random.default_rng(9).random(6000) < 0.3
    with nearwise.cluster.ShardedGraphIndex(paths, replicas=2) as search:
        assert (len(search), search.dim, search.metric, search.shards) == (6000, 48, "sqeuclidean", 3)
        for options in ({}, dict(beam=50), dict(filter=mask), dict(exclude=[[i] for i in range(300)])):
            expected = merged(indexes, queries[:300], 10, **options)
            for block in (None, 70):
                assert_same(search.search(queries[:300], 10, block_queries=block, **options), expected)
        wide = dict(beam=2000)  # exhaustive
        assert_same(search.search(queries[:50], 10, **wide), nearwise.knn(queries[:50], vectors[:6000], 10))
        found = search.range_search(queries[:50], 60.0, **wide)
        assert_same_ranges(found, nearwise.range_search(queries[:50], vectors[:6000], 60.0))
        refuses(ValueError, "beam must be at least k", search.search, queries, 10, beam=5)
        os.kill(search.process_ids()[1, 0], signal.SIGKILL)
        assert_same(search.search(queries[:300], 10), merged(indexes, queries[:300], 10))


def assert_same_ranges(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("metric", METRICS)
def test_range_search_is_the_whole(cluster, tmp_path, metric):
    base = random_rows(3, 500, 6, np.uint8)  # ties everywhere
    asked = random_rows(4, 70, 6, np.uint8)
    nearwise.write_vectors(tmp_path / "base.u8bin", base)
    mask = np.random.default_rng(5).random(500) < 0.3
    radius = {"sqeuclidean": 9, "inner_product": 30}[metric]
    with nearwise.cluster.ShardedExact(tmp_path / "base.u8bin", 3, replicas=2, metric=metric) as search:
        for options in ({}, dict(filter=mask), dict(exclude=[[i, i + 1] for i in range(70)])):
            expected = nearwise.range_search(asked, base, radius, metric=metric, **options)
            assert 100 < len(expected.ids) < 34_000
            for block in (None, 1, 33):
                assert_same_ranges(search.range_search(asked, radius, block_queries=block, **options), expected)
        assert_same_ranges(search.range_search(asked[:0], 1.0), nearwise.range_search(asked[:0], base, 1.0))
        assert_same_ranges(search.range_search(asked[0], radius), search.range_search(asked[:1], radius))
        refuses(ValueError, "radius: expected a number, got NaN", search.range_search, asked, float("nan"))


def test_range_search_in_inverted_files(cluster, index, index_files, queries, vectors):
    mask = np.random.default_rng(9).random(len(vectors)) < 0.3
    with nearwise.cluster.ShardedIvf(index_files, replicas=2) as search:
        for options in ({}, dict(probes=64), dict(probes=64, filter=mask)):
            expected = index.range_search(queries[:500], 50.0, **options)
            assert len(expected.ids) > 500
            assert_same_ranges(search.range_search(queries[:500], 50.0, **options), expected)


@pytest.mark.parametrize(
    "function",
    [
        nearwise.cluster.ShardedExact.__init__,
        nearwise.cluster.ShardedExact.search,
        nearwise.cluster.ShardedExact.range_search,
        nearwise.cluster.ShardedGraphIndex.search,
        nearwise.cluster.ShardedGraphIndex.range_search,
        nearwise.cluster.ShardedIvf.__init__,
        nearwise.cluster.ShardedIvf.search,
        nearwise.cluster.ShardedIvf.range_search,
        nearwise.cluster.run,
        nearwise.cluster.train_kmeans,
    ],
)
def test_annotations_admit_none_for_every_default(function):
    for parameter in inspect.signature(function).parameters.values():
        if parameter.default is not parameter.empty:
            assert "None" in parameter.annotation or parameter.annotation in ("Any", "ProgressArgument"), parameter


def test_ids_are_sent_in_32_bits_where_they_fit():
    for largest, dtype in ((2**31 - 1, np.int32), (2**31, np.int64)):
        given = nearwise.Neighbors(np.array([[0, largest, -1]]), np.array([[0, 1, np.inf]], np.float32))
        sent = _replica._narrowed(given)
        assert sent.ids.dtype == dtype
        assert_same(nearwise.merge_neighbors([sent], 3), given)


def test_replicas_are_on_different_nodes(cluster, index_files):
    with nearwise.cluster.ShardedIvf(index_files, replicas=2) as search:
        for shard in range(SHARDS):
            nodes = {node_of(actor) for _, actor in search.living(shard)}
            assert len(nodes) == 2


def node_of(actor):
    return ray.get(actor.__ray_call__.remote(lambda _: ray.get_runtime_context().get_node_id()), timeout=60)


def while_searching(ask, kill):
    """Answers of `ask`, during which `kill` is called: when the first block is complete, and others are on their way."""
    killed = []

    def report(done, total):
        if not killed:
            assert done < total
            kill()
            killed.append(True)

    found = ask(report)
    assert killed
    return found


def test_killed_processes_cost_no_answer(cluster, vector_file, vectors, queries):
    victims = [(0, 0), (1, 1), (2, 0), (3, 1)]
    expected = nearwise.knn(queries, vectors, 100)
    with nearwise.cluster.ShardedExact(vector_file, SHARDS, replicas=2) as search:
        ids = search.process_ids()

        def kill():
            for victim in victims:
                os.kill(ids[victim], signal.SIGKILL)

        found = while_searching(lambda report: search.search(queries, 100, block_queries=100, progress=report), kill)
        assert_same(found, expected)
        assert sum(len(search.living(shard)) for shard in range(SHARDS)) == 2 * SHARDS - len(victims)
        assert search.restore() == len(victims)
        assert_same(search.search(queries, 100), expected)
        assert len(search.process_ids()) == 2 * SHARDS


def test_a_killed_node_costs_no_answer(cluster, index, index_files, queries):
    expected = index.search(queries, 100, probes=64)
    with nearwise.cluster.ShardedIvf(index_files, replicas=2) as search:
        node = node_of(search.living(0)[0][1])
        found = while_searching(
            lambda report: search.search(queries, 100, probes=64, block_queries=100, progress=report),
            lambda: cluster.kill(node),
        )
        assert_same(found, expected)

        def noticed():  # a node's processes end some time after it
            assert_same(search.search(queries, 100, probes=64), expected)
            return sum(len(search.living(shard)) for shard in range(SHARDS)) < 2 * SHARDS

        wait_for(noticed)
        cluster.repair()
        search.restore()
        for shard in range(SHARDS):
            assert len({node_of(actor) for _, actor in search.living(shard)}) == 2
        assert_same(search.search(queries, 100, probes=64), expected)


def test_a_silent_process_is_given_up(cluster, index, index_files, queries):
    with nearwise.cluster.ShardedIvf(index_files, replicas=2, timeout=2) as search:
        victim = search.process_ids()[1, 0]
        os.kill(victim, signal.SIGSTOP)
        assert_same(search.search(queries, 10), index.search(queries, 10))
        assert [place.replica for place, _ in search.living(1)] == [1]
        os.kill(victim, signal.SIGKILL)


def test_the_dead_are_replaced_that_were_not_at_work(cluster, index, index_files, queries):
    with nearwise.cluster.ShardedIvf(index_files, replicas=2) as search:
        before = search.process_ids()
        os.kill(before[3, 1], signal.SIGKILL)
        assert search.restore() == 1
        after = search.process_ids()
        assert {place for place in before if before[place] != after[place]} == {(3, 1)}
        assert_same(search.search(queries, 10), index.search(queries, 10))


def test_without_a_replica_it_fails(cluster, index_files, queries):
    with nearwise.cluster.ShardedIvf(index_files) as search:
        os.kill(search.process_ids()[2, 0], signal.SIGKILL)
        refuses("device", "search: part 2: no replica is alive", search.search, queries, 10)


def test_more_than_the_cluster_has(cluster, index_files):
    began = time.monotonic()
    with pytest.raises(nearwise.Error, match=r"\d of 4 processes did not start within 5 s; they need 6 CPUs") as caught:
        # Each of the three nodes has room for one such process.
        nearwise.cluster.ShardedIvf(index_files[:2], replicas=2, threads=6, start_timeout=5)
    assert caught.value.code == "device" and time.monotonic() - began < 20


def test_errors_arrive_as_they_are(cluster, tmp_path, vectors, index_files, queries):
    refuses("not_found", "", nearwise.cluster.ShardedIvf, [tmp_path / "missing.nw"])
    other = nearwise.IvfFlat.train(vectors[:5000], lists=64)
    other.save(tmp_path / "other.nw")
    with pytest.raises(ValueError, match="expected parts of one training"):
        nearwise.cluster.ShardedIvf([index_files[0], tmp_path / "other.nw"])
    refuses(ValueError, "one file for each part", nearwise.cluster.ShardedIvf, "index.nw")
    with nearwise.cluster.ShardedIvf(index_files) as search:
        wrong = queries[:500].copy()
        wrong[407, 3] = np.nan
        refuses(ValueError, r"row 7 .*\(counted from query 400\)", search.search, wrong, 3, block_queries=100)
        refuses(ValueError, "same dimension, got 9 and 48", search.search, queries[:, :9], 3)
        refuses(ValueError, "probes", search.search, queries, 3, probes=65)
        assert search.search(queries, 3).ids.shape == (3000, 3)  # none of this has harmed it


def test_processes_end_with_it(cluster, index_files):
    search = nearwise.cluster.ShardedIvf(index_files)
    ids = list(search.process_ids().values())
    search.close()
    wait_for(lambda: not any(os.path.exists(f"/proc/{number}") for number in ids))


def test_another_token_is_refused(cluster):
    code = f"import ray; ray.init(address={cluster.address!r}, logging_level='ERROR'); print('connected')"

    def connects(token, seconds):
        environment = {**os.environ, "RAY_AUTH_TOKEN": token}
        try:
            result = subprocess.run(
                [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return False
        return "connected" in result.stdout

    began = time.monotonic()
    assert connects(os.environ["RAY_AUTH_TOKEN"], 60)
    # Ray tries for a while before it says so.
    assert not connects("0" * 64, 3 * (time.monotonic() - began))
