"""What is asked of a graph: paths, components, near duplicates, mutual neighbours, and the forms for other libraries."""

import subprocess
import sys

import nearwise
import numpy as np
import pytest
from checks import refuses
from scipy import sparse
from scipy.sparse import csgraph


@pytest.fixture(scope="module")
def rows():
    """Three clouds far from each other, and copies of some rows."""
    random = np.random.default_rng(3)
    centres = np.repeat([[0.0], [40.0], [90.0]], 60, axis=0)
    rows = (centres + random.standard_normal((180, 5))).astype(np.float32)
    rows[[11, 12, 70]] = rows[[5, 5, 65]]
    return random.permutation(rows)


@pytest.fixture(scope="module")
def graph(rows):
    return nearwise.build_knn_graph(rows, 4, metric="euclidean")


def undirected(graph):
    """[rows, rows] widths of steps, infinity where there is none."""
    steps = np.full((len(graph), len(graph)), np.inf)
    for row, (ids, distances) in enumerate(zip(graph.ids, graph.distances)):
        steps[row, ids] = distances
    return np.minimum(steps, steps.T)


def test_smoothest_path_is_as_narrow_as_floyd_and_warshall_find(graph):
    narrowest = steps = undirected(graph)
    for over in range(len(steps)):
        narrowest = np.minimum(narrowest, np.maximum(narrowest[:, over : over + 1], narrowest[over : over + 1]))
    found = 0
    for start, end in np.random.default_rng(1).integers(0, len(graph), (200, 2)):
        path = graph.smoothest_path(start, end)
        if path is None:
            assert np.isinf(narrowest[start, end]) and start != end
        elif start == end:
            assert path.rows.tolist() == [start] and len(path.distances) == 0 and path.widest is None
        else:
            found += 1
            assert path.widest == path.distances.max() == narrowest[start, end]
            np.testing.assert_array_equal(path.distances, steps[path.rows[:-1], path.rows[1:]])
            assert (path.rows[0], path.rows[-1]) == (start, end)
            assert path.rows.dtype == np.int64 and path.distances.dtype == np.float32
            # No other path of such steps has fewer of them.
            allowed = sparse.csr_matrix(np.where(steps <= path.widest, 1, 0))
            assert csgraph.shortest_path(allowed, unweighted=True, indices=start)[end] == len(path.distances)
    assert 20 < found < 190


def test_connected_components_are_those_of_scipy(graph):
    groups = graph.connected_components()
    count, labels = csgraph.connected_components(graph.to_csr(), directed=True, connection="weak")
    assert len(groups.sizes) == count >= 3
    # The same partition, and numbers in the order of first rows.
    assert len(set(zip(groups.labels, labels))) == count
    assert [groups.labels.tolist().index(label) for label in range(count)] == sorted(
        groups.labels.tolist().index(label) for label in range(count)
    )
    np.testing.assert_array_equal(np.bincount(groups.labels), groups.sizes)
    members = groups.members()
    assert sorted(np.concatenate(members).tolist()) == list(range(len(graph)))
    for label, each in enumerate(members):
        assert (groups.labels[each] == label).all() and (np.diff(each) > 0).all()


def test_near_duplicates(rows, graph):
    groups = graph.near_duplicates(0)
    assert sorted(groups.sizes) == [2, 3] and (groups.labels >= 0).sum() == 5
    for each in groups.members():
        assert (rows[each] == rows[each[0]]).all()
    for distance in (0.3, np.float32(0.8), np.inf):
        steps = undirected(graph)
        count, labels = csgraph.connected_components(sparse.csr_matrix(np.isfinite(steps) & (steps <= np.float32(distance))))
        alone = np.bincount(labels)[labels] == 1
        found = graph.near_duplicates(distance).labels
        np.testing.assert_array_equal(found == -1, alone)
        assert len(set(zip(found[~alone], labels[~alone]))) == len(set(labels[~alone]))
    assert graph.near_duplicates(-1).members() == []


def test_near_duplicates_by_inner_product_are_those_of_large_products():
    rows = np.array([[3, 0], [0, 3], [3, 0.1], [0.1, 3]], dtype=np.float32)
    graph = nearwise.build_knn_graph(rows, 2, metric="inner_product")
    assert graph.near_duplicates(8.5).labels.tolist() == [0, 1, 0, 1]
    assert graph.near_duplicates(100).labels.tolist() == [-1] * 4


def test_mutual_neighbors(graph):
    mutual = graph.mutual_neighbors()
    assert type(mutual) is nearwise.RangeNeighbors and 0 < len(mutual.ids) < graph.ids.size
    for row in range(len(graph)):
        expected = [id for id in graph.ids[row] if row in graph.ids[id]]
        assert mutual.of(row)[0].tolist() == expected
    matrix = graph.to_csr(mutual=True)
    assert (abs(matrix - matrix.T) > 0).nnz == 0 and matrix.nnz == len(mutual.ids)


def test_csr(graph):
    matrix = graph.to_csr()
    assert matrix.shape == (180, 180) and matrix.dtype == np.float32 and matrix.indices.dtype == np.int32
    assert matrix.nnz == graph.ids.size  # distances of 0 are entries
    np.testing.assert_array_equal(matrix.indices.reshape(180, 4), graph.ids)
    np.testing.assert_array_equal(matrix.data.reshape(180, 4), graph.distances)


@pytest.mark.parametrize("mutual", [False, True])
def test_npz_is_read_by_scipy(graph, tmp_path, mutual):
    graph.save_npz(tmp_path / "graph.npz", mutual=mutual)
    loaded, expected = sparse.load_npz(tmp_path / "graph.npz"), graph.to_csr(mutual=mutual)
    assert type(loaded) is type(expected) and loaded.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(expected, name))
        assert getattr(loaded, name).dtype == getattr(expected, name).dtype
    first = (tmp_path / "graph.npz").read_bytes()
    graph.save_npz(str(tmp_path / "graph.npz"), mutual=mutual)
    assert (tmp_path / "graph.npz").read_bytes() == first


def test_short_rows_have_no_entries(tmp_path):
    graph = nearwise.build_knn_graph(np.eye(3, dtype=np.float32), 5)
    matrix = graph.to_csr()
    assert matrix.nnz == 6 and graph.mutual_neighbors().offsets.tolist() == [0, 2, 4, 6]
    graph.save_npz(tmp_path / "graph.npz")
    assert (sparse.load_npz(tmp_path / "graph.npz") != matrix).nnz == 0


def test_with_self(rows, graph):
    ids, distances = graph.with_self()
    assert ids.shape == (180, 5) and ids.dtype == np.int64 and distances.dtype == np.float32
    np.testing.assert_array_equal(ids[:, 0], np.arange(180))
    assert (distances[:, 0] == 0).all()
    np.testing.assert_array_equal(ids[:, 1:], graph.ids)
    refuses(ValueError, "got inner_product", nearwise.build_knn_graph(rows, 4, metric="inner_product").with_self)


def test_wrong_arguments(rows, graph, tmp_path):
    refuses(ValueError, "start must be a row from 0 to 179, got 180", graph.smoothest_path, 180, 0)
    refuses(ValueError, "end must be a row from 0 to 179, got -1", graph.smoothest_path, 0, -1)
    refuses(TypeError, "start: expected an integer", graph.smoothest_path, 0.5, 1)
    refuses(ValueError, "distance: expected a number, got NaN", graph.near_duplicates, float("nan"))
    refuses(TypeError, "mutual: expected True or False", graph.to_csr, mutual="yes")
    refuses(ValueError, ".npz", graph.save_npz, tmp_path / "graph.nw")
    refuses("cannot_create", "", graph.save_npz, tmp_path / "missing" / "graph.npz")
    broken = nearwise.build_knn_graph(rows, 4)
    broken.ids[17, 2] = 180
    for ask in (broken.connected_components, broken.mutual_neighbors, lambda: broken.smoothest_path(0, 1)):
        refuses(ValueError, "got 180 of row 17", ask)


def test_scipy_is_imported_only_where_it_is_used(tmp_path):
    code = """
import sys, numpy, nearwise
graph = nearwise.build_knn_graph(numpy.eye(4, dtype=numpy.float32), 2)
graph.smoothest_path(0, 1), graph.connected_components(), graph.save_npz(sys.argv[1])
print(sorted({"scipy", "sklearn"} & set(sys.modules)))
graph.to_csr()
print("scipy" in sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path / "graph.npz")], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\nTrue\n", result.stderr


def test_umap_takes_the_graph(rows):
    umap = pytest.importorskip("umap")
    graph = nearwise.build_knn_graph(rows, 14, metric="euclidean")
    mapper = umap.UMAP(n_neighbors=15, precomputed_knn=graph.with_self(), init="random", random_state=1, n_epochs=50)
    assert np.isfinite(mapper.fit_transform(rows)).all()
