"""nearwise eval on cases whose recall is known by hand."""
import formats
import numpy as np
import pytest


def write_ids(path, rows):
    formats.write_array(path, np.array(rows, np.int32))


def recalls(nearwise, *arguments):
    """{k: (k-recall@k, 1-recall@k)}"""
    report = nearwise("eval", "--json", *arguments).json
    return {entry["k"]: (entry["k_recall_at_k"]["value"], entry["one_recall_at_k"]["value"]) for entry in report["recall"]}


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    for k, values in expected.items():
        assert found[k] == pytest.approx(values), k


# result rows, truth rows, {k: (k-recall@k, 1-recall@k)}; ids only
BY_ID = {
    "all found": ([[1, 2, 3]], [[1, 2, 3]], {1: (1, 1), 3: (1, 1)}),
    "order inside k does not matter": ([[3, 1, 2]], [[1, 2, 3]], {1: (0, 0), 2: (0.5, 1), 3: (1, 1)}),
    "none found": ([[7, 8, 9]], [[1, 2, 3]], {1: (0, 0), 3: (0, 0)}),
    "averaged over queries": ([[1, 2], [8, 3], [8, 9], [5, 6]], [[1, 2], [3, 4], [5, 6], [5, 6]],
                              {1: (0.5, 0.5), 2: (0.625, 0.75)}),
    "an id counts once": ([[1, 1, 1]], [[1, 2, 3]], {3: (1 / 3, 1)}),
    "a filled place finds nothing": ([[1, -1, -1]], [[1, 2, 3]], {3: (1 / 3, 1)}),
    "filled places of the truth are not expected": ([[2, 1, 9]], [[1, 2, -1]], {3: (1, 1)}),
    "a truth without neighbours is left out": ([[1, 2], [3, 4]], [[1, 2], [-1, -1]], {2: (1, 1)}),
    "the longer side is cut": ([[1, 2, 3, 4]], [[1, 3]], {1: (1, 1), 2: (0.5, 1)}),
}


@pytest.mark.parametrize("case", BY_ID)
def test_by_id(nearwise, tmp_path, case):
    result, truth, expected = BY_ID[case]
    write_ids(tmp_path / "result.ivecs", result)
    write_ids(tmp_path / "truth.ibin", truth)
    found = recalls(nearwise, "result.ivecs", "truth.ibin", "-k", ",".join(map(str, expected)))
    assert_close(found, expected)


# result ids and distances, truth ids and distances, expected
BY_DISTANCE = {
    "a tie with the last": ([[1, 9]], [[0.5, 2]], [[1, 2]], [[0.5, 2]], {2: (1, 1)}),
    "farther than the last": ([[1, 9]], [[0.5, 3]], [[1, 2]], [[0.5, 2]], {2: (0.5, 1)}),
    "a tie with the first": ([[9, 1]], [[0.5, 0.5]], [[1, 2]], [[0.5, 2]], {1: (1, 1)}),
    "a tie is no substitute for a nearer one": ([[8, 9]], [[2, 2]], [[1, 2]], [[0.5, 2]], {2: (0.5, 0)}),
    "several ties": ([[7, 8, 9]], [[1, 1, 1]], [[1, 2, 3]], [[1, 1, 1]], {1: (1, 1), 3: (1, 1)}),
}


@pytest.mark.parametrize("case", BY_DISTANCE)
def test_by_distance(nearwise, tmp_path, case):
    result_ids, result_distances, truth_ids, truth_distances, expected = BY_DISTANCE[case]
    formats.write_truth_bin(tmp_path / "result.bin", np.array(result_ids), np.array(result_distances))
    formats.write_truth_bin(tmp_path / "truth.bin", np.array(truth_ids), np.array(truth_distances))
    found = recalls(nearwise, "result.bin", "truth.bin", "-k", ",".join(map(str, expected)))
    assert_close(found, expected)
    # Without the distances of one side, ids decide.
    write_ids(tmp_path / "result.ivecs", result_ids)
    report = nearwise("eval", "--json", "result.ivecs", "truth.bin").json
    assert report["ties"] == "id"


def test_default_ks_are_those_available(nearwise, tmp_path):
    for k, expected in [(1, [1]), (9, [1]), (10, [1, 10]), (120, [1, 10, 100])]:
        write_ids(tmp_path / "ids.ivecs", np.arange(3 * k).reshape(3, k))
        assert list(recalls(nearwise, "ids.ivecs", "ids.ivecs")) == expected


def test_exact_search_has_recall_one(nearwise, small):
    nearwise("knn", "base.fbin", "queries.fbin", "-o", "truth.nw")
    nearwise("knn", "base.fbin", "queries.fbin", "-k", 5, "-o", "found.ivecs")
    assert recalls(nearwise, "found.ivecs", "truth.nw", "-k", "1,5") == {1: (1, 1), 5: (1, 1)}


def test_table_for_people(nearwise, tmp_path):
    write_ids(tmp_path / "ids.ivecs", [[1, 2]])
    lines = nearwise("eval", "ids.ivecs", "ids.ivecs", "-k", 1, "-k", 2).out.splitlines()
    assert lines[0] == "1 queries, ties count by id"
    assert [line.split()[:2] for line in lines[2:]] == [["1", "1.000000"], ["2", "1.000000"]]


def test_recall_has_an_interval_for_the_number_of_queries(nearwise, tmp_path):
    lengths = []
    for queries in (10, 1000):
        write_ids(tmp_path / "result.ivecs", [[1, 2], [3, 9]] * (queries // 2))
        write_ids(tmp_path / "truth.ivecs", [[1, 2], [3, 4]] * (queries // 2))
        (entry,) = nearwise("eval", "result.ivecs", "truth.ivecs", "-k", 2, "--json").json["recall"]
        recall = entry["k_recall_at_k"]
        assert recall["value"] == 0.75
        assert recall["rows"] == queries
        assert recall["low"] < 0.75 < recall["high"]
        lengths.append(recall["high"] - recall["low"])
    assert lengths[1] < lengths[0] / 5


def test_limit_queries(nearwise, tmp_path):
    write_ids(tmp_path / "result.ivecs", [[1], [2]])
    write_ids(tmp_path / "truth.ivecs", [[1], [9], [3]])
    arguments = ["result.ivecs", "truth.ivecs"]
    refused = nearwise("eval", *arguments, expect=2)
    assert "--limit-queries" in refused.err
    assert recalls(nearwise, *arguments, "--limit-queries", 1) == {1: (1, 1)}
    nearwise("eval", *arguments, "--limit-queries", 3, expect=2)


def test_metrics_must_agree(nearwise, small):
    for metric in ("cosine", "euclidean"):
        nearwise("knn", "base.fbin", "queries.fbin", "--metric", metric, "-o", metric + ".nw")
    refused = nearwise("eval", "cosine.nw", "euclidean.nw", expect=2)
    assert "cosine" in refused.err and "euclidean" in refused.err


def test_k_beyond_the_files(nearwise, tmp_path):
    write_ids(tmp_path / "ids.ivecs", [[1, 2]])
    nearwise("eval", "ids.ivecs", "ids.ivecs", "-k", 3, expect=2)
