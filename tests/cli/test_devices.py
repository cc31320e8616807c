"""--device: the CPU's answer on every device of the machine, and messages for devices that it does not have."""
import json

import pytest

KNN = ["knn", "base.fbin", "queries.fbin"]
GRAPH = ["knn", "base.fbin", "--exclude-self"]


@pytest.fixture
def devices(nearwise):
    return [device["name"] for device in nearwise("info", "--json").json["devices"]]


@pytest.mark.parametrize("search", [KNN, GRAPH], ids=["knn", "graph"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product", "cosine"])
def test_every_device_gives_the_same_bytes(nearwise, devices, small, tmp_path, search, metric):
    if devices == ["cpu"]:
        pytest.skip("this build or machine has no other device")
    for device in devices:
        result = nearwise(*search, "--metric", metric, "--device", device, "-o", device + ".bin", "--json")
        assert result.json["device"] == device
    answers = {(tmp_path / (device + ".bin")).read_bytes() for device in devices}
    assert len(answers) == 1


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_every_device_trains_the_same_centroids(nearwise, devices, small, tmp_path, metric):
    if devices == ["cpu"]:
        pytest.skip("this build or machine has no other device")
    for device in devices:
        nearwise("kmeans", "base.fbin", "--clusters", 6, "--metric", metric, "--iterations", 2, "--device", device,
                 "-o", device + ".fbin", "--assignments", device + ".bin")
    for suffix in (".fbin", ".bin"):
        assert len({(tmp_path / (device + suffix)).read_bytes() for device in devices}) == 1


@pytest.mark.parametrize("metric", ["sqeuclidean", "cosine"])
def test_every_device_builds_the_same_graph(nearwise, devices, small, tmp_path, metric):
    if devices == ["cpu"]:
        pytest.skip("this build or machine has no other device")
    for device in devices:
        nearwise("graph", "build", "base.fbin", "--degree", 4, "--metric", metric, "--device", device, "-o", device + ".nw")
        # The file itself says when and on which device it was made.
        nearwise("convert", device + ".nw", "-o", device + ".ibin")
    assert len({(tmp_path / (device + ".ibin")).read_bytes() for device in devices}) == 1


@pytest.mark.parametrize(("metric", "codec"), [("cosine", ["flat"]), ("sqeuclidean", ["pq", "--bits", 4, "--code-bytes", 1])],
                         ids=["flat", "pq"])
def test_every_device_builds_and_searches_the_same_index(nearwise, devices, small, tmp_path, codec, metric):
    if devices == ["cpu"]:
        pytest.skip("this build or machine has no other device")
    for device in devices:
        index, found = device + ".nw", device + ".bin"
        nearwise("index", "build", "base.fbin", "--codec", *codec, "--lists", 4, "--iterations", 1, "--metric", metric,
                 "--device", device, "-o", index)
        nearwise("index", "search", index, "queries.fbin", "-k", 5, "--probes", 2, "--device", device, "-o", found)
        nearwise("index", "search", index, "queries.fbin", "-k", 5, "--rerank", "base.fbin", "--candidates", 20, "--device", device,
                 "-o", "again-" + found)
    # The indexes themselves say when and on which device they were made.
    for prefix in ("", "again-"):
        assert len({(tmp_path / (prefix + device + ".bin")).read_bytes() for device in devices}) == 1


def test_a_device_that_is_not_there(nearwise, devices, small):
    """The message lists those that are."""
    for name, code in (("abacus", 2), ("cuda:63", 69)):
        error = json.loads(nearwise(*KNN, "--device", name, "--json", expect=code).err)["error"]
        assert name in error["message"] and error["message"].endswith("devices here: " + ", ".join(devices))


def test_info_lists_what_a_device_lacks(nearwise, devices):
    if "cuda:0" not in devices:
        pytest.skip("this build or machine has no CUDA device")
    lacking = {device["name"]: device["missing_operations"] for device in nearwise("info", "--json").json["devices"]}
    assert "start_range" in lacking["cuda:0"] and "start_range" not in lacking["cpu"]
    assert "start_range" in nearwise("info", "--verbose").out.split("cuda:0")[1].split("missing")[1].splitlines()[0]


def test_instruction_sets_of_the_cpu_are_refused_elsewhere(nearwise, devices, small):
    if "cuda:0" not in devices:
        pytest.skip("this build or machine has no CUDA device")
    assert "must be f32, tf32 or bf16" in nearwise(*KNN, "--device", "cuda:0", "--isa", "portable", expect=2).err


def test_memory_limit_on_a_device(nearwise, devices, small):
    if "cuda:0" not in devices:
        pytest.skip("this build or machine has no CUDA device")
    nearwise(*KNN, "--device", "cuda:0", "--memory-limit", "1KiB", expect=71)
    limited = nearwise(*KNN, "--device", "cuda:0", "--memory-limit", "2MiB", "--json").json
    assert limited["memory_peak_bytes"] <= 2 << 20
    assert limited["first_rows"] == nearwise(*KNN, "--json").json["first_rows"]
