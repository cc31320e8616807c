"""The adapter for ann-benchmarks, run as its runner does on a file of its format."""

import importlib
import itertools
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest

h5py = pytest.importorskip("h5py")
yaml = pytest.importorskip("yaml")

ADAPTER = Path(__file__).parents[2] / "bench" / "adapters" / "ann_benchmarks"
CONFIGURATIONS = yaml.safe_load((ADAPTER / "config.yml").read_text())["float"]["any"]
NEIGHBORS = 10


def write_data_set(path, distance):
    """A data set as ann-benchmarks writes it: angular vectors are not normalized."""
    random = np.random.default_rng(6)
    train, test = (random.standard_normal((rows, 12), dtype=np.float32) for rows in (3000, 20))
    left, right = test.astype(np.float64), train.astype(np.float64)
    if distance == "angular":
        left, right = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (left, right))
        distances = 1 - left @ right.T
    else:
        distances = np.sqrt(((left[:, None] - right[None]) ** 2).sum(axis=2))
    order = np.argsort(distances, axis=1)[:, :100]
    with h5py.File(path, "w") as file:
        file.attrs["distance"], file.attrs["dimension"], file.attrs["point_type"] = distance, 12, "float"
        file.create_dataset("train", data=train)
        file.create_dataset("test", data=test)
        file.create_dataset("neighbors", data=order.astype(np.int32))
        file.create_dataset("distances", data=np.take_along_axis(distances, order, axis=1).astype(np.float32))


@pytest.fixture
def algorithms(tmp_path, monkeypatch):
    """The package ann_benchmarks.algorithms with the adapter in it, and the base class it is given there."""
    folder = tmp_path / "ann_benchmarks" / "algorithms"
    (folder / "base").mkdir(parents=True)
    shutil.copytree(ADAPTER, folder / "nearwise")
    (folder / "base" / "module.py").write_text("class BaseANN:\n    def __str__(self):\n        return self.name\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "ann_benchmarks"]:
        del sys.modules[name]


def combinations(values):
    """As in ann_benchmarks/definitions.py."""
    return [list(each) for each in itertools.product(*(each if isinstance(each, list) else [each] for each in values))]


def recalls(algorithm, file, settings):
    """Of single queries for each setting; batches must find the same."""
    found = []
    test, truth = np.array(file["test"]), np.array(file["neighbors"])[:, :NEIGHBORS]
    for setting in settings or [None]:
        if setting is not None:
            algorithm.set_query_arguments(*setting)
        singles = [list(algorithm.query(query, NEIGHBORS)) for query in test]
        algorithm.batch_query(test, NEIGHBORS)
        assert [list(each) for each in algorithm.get_batch_results()] == singles
        found.append(np.mean([len(set(a) & set(b)) / NEIGHBORS for a, b in zip(singles, truth)]))
    return found


@pytest.mark.parametrize("distance", ["euclidean", "angular"])
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda each: each["name"])
def test_every_run_group(algorithms, tmp_path, configuration, distance):
    write_data_set(tmp_path / "data.hdf5", distance)
    module = importlib.import_module(configuration["module"] + ".module")
    assert isinstance(module, types.ModuleType)
    with h5py.File(tmp_path / "data.hdf5") as file:
        for group in configuration["run_groups"].values():
            for arguments in combinations(group["args"]):
                base = [file.attrs["distance"] if each == "@metric" else each for each in configuration["base_args"]]
                algorithm = getattr(module, configuration["constructor"])(*base, *arguments)
                algorithm.fit(np.array(file["train"]))
                found = recalls(algorithm, file, combinations(group["query_args"])[-3:] if "query_args" in group else [])
                assert max(found) > 0.97 and str(algorithm).startswith("nearwise ")
                assert configuration["name"] != "nearwise-exact" or found == [1.0]


def test_arguments_have_an_effect(algorithms, tmp_path):
    write_data_set(tmp_path / "data.hdf5", "euclidean")
    module = importlib.import_module("ann_benchmarks.algorithms.nearwise.module")
    algorithm = module.Nearwise("euclidean", "ivf_flat", {"lists": 50})
    with h5py.File(tmp_path / "data.hdf5") as file:
        algorithm.fit(np.array(file["train"]))
        few, all_of_them = recalls(algorithm, file, [[1], [50]])
    assert few < 0.7 and all_of_them == 1
    assert str(algorithm) == "nearwise ivf_flat {'lists': 50} {'probes': 50}"
    with pytest.raises(ValueError):
        algorithm.set_query_arguments(1, 2)
    with pytest.raises(KeyError):
        module.Nearwise("hamming", "graph")
