"""nearwise verify and nearwise info."""
from pathlib import Path

import formats
import numpy as np
import pytest


@pytest.fixture
def saved(nearwise, small, tmp_path):
    nearwise("knn", "base.fbin", "queries.fbin", "-o", "found.nw")
    return tmp_path / "found.nw"


def flip(path, offset):
    data = bytearray(path.read_bytes())
    data[offset] ^= 0x10
    path.write_bytes(bytes(data))


def test_whole_files(nearwise, saved, tmp_path):
    formats.write_array(tmp_path / "ids.ivecs", np.array([[1, -1]], np.int32))
    result = nearwise("verify", "found.nw", "base.fbin", "ids.ivecs")
    assert [line.split(": ")[1].split()[0] for line in result.out.splitlines()] == ["ok", "ok", "ok"]
    assert result.err == ""


def test_any_flipped_bit_of_a_container_is_found(nearwise, saved):
    data = saved.read_bytes()
    for offset in np.linspace(0, len(data) - 1, 25, dtype=int):
        flip(saved, offset)
        result = nearwise("verify", saved, expect=65)
        assert "damaged" in result.out, offset
        saved.write_bytes(data)
    nearwise("verify", saved)


def test_truncated_and_extended_containers(nearwise, saved):
    data = saved.read_bytes()
    for damaged in (data[:-1], data[: len(data) // 2], data[:10], b"", data + b"x"):
        saved.write_bytes(damaged)
        nearwise("verify", saved, expect=65)


def damaged_vectors(tmp_path):
    values = np.ones((10, 4), np.float32)
    for name, bad in [("nan.fbin", np.nan), ("inf.fbin", np.inf)]:
        values[7, 1] = bad
        formats.write_vectors(tmp_path / name, values)
    formats.write_vectors(tmp_path / "nan.f16bin", values)
    formats.write_vectors(tmp_path / "short.fbin", np.ones((10, 4)))
    data = (tmp_path / "short.fbin").read_bytes()
    (tmp_path / "short.fbin").write_bytes(data[:-3])
    (tmp_path / "long.fbin").write_bytes(data + b"xyz")
    formats.write_vectors(tmp_path / "uneven.fvecs", np.ones((10, 4)))
    flip(tmp_path / "uneven.fvecs", 5 * 20)  # the length of row 5
    (tmp_path / "not.npy").write_bytes(b"this is no array")
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    (tmp_path / "ids.ibin").write_bytes(np.array([1, 2, 5, -7], "<i4").tobytes())
    return {"nan.fbin": "row 7, column 1", "inf.fbin": "row 7, column 1", "nan.f16bin": "row 7, column 1",
            "short.fbin": "", "long.fbin": "", "uneven.fvecs": "5", "not.npy": "", "objects.npy": "",
            "ids.ibin": "-7"}


def test_damaged_vectors_and_ids(nearwise, tmp_path):
    for name, mention in damaged_vectors(tmp_path).items():
        result = nearwise("verify", name, expect=65)
        assert result.out.startswith(f"{name}: damaged: ") and mention in result.out


def test_distances_that_are_no_numbers(nearwise, tmp_path):
    distances = np.array([[0, 1], [2, np.inf], [3, np.nan]], np.float32)
    ids = np.array([[0, 1], [2, -1], [1, 0]])
    formats.write_truth_bin(tmp_path / "truth.bin", ids, distances)
    assert "truth.bin: damaged: row 2: a distance is NaN" in nearwise("verify", "truth.bin", expect=65).out
    formats.write_truth_bin(tmp_path / "padded.bin", ids[:2], distances[:2])
    assert "padded.bin: ok" in nearwise("verify", "padded.bin").out


def test_one_bad_file_among_good_ones(nearwise, saved, tmp_path):
    flip(saved, 5000)
    result = nearwise("verify", "--json", "base.fbin", "missing.fbin", saved, "queries.fbin", expect=65)
    assert [file["ok"] for file in result.json["files"]] == [True, False, False, True]
    assert [file.get("code") for file in result.json["files"]] == [None, "not_found", "corrupt", None]
    assert result.json["damaged"] == 1
    result = nearwise("verify", "base.fbin", "missing.fbin", "queries.fbin", expect=66)
    assert "missing.fbin: not verified" in result.out and result.out.count("ok") == 2


def test_info_on_vectors(nearwise, tmp_path):
    for name, element, array in [("a.fbin", "f32", np.ones((3, 4))), ("a.bvecs", "u8", np.ones((3, 4))),
                                 ("a.npy", "f16", np.ones((3, 4), np.float16))]:
        formats.write_vectors(tmp_path / name, array)
        file = nearwise("info", name, "--json").json["files"][0]
        assert (file["content"], file["rows"], file["dim"], file["type"]) == ("vectors", 3, 4, element)
        assert file["bytes"] == (tmp_path / name).stat().st_size
        text = nearwise("info", name).out
        assert text.startswith(name) and "vectors" in text and element in text


def test_info_on_neighbours(nearwise, saved, tmp_path):
    np.save(tmp_path / "ids.npy", np.arange(6).reshape(2, 3))
    file = nearwise("info", "ids.npy", "--json").json["files"][0]
    assert (file["content"], file["rows"], file["k"], file["distances"]) == ("neighbors", 2, 3, False)
    file = nearwise("info", saved, "--json").json["files"][0]
    assert (file["content"], file["rows"], file["k"]) == ("neighbors", 20, 10)
    assert {"ids", "distances", "metadata"} <= {section["name"] for section in file["sections"]}
    text = nearwise("info", saved).out
    assert "sqeuclidean" in text and "section ids" in text


def test_names(nearwise, tmp_path):
    path = Path(__file__).parents[1] / "golden" / "names_1_1.nw"
    file = nearwise("info", path, "--json").json["files"][0]
    assert (file["content"], file["names"], file["format_version"]) == ("names", 3, "1.1")
    assert "names" in nearwise("info", path).out
    assert "ok (container of names, 3 sections)" in nearwise("verify", path).out
    data = bytearray(path.read_bytes())
    data[data.index(b"first")] ^= 1
    (tmp_path / "damaged.nw").write_bytes(data)
    assert "damaged.nw: damaged: " in nearwise("verify", "damaged.nw", expect=65).out


def renamed(data, names):
    """A container with other names of sections."""
    table = int.from_bytes(data[64:72], "little")
    changed = bytearray(data)
    for entry in range(table, table + 64 * int.from_bytes(data[20:24], "little"), 64):
        name = data[entry : entry + 32].rstrip(b"\0").decode()
        changed[entry : entry + 32] = names.get(name, name).encode().ljust(32, b"\0")
    try:
        formats.seal(changed)
    except OSError:
        pytest.skip("needs libxxhash")
    return bytes(changed)


def test_info_on_sections_that_contradict_each_other(nearwise, tmp_path):
    data = (Path(__file__).parents[1] / "golden" / "graph_index_changed_1_4.nw").read_bytes()
    # 3 of 303 vectors are removed; then there are no edges; then edges of 2 vectors.
    cases = {"whole": ({}, 300), "none": ({"edges": "edgez"}, 0), "few": ({"edges": "edgez", "entry_tops": "edges"}, 0)}
    for name, (names, rows) in cases.items():
        (tmp_path / f"{name}.nw").write_bytes(renamed(data, names))
        file = nearwise("info", f"{name}.nw", "--json").json["files"][0]
        assert (file["content"], file["rows"], file["removed"]) == ("graph_index", rows, 3)


def test_info_goes_on_after_a_bad_file(nearwise, saved, tmp_path):
    (tmp_path / "cut.nw").write_bytes(saved.read_bytes()[:-1])
    result = nearwise("info", "cut.nw", saved, "missing.nw", expect=65)
    assert str(saved) in result.out and "cut.nw" in result.err and "missing.nw" in result.err
    assert len(nearwise("info", "cut.nw", saved, "--json", expect=65).json["files"]) == 1
    nearwise("info", "missing.nw", expect=66)


def test_info_on_the_machine(nearwise):
    machine = nearwise("info", "--json").json
    assert machine["version"] in nearwise("--version").out
    assert machine["devices"][0]["name"] == "cpu" and machine["devices"][0]["operations"]
    assert machine["instruction_sets"] and machine["threads"] >= 1 and machine["memory_total_bytes"] > 0
    for device in machine["devices"]:
        assert set(device["operations"]).isdisjoint(device["missing_operations"])
    assert "start_range" in machine["devices"][0]["operations"]
    assert "join_neighborhoods" in machine["devices"][0]["missing_operations"]
    assert "blas" not in machine
    cuda = machine["cuda"]
    assert set(cuda) == {"driver_version", "runtime_version", "problem", "library"}
    assert bool(cuda["problem"]) == (len(machine["devices"]) == 1)
    assert {"f32", "u8", "i8"} <= {scan["rows"] for scan in machine["scans"]}
    for scan in machine["scans"]:
        assert scan.keys() == {"rows", "multiplied_as", "gflops"}
        assert scan["multiplied_as"] in ("f32", "bf16", "integers") and scan["gflops"] > 0
    text = nearwise("info").out
    assert text.count("vectors multiplied as") == len(machine["scans"])
    assert "  operations " not in text and "  missing " not in text and "start_range" not in text
    verbose = nearwise("info", "--verbose").out
    assert verbose.count("  operations ") == verbose.count("  missing ") == len(machine["devices"])
    assert "start_range" in verbose and [line for line in verbose.splitlines() if not line.startswith("  ")][:3] == text.splitlines()[:3]
    assert ("no device can be used: " in text) == bool(cuda["problem"]) and cuda["problem"] in text
    assert machine["devices"][0]["model"] in text and machine["instruction_sets"][0] in text
