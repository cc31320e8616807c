"""nearwise kmeans: Lloyd's iterations as NumPy makes them, the files it leaves, and words for what it cannot do."""
import json
import signal
import time

import formats
import numpy as np
import pytest


def lloyd(rows, centroids, iterations):
    """Centroids, and the error of every iteration, in double precision."""
    rows, errors = rows.astype(np.float64), []
    for _ in range(iterations):
        distances = ((rows[:, None, :] - centroids[None, :, :].astype(np.float64)) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        errors.append(distances.min(axis=1).sum())
        centroids = np.stack([rows[nearest == c].mean(axis=0) for c in range(len(centroids))]).astype(np.float32)
    return centroids, errors


def nearest_of(rows, centroids):
    return ((rows[:, None, :].astype(np.float64) - centroids[None, :, :]) ** 2).sum(axis=2).argmin(axis=1)


@pytest.mark.parametrize("suffix", [".fbin", ".u8bin", ".i8bin", ".bf16bin", ".bvecs", ".npy"])
def test_iterates_as_lloyd_does(nearwise, tmp_path, suffix):
    base = np.random.default_rng(3).integers(0, 100, (301, 19)).astype(np.float32)
    formats.write_vectors(tmp_path / ("base" + suffix), base)
    formats.write_vectors(tmp_path / "start.fbin", base[:6])
    result = nearwise("kmeans", "base" + suffix, "--clusters", 6, "--initial", "start.fbin", "--iterations", 3,
                      "--tolerance", 0, "-o", "centroids.fbin", "--json").json
    centroids, errors = lloyd(base, base[:6], 3)
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / "centroids.fbin"), centroids)
    np.testing.assert_allclose(result["errors"], errors, rtol=1e-9)
    assert (result["rows"], result["clusters"], result["dim"]) == (301, 6, 19)
    assert result["output"] == "centroids.fbin" and result["assignments"] is None
    assert 1 <= result["smallest_cluster"] <= 50 <= result["largest_cluster"]


@pytest.mark.parametrize("suffix", [".fbin", ".fvecs", ".npy"])
def test_output_formats(nearwise, small, tmp_path, suffix):
    for name in ("plain.fbin", "centroids" + suffix):
        nearwise("kmeans", "base.fbin", "--clusters", 5, "-o", name)
    np.testing.assert_array_equal(formats.read_vectors(tmp_path / ("centroids" + suffix)),
                                  formats.read_vectors(tmp_path / "plain.fbin"))


@pytest.mark.parametrize("suffix", [".ivecs", ".ibin", ".npy", ".bin", ".nw"])
def test_assignments(nearwise, small, tmp_path, suffix):
    name = "clusters" + suffix
    nearwise("kmeans", "base.fbin", "--clusters", 7, "-o", "centroids.fbin", "--assignments", name)
    if suffix == ".nw":
        file = nearwise("info", "--json", name).json["files"][0]
        assert (file["content"], file["rows"], file["k"]) == ("neighbors", 200, 1)
        nearwise("verify", name)
        nearwise("convert", name, "-o", "clusters.bin")
        name = "clusters.bin"
    ids = formats.read_truth_bin(tmp_path / name)[0] if name.endswith(".bin") else formats.read_array(tmp_path / name)
    centroids = formats.read_vectors(tmp_path / "centroids.fbin")
    np.testing.assert_array_equal(ids[:, 0], nearest_of(small[0], centroids))


def test_same_bytes_for_any_threads_memory_and_instruction_set(nearwise, small, tmp_path):
    sets = nearwise("info", "--json").json["instruction_sets"]
    options = [["--threads", "1"], ["--threads", "3"], ["--threads", "1", "--memory-limit", "500kB"]]
    options += [["--isa", name] for name in sets]
    answers = set()
    for option in options:
        result = nearwise("kmeans", "base.fbin", "--clusters", 9, "-o", "centroids.fbin", "--json", *option).json
        answers.add((tmp_path / "centroids.fbin").read_bytes())
        if "--memory-limit" in option:
            assert result["memory_peak_bytes"] <= 500_000
    assert len(answers) == 1


@pytest.mark.parametrize("balance", ["1", "1.3"])
def test_balance(nearwise, small, tmp_path, balance):
    result = nearwise("kmeans", "base.fbin", "--clusters", 9, "--balance", balance, "-o", "centroids.fbin",
                      "--assignments", "clusters.ivecs", "--json").json
    most = max(-(-200 // 9), int(float(balance) * 200 / 9))
    assert result["largest_cluster"] <= most
    ids = formats.read_array(tmp_path / "clusters.ivecs")[:, 0]
    assert np.bincount(ids).max() <= most
    nearest = nearest_of(small[0], formats.read_vectors(tmp_path / "centroids.fbin"))
    assert np.bincount(nearest).max() > most, "nothing was to be balanced"
    assert (np.bincount(ids, minlength=9)[nearest[nearest != ids]] == most).all()


def test_batches_of_a_file_beyond_the_memory_limit(nearwise, tmp_path):
    random = np.random.default_rng(4)
    centres = np.array([[30, 30], [30, 220], [220, 30], [220, 220]])
    rows = (centres.repeat(50_000, axis=0) + random.integers(-5, 6, (200_000, 2))).astype(np.uint8)
    formats.write_vectors(tmp_path / "base.u8bin", rows)
    options = ["--clusters", 4, "--memory-limit", "1MB", "--threads", 1, "-o", "centroids.fbin"]
    assert "memory limit" in nearwise("kmeans", "base.u8bin", *options, expect=71).err
    result = nearwise("kmeans", "base.u8bin", *options, "--batch-size", 1024, "--json").json
    assert result["memory_peak_bytes"] <= 1_000_000 and result["rows"] == 200_000
    centroids = formats.read_vectors(tmp_path / "centroids.fbin")
    assert sorted(centroids.round(-1).tolist()) == centres.tolist()
    np.testing.assert_allclose(result["errors"][-1], ((rows - centres.repeat(50_000, axis=0)) ** 2.0).sum(), rtol=0.2)


def test_options_have_an_effect(nearwise, small, tmp_path):
    answers = {}
    for options in ([], ["--seed", 1], ["--seeding", "random"], ["--metric", "cosine"], ["--iterations", 1],
                    ["--metric", "inner_product"], ["--hierarchical"], ["--min-cluster-size", 15], ["--tolerance", 0.2],
                    ["--balance", 1.1], ["--batch-size", 100]):
        nearwise("kmeans", "base.fbin", "--clusters", 12, "-o", "centroids.npy", *options)
        answers[tuple(options)] = np.load(tmp_path / "centroids.npy")
    assert len({answer.tobytes() for answer in answers.values()}) == len(answers)
    for metric in ("cosine", "inner_product"):
        lengths = np.linalg.norm(answers["--metric", metric], axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=1e-5)


def test_what_it_says(nearwise, small):
    result = nearwise("kmeans", "base.fbin", "--clusters", 4, "-o", "centroids.fbin", "--iterations", 2, "--tolerance", 0)
    assert result.out == "" and "wrote 4 x 16 to centroids.fbin: 200 vectors, 2 iterations, mean" in result.err
    assert nearwise("kmeans", "base.fbin", "--clusters", 4, "-o", "centroids.fbin", "-q").err == ""
    assert "two levels" in nearwise("kmeans", "base.fbin", "--clusters", 9, "--hierarchical", "-o", "c.fbin").err


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--clusters", "201"], 2, "--clusters must be at most the 200 vectors of 'base.fbin', got 201"),
        (["--clusters", "0"], 2, "at least 1, got '0'"),
        (["--clusters", "9", "--min-cluster-size", "23"], 2, "--min-cluster-size must be at most 22 (200 vectors in 9 clusters), got 23"),
        (["--clusters", "9", "--metric", "euclidean"], 2, "sqeuclidean, inner_product, cosine, got 'euclidean'"),
        (["--clusters", "9", "--tolerance", "-1"], 2, "at least 0, such as 0.001, got '-1'"),
        (["--clusters", "9", "--tolerance", "nan"], 2, "got 'nan'"),
        (["--clusters", "9", "--balance", "0.9"], 2, "at least 1, or 0 for no bound, got 0.9"),
        (["--clusters", "9", "--balance", "2", "--hierarchical"], 2, "--hierarchical cannot be combined with --balance"),
        (["--clusters", "9", "--batch-size", "8"], 2, "--batch-size must be at least the 9 clusters, got 8"),
        (["--clusters", "9", "--batch-size", "90", "--hierarchical"], 2, "--hierarchical cannot be combined with --batch-size"),
        (["--clusters", "9", "--batch-size", "90", "--balance", "2"], 2, "cannot be combined with --balance or --min-cluster-size"),
        (["--clusters", "9", "--iterations", "0"], 2, "at least 1, got '0'"),
        (["--clusters", "9", "--seeding", "best"], 2, "best"),
        (["--clusters", "9", "--seed", "-1"], 2, "got '-1'"),
        (["--clusters", "9", "--initial", "queries.fbin"], 2, "must be 9 x 16, 'queries.fbin' has 20 x 16"),
        (["--clusters", "20", "--initial", "queries.fbin", "--hierarchical"], 2, "--hierarchical cannot be combined with --initial"),
        (["--clusters", "9", "--initial", "absent.fbin"], 66, "absent.fbin"),
        (["--clusters", "9", "-o", "centroids.u8bin"], 2, "centroids are f32"),
        (["--clusters", "9", "-o", "centroids.ivecs"], 2, "centroids.ivecs"),
        (["--clusters", "9", "-o", "base.fbin"], 2, "would replace an input"),
        (["--clusters", "9", "-o", "absent/centroids.fbin"], 73, "absent"),
        (["--clusters", "9", "--assignments", "clusters.fbin"], 2, "clusters.fbin"),
        (["--clusters", "9", "-o", "both.npy", "--assignments", "both.npy"], 2, "'both.npy' and 'both.npy' are the same"),
        (["--clusters", "9", "-o", "both.npy", "--assignments", "./both.npy"], 2, "'both.npy' and './both.npy' are the same"),
        (["--clusters", "9", "--memory-limit", "1KiB"], 71, "memory limit"),
        (["--clusters", "9", "--device", "abacus"], 2, "abacus"),
    ],
)
def test_what_is_refused(nearwise, small, tmp_path, options, code, words):
    output = [] if "-o" in options else ["-o", "centroids.fbin"]
    error = json.loads(nearwise("kmeans", "base.fbin", *options, *output, "--json", expect=code).err)["error"]
    assert words in error["message"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.fbin", "queries.fbin"]


def test_values_that_are_no_numbers(nearwise, small, tmp_path):
    base = small[0].copy()
    base[123, 4] = np.nan
    formats.write_vectors(tmp_path / "broken.fbin", base)
    assert "row 123 holds NaN" in nearwise("kmeans", "broken.fbin", "--clusters", 3, "-o", "c.fbin", expect=65).err
    assert not (tmp_path / "c.fbin").exists()


def test_ctrl_c_leaves_nothing(start, tmp_path):
    rows = np.random.default_rng(1).standard_normal((120_000, 64), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", rows)
    process = start("kmeans", "base.fbin", "--clusters", "10000", "--iterations", "10000", "--tolerance", "0",
                    "--threads", "1", "-o", "centroids.fbin")
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["base.fbin"]
