"""nearwise knn --exclude-self: every row's nearest other rows."""
import formats
import numpy as np
import pytest

from test_knn import METRICS, oracle


def check(ids, distances, base, metric):
    true_distances, order = oracle(base, base, metric)
    k = ids.shape[1]
    expected = np.stack([row[row != number][:k] for number, row in enumerate(order)])
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_allclose(distances, np.take_along_axis(true_distances, expected, 1), rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("suffix", [".fbin", ".f16bin", ".bf16bin", ".u8bin", ".i8bin"])
def test_every_metric_and_element_type(nearwise, tmp_path, metric, suffix):
    # Whole numbers that every element type holds; 700 rows are several blocks.
    base = np.random.default_rng(3).integers(1, 128, (700, 19)).astype(np.float32)
    formats.write_vectors(tmp_path / ("base" + suffix), base)
    nearwise("knn", "base" + suffix, "--exclude-self", "-k", 7, "--metric", metric, "-o", "graph.bin")
    check(*formats.read_truth_bin(tmp_path / "graph.bin"), base, metric)


def test_the_base_may_be_named_as_the_queries(nearwise, small, tmp_path):
    (tmp_path / "link.fbin").symlink_to("base.fbin")
    outputs = set()
    for queries in ([], ["base.fbin"], ["./base.fbin"], ["link.fbin"]):
        nearwise("knn", "base.fbin", "--exclude-self", *queries, "-o", "graph.bin")
        outputs.add((tmp_path / "graph.bin").read_bytes())
    assert len(outputs) == 1
    check(*formats.read_truth_bin(tmp_path / "graph.bin"), small[0], "sqeuclidean")


def test_copies_are_neighbours(nearwise, tmp_path):
    formats.write_vectors(tmp_path / "base.fbin", np.ones((4, 3), np.float32))
    rows = nearwise("knn", "base.fbin", "--exclude-self", "-k", 2, "--json").json["first_rows"]
    assert [row["ids"] for row in rows] == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert [row["distances"] for row in rows] == [[0, 0]] * 4


def test_container_tells_where_it_came_from(nearwise, small):
    nearwise("knn", "base.fbin", "--exclude-self", "-o", "graph.nw")
    metadata = nearwise("info", "--json", "graph.nw").json["files"][0]["metadata"]
    assert metadata["provenance.command"] == "nearwise knn base.fbin --exclude-self -o graph.nw"
    assert metadata["provenance.queries"] == metadata["provenance.base"]
    assert metadata["provenance.base"] == f"base.fbin, {8 + 200 * 16 * 4} bytes, 200 x 16 f32"


def test_summaries(nearwise, small):
    arguments = ["knn", "base.fbin", "--exclude-self", "-k", 3]
    assert "3 nearest of 199 other vectors by sqeuclidean, 200 queries" in nearwise(*arguments).out
    summary = nearwise(*arguments, "--json").json
    assert (summary["rows"], summary["k"], summary["exclude_self"]) == (200, 3, True)
    plain = nearwise("knn", "base.fbin", "base.fbin", "-k", 3, "--json").json
    assert plain["exclude_self"] is False and plain["first_rows"][4]["ids"][0] == 4


def test_short_rows(nearwise, small):
    arguments = ["knn", "queries.fbin", "--exclude-self", "-k", 21]
    assert "k must be at most the 19 other vectors of 'queries.fbin', got 21" in nearwise(*arguments, expect=2).err
    row = nearwise(*arguments, "--pad", "--json").json["first_rows"][0]
    assert row["ids"][18] > 0 and row["ids"][19:] == [-1, -1] and row["distances"][19:] == [None, None]


def test_threads_instruction_set_and_memory_do_not_change_the_answer(nearwise, small, tmp_path):
    outputs = set()
    sets = nearwise("info", "--json").json["instruction_sets"]
    for variant in [["--isa", name] for name in sets] + [["--threads", 1], ["--threads", 3], ["--memory-limit", "4MiB"]]:
        nearwise("knn", "base.fbin", "--exclude-self", "-o", "graph.bin", *variant)
        outputs.add((tmp_path / "graph.bin").read_bytes())
    assert len(outputs) == 1


def test_an_output_does_not_replace_the_base(nearwise, tmp_path):
    formats.write_vectors(tmp_path / "base.npy", np.ones((4, 3), np.float32))
    before = (tmp_path / "base.npy").read_bytes()
    assert "replace" in nearwise("knn", "base.npy", "--exclude-self", "-k", 1, "-o", "base.npy", expect=2).err
    assert (tmp_path / "base.npy").read_bytes() == before
