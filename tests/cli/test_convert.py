"""nearwise convert: every format to every other, exactness, rounding, and what is refused."""
import os
import subprocess

import formats
import numpy as np
import pytest

from conftest import environment, program

# name of a file and the element type it holds
VECTOR_FILES = {
    "v.fbin": "f32", "v.f16bin": "f16", "v.bf16bin": "bf16", "v.u8bin": "u8", "v.i8bin": "i8", "v.fvecs": "f32",
    "v.bvecs": "u8", "f32.npy": "f32", "f16.npy": "f16", "u8.npy": "u8", "i8.npy": "i8",
    "bf16.npy": "bf16",
}
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": np.float32, "u8": np.uint8, "i8": np.int8}
NEIGHBOR_SUFFIXES = [".nw", ".ivecs", ".ibin", ".bin", ".npy"]


def write(path, array):
    if path.name == "bf16.npy":  # NumPy knows it as two bytes
        np.save(path, formats.to_bf16_bits(array).view("V2"))
    else:
        formats.write_vectors(path, array.astype(DTYPES[VECTOR_FILES[path.name]]))


@pytest.mark.parametrize("source", VECTOR_FILES)
def test_vectors_from_every_format_to_every_other(nearwise, tmp_path, source):
    array = np.random.default_rng(2).integers(0, 128, (37, 5))  # values that every element type holds
    write(tmp_path / source, array)
    (tmp_path / "out").mkdir()
    for target, element in VECTOR_FILES.items():
        nearwise("convert", source, "-o", "out/" + target, "--type", element)
        found = tmp_path / "out" / target
        np.testing.assert_array_equal(formats.read_vectors(found), array)
        if found.suffix != ".npy":  # whose header may be padded in several ways
            write(tmp_path / target, array)
            assert found.read_bytes() == (tmp_path / target).read_bytes()


EXACT = [("u8", "f32"), ("u8", "f16"), ("u8", "bf16"), ("i8", "f32"), ("i8", "f16"), ("i8", "bf16"), ("f16", "f32"),
         ("bf16", "f32")]


@pytest.mark.parametrize("source", [".fbin", ".f16bin", ".bf16bin", ".u8bin", ".i8bin"])
@pytest.mark.parametrize("target", [".fbin", ".f16bin", ".bf16bin", ".u8bin", ".i8bin"])
def test_only_exact_conversions_need_no_type(nearwise, tmp_path, source, target):
    types = {".fbin": "f32", ".f16bin": "f16", ".bf16bin": "bf16", ".u8bin": "u8", ".i8bin": "i8"}
    formats.write_vectors(tmp_path / ("in" + source), np.ones((2, 3)))
    is_exact = source == target or (types[source], types[target]) in EXACT
    result = nearwise("convert", "in" + source, "-o", "out" + target, expect=0 if is_exact else 2)
    assert is_exact or f"--type {types[target]}" in result.err
    assert (tmp_path / ("out" + target)).exists() == is_exact


def test_npy_keeps_the_type(nearwise, tmp_path):
    for source, dtype in [("a.f16bin", np.float16), ("a.bf16bin", "V2"), ("a.u8bin", np.uint8)]:
        formats.write_vectors(tmp_path / source, np.ones((2, 3)))
        nearwise("convert", source, "-o", "out.npy")
        assert np.load(tmp_path / "out.npy").dtype == dtype


def test_every_f16_and_bf16_widens_exactly(nearwise, tmp_path):
    bits = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    formats.write_array(tmp_path / "in.f16bin", bits.view(np.float16))
    formats.write_array(tmp_path / "in.bf16bin", bits)
    for source, expected in [("in.f16bin", bits.view(np.float16).astype(np.float32)),
                             ("in.bf16bin", formats.from_bf16_bits(bits))]:
        nearwise("convert", source, "-o", "out.fbin")
        found = formats.read_array(tmp_path / "out.fbin")
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(found.view(np.uint32)[is_number], expected.view(np.uint32)[is_number])
        assert np.isnan(found[~is_number]).all()


def test_narrowing_rounds_to_nearest_even(nearwise, tmp_path):
    random = np.random.default_rng(8)
    values = random.integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    # Halfway between neighbours in f16, normal and subnormal, and a hair to either side.
    halves = (np.arange(0, 0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
              + np.arange(1, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)) / 2
    halves = halves.astype(np.float32)
    near = np.concatenate([halves, np.nextafter(halves, np.float32(0)), np.nextafter(halves, np.float32(1e9))])
    values = np.concatenate([values, near, -near])
    for name, limit, narrow in [("f16", 65519, lambda v: v.astype(np.float16).view(np.uint16)),
                                ("bf16", 3e38, formats.to_bf16_bits)]:
        fitting = values[np.abs(values) <= limit]
        fitting = fitting[: len(fitting) // 8 * 8].reshape(-1, 8)
        formats.write_vectors(tmp_path / "in.fbin", fitting)
        nearwise("convert", "in.fbin", "-o", f"out.{name}bin", "--type", name)
        found = formats.read_array(tmp_path / f"out.{name}bin").view(np.uint16)
        np.testing.assert_array_equal(found, narrow(fitting))


def test_narrowing_to_integers(nearwise, tmp_path):
    values = np.array([[0, 0.5, 1.5, 2.5, 254.5, 255.4, -0.5, 100.49]], np.float32)
    formats.write_vectors(tmp_path / "in.fbin", values)
    nearwise("convert", "in.fbin", "-o", "out.u8bin", "--type", "u8")
    np.testing.assert_array_equal(formats.read_array(tmp_path / "out.u8bin"), [[0, 0, 2, 2, 254, 255, 0, 100]])
    formats.write_vectors(tmp_path / "in.fbin", np.array([[-128.5, 127.49, -1.5]], np.float32))
    nearwise("convert", "in.fbin", "-o", "out.i8bin", "--type", "i8")
    np.testing.assert_array_equal(formats.read_array(tmp_path / "out.i8bin"), [[-128, 127, -2]])


@pytest.mark.parametrize("value, element", [(255.5, "u8"), (-1, "u8"), (127.5, "i8"), (-129, "i8"), (np.nan, "u8"),
                                            (np.inf, "i8"), (65520, "f16"), (3.4e38, "bf16")])
def test_what_does_not_fit_is_named(nearwise, tmp_path, value, element):
    values = np.ones((7, 4), np.float32)
    values[5, 2] = value
    formats.write_vectors(tmp_path / "in.fbin", values)
    output = f"out.{element}bin"
    (tmp_path / output).write_bytes(b"precious")
    refused = nearwise("convert", "in.fbin", "-o", output, "--type", element, expect=65)
    assert "row 5, column 2" in refused.err and element in refused.err
    assert (tmp_path / output).read_bytes() == b"precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.fbin", output]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_infinities_and_nan_pass_between_floats(nearwise, tmp_path, value, element):
    formats.write_vectors(tmp_path / "in.fbin", np.array([[value, 1]], np.float32))
    nearwise("convert", "in.fbin", "-o", f"out.{element}bin", "--type", element)
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / f"out.{element}bin"), [[value, 1]])


def test_row_numbers_count_over_chunks(nearwise, tmp_path):
    values = np.ones((30_000, 64), np.float32)
    values[29_999, 63] = 256
    formats.write_vectors(tmp_path / "in.fbin", values)
    refused = nearwise("convert", "in.fbin", "-o", "out.u8bin", "--type", "u8", "--memory-limit", "64KiB", expect=65)
    assert "row 29999, column 63" in refused.err


def test_memory_is_kept(tmp_path):
    def peak_bytes(rows):
        formats.write_vectors(tmp_path / "in.fbin", np.ones((rows, 256), np.float32))
        process = subprocess.Popen([program(), "convert", "-q", "in.fbin", "-o", "out.f16bin", "--type", "f16",
                                    "--memory-limit", "8MiB"], cwd=tmp_path, env=environment())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return usage.ru_maxrss * 1024

    assert peak_bytes(60_000) - peak_bytes(1) < 8 << 20  # of a file of 61 MB


def test_memory_for_less_than_a_row(nearwise, tmp_path):
    formats.write_vectors(tmp_path / "in.fbin", np.ones((2, 1000), np.float32))
    nearwise("convert", "in.fbin", "-o", "out.fvecs", "--memory-limit", "4KB", expect=71)
    nearwise("convert", "in.fbin", "-o", "out.fvecs", "--memory-limit", "16KB")


@pytest.mark.parametrize("source", NEIGHBOR_SUFFIXES)
def test_neighbours_from_every_format_to_every_other(nearwise, small, tmp_path, source):
    knn = ["knn", "base.fbin", "queries.fbin", "-k", 3, "--metric", "cosine"]
    nearwise(*knn, "-o", "truth.bin")
    nearwise(*knn, "-o", "in" + source)
    ids, distances = formats.read_truth_bin(tmp_path / "truth.bin")
    for target in NEIGHBOR_SUFFIXES:
        metric = ["--metric", "cosine"] if target == ".nw" else []
        needs_distances = target in (".nw", ".bin") and source not in (".nw", ".bin")
        result = nearwise("convert", "in" + source, "-o", "out" + target, *metric, expect=2 if needs_distances else 0)
        if needs_distances:
            assert "distances" in result.err
            continue
        path = tmp_path / ("out" + target)
        if target == ".nw":  # the program's own format is read by the program
            nearwise("convert", "out.nw", "-o", "again.bin")
            path = tmp_path / "again.bin"
        if path.suffix == ".bin":
            found_ids, found_distances = formats.read_truth_bin(path)
            np.testing.assert_array_equal(found_distances, distances)
        else:
            found_ids = formats.read_array(path)
        np.testing.assert_array_equal(found_ids, ids)


def test_a_container_needs_a_metric_and_keeps_its_story(nearwise, small, tmp_path):
    nearwise("knn", "base.fbin", "queries.fbin", "--metric", "cosine", "-o", "in.nw")
    nearwise("convert", "in.nw", "-o", "copy.nw")
    assert (tmp_path / "copy.nw").read_bytes() == (tmp_path / "in.nw").read_bytes()
    assert "euclidean" in nearwise("convert", "in.nw", "-o", "no.nw", "--metric", "euclidean", expect=2).err
    nearwise("convert", "in.nw", "-o", "ids.bin")
    assert "--metric" in nearwise("convert", "ids.bin", "-o", "no.nw", expect=2).err
    assert not (tmp_path / "no.nw").exists()


def test_left_behind_distances_are_mentioned(nearwise, small):
    nearwise("knn", "base.fbin", "queries.fbin", "-o", "in.nw")
    assert "distances are dropped" in nearwise("convert", "in.nw", "-o", "out.ivecs").err
    assert nearwise("convert", "in.nw", "-o", "out.ivecs", "--quiet").err == ""


def test_json(nearwise, small):
    report = nearwise("convert", "base.fbin", "-o", "out.f16bin", "--type", "f16", "--json")
    assert report.json == {"content": "vectors", "rows": 200, "dim": 16, "from": "f32", "to": "f16",
                           "output": "out.f16bin"}
    nearwise("knn", "base.fbin", "queries.fbin", "-o", "in.nw")
    report = nearwise("convert", "in.nw", "-o", "out.ivecs", "--json")
    assert report.json == {"content": "neighbors", "rows": 20, "k": 10, "output": "out.ivecs"} and report.err == ""


@pytest.mark.parametrize("arguments", [["base.fbin", "out.ivecs"], ["base.fbin", "out.nw"], ["base.fbin", "out.txt"],
                                       ["ids.ivecs", "out.fbin"], ["ids.ivecs", "out.ibin", "--type", "u8"],
                                       ["base.fbin", "out.fbin", "--type", "f16"]])
def test_combinations_that_mean_nothing(nearwise, small, tmp_path, arguments):
    formats.write_array(tmp_path / "ids.ivecs", np.array([[1, 2]], np.int32))
    nearwise("convert", arguments[0], "-o", *arguments[1:], expect=2)
    assert not (tmp_path / arguments[1]).exists()


@pytest.mark.parametrize("limit", [1, 137, 200, 10**15])
def test_the_first_rows(nearwise, small, tmp_path, limit):
    kept = min(limit, 200)
    vectors = formats.read_vectors(tmp_path / "base.fbin")
    report = nearwise("convert", "base.fbin", "-o", "first.fvecs", "--limit-rows", limit, "--memory-limit", "1KiB", "--json").json
    assert report["rows"] == kept
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / "first.fvecs"), vectors[:kept])
    nearwise("knn", "base.fbin", "base.fbin", "-k", 3, "-o", "all.nw")
    nearwise("convert", "all.nw", "-o", "all.bin")
    ids, distances = formats.read_truth_bin(tmp_path / "all.bin")
    for source in ("all.nw", "all.bin"):
        report = nearwise("convert", source, "-o", "first.bin", "--limit-rows", limit, "--json").json
        assert report["rows"] == kept
        found = formats.read_truth_bin(tmp_path / "first.bin")
        np.testing.assert_array_equal(found[0], ids[:kept])
        np.testing.assert_array_equal(found[1], distances[:kept])
    formats.write_array(tmp_path / "ids.ivecs", ids)
    nearwise("convert", "ids.ivecs", "-o", "first.npy", "--limit-rows", limit)
    np.testing.assert_array_equal(np.load(tmp_path / "first.npy"), ids[:kept])


def test_the_first_rows_say_so(nearwise, small, tmp_path):
    nearwise("knn", "base.fbin", "queries.fbin", "-o", "all.nw")
    nearwise("convert", "all.nw", "-o", "first.nw", "--limit-rows", 5)
    metadata = nearwise("info", "first.nw", "--json").json["files"][0]["metadata"]
    assert metadata["provenance.rows"] == "the first 5 of 20" and "nearwise knn" in metadata["provenance.command"]
    nearwise("convert", "all.nw", "-o", "copy.nw", "--limit-rows", 20)
    assert (tmp_path / "copy.nw").read_bytes() == (tmp_path / "all.nw").read_bytes()
    assert "--limit-rows must be a whole number of at least 1" in nearwise(
        "convert", "all.nw", "-o", "x.nw", "--limit-rows", 0, expect=2).err


def test_rows_after_the_limit_are_not_converted(nearwise, tmp_path):
    formats.write_vectors(tmp_path / "in.fbin", np.array([[1, 2], [3, 1000]], np.float32))
    nearwise("convert", "in.fbin", "-o", "out.u8bin", "--type", "u8", "--limit-rows", 1)
    np.testing.assert_array_equal(formats.read_array(tmp_path / "out.u8bin"), [[1, 2]])


def test_a_file_onto_itself(nearwise, small, tmp_path):
    before = (tmp_path / "base.fbin").read_bytes()
    nearwise("convert", "base.fbin", "-o", "base.fbin")
    assert (tmp_path / "base.fbin").read_bytes() == before


def test_ids_beyond_32_bits(nearwise, tmp_path):
    np.save(tmp_path / "ids.npy", np.array([[1, 2**40]]))
    refused = nearwise("convert", "ids.npy", "-o", "ids.ivecs", expect=2)
    assert str(2**40) in refused.err and not (tmp_path / "ids.ivecs").exists()
