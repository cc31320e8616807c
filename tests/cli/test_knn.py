"""nearwise knn against a NumPy oracle in double precision, and what it leaves behind."""
import json

import formats
import numpy as np
import pytest

METRICS = ["sqeuclidean", "euclidean", "inner_product", "cosine"]


def oracle(queries, base, metric):
    """Distances [queries, base] in f64 and the order of the base rows: best first, lower id first in a tie."""
    queries, base = queries.astype(np.float64), base.astype(np.float64)
    products = queries @ base.T
    if metric == "inner_product":
        return products, np.argsort(-products, axis=1, kind="stable")
    if metric == "cosine":
        norms = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(base, axis=1)[None, :]
        distances = 1 - products / norms
    else:
        distances = ((queries[:, None, :] - base[None, :, :]) ** 2).sum(axis=2)
        if metric == "euclidean":
            distances = np.sqrt(distances)
    return distances, np.argsort(distances, axis=1, kind="stable")


def check(ids, distances, queries, base, metric):
    k = ids.shape[1]
    true_distances, order = oracle(queries, base, metric)
    np.testing.assert_array_equal(ids, order[:, :k])
    np.testing.assert_allclose(distances, np.take_along_axis(true_distances, order[:, :k], 1), rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("suffix", [".fbin", ".f16bin", ".bf16bin", ".u8bin", ".i8bin", ".fvecs", ".bvecs", ".npy"])
def test_every_metric_and_element_type(nearwise, tmp_path, metric, suffix):
    random = np.random.default_rng(3)
    # Integers that every element type holds; 19 dimensions, as tails are where mistakes live.
    base = random.integers(0, 128, (301, 19)).astype(np.float32)
    queries = random.integers(1, 128, (23, 19)).astype(np.float32)
    formats.write_vectors(tmp_path / ("base" + suffix), base)
    formats.write_vectors(tmp_path / ("queries" + suffix), queries)
    nearwise("knn", "base" + suffix, "queries" + suffix, "-k", 7, "--metric", metric,
             "-o", "found.bin")
    check(*formats.read_truth_bin(tmp_path / "found.bin"), queries, base, metric)


@pytest.mark.parametrize("metric", METRICS)
def test_floats(nearwise, small, tmp_path, metric):
    base, queries = small
    nearwise("knn", "base.fbin", "queries.fbin", "--metric", metric, "-o", "found.bin")
    ids, distances = formats.read_truth_bin(tmp_path / "found.bin")
    assert ids.shape == (20, 10)
    check(ids, distances, queries, base, metric)


def test_queries_and_base_of_different_types(nearwise, tmp_path):
    random = np.random.default_rng(4)
    base = random.integers(0, 256, (100, 8))
    queries = random.standard_normal((9, 8), dtype=np.float32) * 100
    formats.write_vectors(tmp_path / "base.bvecs", base)
    formats.write_vectors(tmp_path / "queries.npy", queries)
    nearwise("knn", "base.bvecs", "queries.npy", "-k", 3, "-o", "found.bin")
    check(*formats.read_truth_bin(tmp_path / "found.bin"), queries, base, "sqeuclidean")


@pytest.mark.parametrize("suffix", [".ivecs", ".ibin", ".npy", ".bin"])
def test_output_formats(nearwise, small, tmp_path, suffix):
    base, queries = small
    nearwise("knn", "base.fbin", "queries.fbin", "-k", 4, "-o", "found" + suffix)
    path = tmp_path / ("found" + suffix)
    ids = formats.read_truth_bin(path)[0] if suffix == ".bin" else formats.read_array(path)
    np.testing.assert_array_equal(ids, oracle(queries, base, "sqeuclidean")[1][:, :4])


def test_container_tells_where_it_came_from(nearwise, small, tmp_path):
    nearwise("knn", "base.fbin", "queries.fbin", "--metric", "cosine", "-o", "found.nw",
             env={"SOURCE_DATE_EPOCH": "1000000000"})
    file = nearwise("info", "--json", "found.nw").json["files"][0]
    assert (file["content"], file["rows"], file["k"]) == ("neighbors", 20, 10)
    metadata = file["metadata"]
    assert metadata["metric"] == "cosine"
    assert metadata["provenance.command"] == (
        "nearwise knn base.fbin queries.fbin --metric cosine -o found.nw")
    assert metadata["provenance.base"] == f"base.fbin, {8 + 200 * 16 * 4} bytes, 200 x 16 f32"
    assert metadata["provenance.queries"] == f"queries.fbin, {8 + 20 * 16 * 4} bytes, 20 x 16 f32"
    assert metadata["provenance.time"] == "2001-09-09T01:46:40Z"
    assert metadata["provenance.version"].startswith("nearwise ")


def test_containers_repeat_byte_for_byte(nearwise, tmp_path):
    random = np.random.default_rng(5)
    copies = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        random = np.random.default_rng(5)
        formats.write_vectors(folder / "base.fbin", random.standard_normal((500, 32), dtype=np.float32))
        nearwise("knn", "base.fbin", "base.fbin", "-o", "found.nw", cwd=folder,
                 env={"SOURCE_DATE_EPOCH": "1700000000"})
        copies.append((folder / "found.nw").read_bytes())
    assert copies[0] == copies[1]


def test_threads_instruction_set_and_memory_do_not_change_the_answer(nearwise, small, tmp_path):
    outputs = set()
    sets = nearwise("info", "--json").json["instruction_sets"]
    variants = [["--isa", name] for name in sets] + [["--threads", 1], ["--threads", 3], ["--memory-limit", "32MiB"]]
    for variant in variants:
        nearwise("knn", "base.fbin", "queries.fbin", "-o", "found.bin", *variant)
        outputs.add((tmp_path / "found.bin").read_bytes())
    assert len(outputs) == 1


def test_summary_for_people(nearwise, small):
    result = nearwise("knn", "base.fbin", "queries.fbin", "-k", 3)
    assert result.out.count("query ") == 5 and "15 more" in result.out
    assert result.err == ""


def test_summary_as_json(nearwise, small):
    base, queries = small
    summary = nearwise("knn", "base.fbin", "queries.fbin", "-k", 3, "--json").json
    assert (summary["rows"], summary["k"], summary["output"]) == (20, 3, None)
    assert summary["seconds"] > 0 and summary["queries_per_second"] > 0
    ids = [row["ids"] for row in summary["first_rows"]]
    np.testing.assert_array_equal(ids, oracle(queries, base, "sqeuclidean")[1][:5, :3])


def test_stdout_is_empty_when_a_file_is_written(nearwise, small):
    arguments = ["knn", "base.fbin", "queries.fbin", "-o", "found.nw"]
    spoken = nearwise(*arguments)
    assert spoken.out == "" and "found.nw" in spoken.err
    assert nearwise(*arguments, "--quiet").err == ""
    summary = nearwise(*arguments, "--json")
    assert summary.err == "" and summary.json["output"] == "found.nw"


def test_limit_queries(nearwise, small, tmp_path):
    base, queries = small
    nearwise("knn", "base.fbin", "queries.fbin", "--limit-queries", 6, "-o", "found.bin")
    check(*formats.read_truth_bin(tmp_path / "found.bin"), queries[:6], base, "sqeuclidean")


def test_short_rows(nearwise, small):
    arguments = ["knn", "queries.fbin", "base.fbin", "-k", 25]
    refused = nearwise(*arguments, expect=2)
    assert "k must be at most the 20 vectors of 'queries.fbin', got 25" in refused.err
    row = nearwise(*arguments, "--pad", "--json").json["first_rows"][0]
    assert row["ids"][19] >= 0 and row["ids"][20:] == [-1] * 5 and row["distances"][20:] == [None] * 5


def test_nothing_to_search_for(nearwise, small, tmp_path):
    formats.write_vectors(tmp_path / "none.fbin", np.zeros((0, 16), np.float32))
    summary = nearwise("knn", "base.fbin", "none.fbin", "--json").json
    assert summary["rows"] == 0 and summary["first_rows"] == []


@pytest.mark.parametrize("memory, code", [("64MiB", 0), ("0.5GiB", 0), ("100MB", 0), ("67108864", 0), ("64mib", 0),
                                          ("64 MiB", 0), ("1KiB", 71), ("", 2), ("GiB", 2), ("2XB", 2), ("-1", 2),
                                          ("1e9", 2), ("99999999999EiB", 2), ("1.2.3GiB", 2)])
def test_memory_sizes(nearwise, small, memory, code):
    nearwise("knn", "base.fbin", "queries.fbin", f"--memory-limit={memory}", expect=code)


def test_file_names_that_are_not_utf8(nearwise, small, tmp_path):
    name = b"b\xff.fbin"
    (tmp_path / "base.fbin").rename(tmp_path.joinpath(name.decode("utf-8", "surrogateescape")))
    result = nearwise("knn", name.decode("utf-8", "surrogateescape"), "queries.fbin",
                      "-o", "found.nw", "--json")
    assert json.loads(result.out)["rows"] == 20
    nearwise("verify", "found.nw")


def test_filters(nearwise, small, tmp_path):
    base, queries = small
    mask = np.random.default_rng(8).random(len(base)) < 0.4
    np.save(tmp_path / "mask.npy", mask)
    (tmp_path / "ids.txt").write_text("".join(f"{i}\n" for i in np.flatnonzero(mask)))
    excluded = np.array([[3, -1], *[[i, i + 1] for i in range(1, len(queries))]])
    np.save(tmp_path / "excluded.npy", excluded)
    _, order = oracle(queries, base, "sqeuclidean")

    def expected(allowed):
        return np.array([[i for i in row if allowed(query, i)][:5] for query, row in enumerate(order)])

    def found(*options):
        nearwise("knn", "base.fbin", "queries.fbin", "-k", 5, *options, "-o", "found.bin")
        return formats.read_truth_bin(tmp_path / "found.bin")[0]

    np.testing.assert_array_equal(found("--filter", "mask.npy"), expected(lambda query, i: mask[i]))
    np.testing.assert_array_equal(found("--filter", "ids.txt"), expected(lambda query, i: mask[i]))
    np.testing.assert_array_equal(found("--exclude", "ids.txt"), expected(lambda query, i: not mask[i]))
    np.testing.assert_array_equal(found("--exclude", "mask.npy"), expected(lambda query, i: not mask[i]))
    np.testing.assert_array_equal(
        found("--filter", "mask.npy", "--exclude-per-query", "excluded.npy"),
        expected(lambda query, i: mask[i] and i not in excluded[query]),
    )
    nearwise("index", "build", "base.fbin", "--lists", 4, "--codec", "flat", "-o", "index.nw")
    nearwise("index", "search", "index.nw", "queries.fbin", "-k", 5, "--filter", "mask.npy", "--exclude-per-query",
             "excluded.npy", "-o", "found.bin")
    np.testing.assert_array_equal(
        formats.read_truth_bin(tmp_path / "found.bin")[0],
        expected(lambda query, i: mask[i] and i not in excluded[query]),
    )


def test_wrong_filters(nearwise, small, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((2, 3), bool))
    np.save(tmp_path / "short.npy", np.ones((2, 3), np.int32))
    (tmp_path / "negative.txt").write_text("-4\n")
    cut = (tmp_path / "cut.npy")
    np.save(cut, np.ones(50, bool))
    cut.write_bytes(cut.read_bytes()[:-3])
    for options, code in (
        (("--filter", "missing.npy"), 66),
        (("--filter", "cut.npy"), 65),
        (("--exclude", "negative.txt"), 65),
        (("--exclude-per-query", "short.npy"), 2),
    ):
        assert nearwise("knn", "base.fbin", "queries.fbin", *options, expect=code).err
