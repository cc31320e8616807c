"""nearwise index against NumPy, and the files it writes."""
import formats
import numpy as np
import pytest
from test_knn import METRICS, check, oracle

ROWS, DIM = 1200, 16


@pytest.fixture
def files(tmp_path):
    """1200 rows in clusters and 30 queries, as rows.fbin and queries.fbin."""
    random = np.random.default_rng(11)
    centres = 3 * random.standard_normal((12, DIM))
    rows = (centres[random.integers(0, 12, ROWS)] + random.standard_normal((ROWS, DIM))).astype(np.float32)
    queries = rows[:30] + random.standard_normal((30, DIM)).astype(np.float32) / 10
    formats.write_vectors(tmp_path / "rows.fbin", rows)
    formats.write_vectors(tmp_path / "queries.fbin", queries)
    return rows, queries


def content(nearwise, tmp_path, name):
    """All of an index but for the run that wrote it."""
    file = nearwise("info", name, "--json").json["files"][0]
    data = (tmp_path / name).read_bytes()
    said = {key: text for key, text in file["metadata"].items() if key not in ("provenance.command", "provenance.time")}
    sections = [data[section["offset"] : section["offset"] + section["bytes"]] for section in file["sections"]
                if section["name"] != "metadata"]
    return tuple(sections) + tuple(sorted(said.items()))


def found_by(nearwise, tmp_path, index, *options, k=5):
    nearwise("index", "search", index, "queries.fbin", "-k", k, "-o", "found.bin", *options)
    return formats.read_truth_bin(tmp_path / "found.bin")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("codec", ["flat", "pq"])
def test_every_list_is_the_truth(nearwise, files, tmp_path, codec, metric):
    """All lists probed, and all candidates re-ranked: what knn finds."""
    rows, queries = files
    nearwise("index", "build", "rows.fbin", "--codec", codec, "--lists", 8, "--metric", metric, "-o", "index.nw")
    look = ["--rerank", "rows.fbin", "--candidates", ROWS] if codec == "pq" else []
    check(*found_by(nearwise, tmp_path, "index.nw", "--probes", 8, *look), queries, rows, metric)


def test_lists_are_those_of_the_nearest_centroids(nearwise, files, tmp_path):
    rows, queries = files
    nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 8, "-o", "index.nw")
    file = nearwise("info", "index.nw", "--json").json["files"][0]
    section = next(section for section in file["sections"] if section["name"] == "centroids")
    data = (tmp_path / "index.nw").read_bytes()
    centroids = np.frombuffer(data, "<f4", 8 * DIM, offset=section["offset"]).reshape(8, DIM)
    lists = oracle(rows, centroids, "sqeuclidean")[1][:, 0]
    probed = oracle(queries, centroids, "sqeuclidean")[1][:, :2]
    ids, distances = found_by(nearwise, tmp_path, "index.nw", "--probes", 2)
    true_distances, order = oracle(queries, rows, "sqeuclidean")
    for query in range(30):
        expected = [row for row in order[query] if lists[row] in probed[query]][:5]
        assert ids[query].tolist() == expected
        np.testing.assert_allclose(distances[query], true_distances[query, expected], rtol=3e-7)


@pytest.mark.parametrize("suffix", [".f16bin", ".bf16bin", ".u8bin", ".i8bin", ".fvecs", ".bvecs", ".npy"])
@pytest.mark.parametrize("codec", ["flat", "pq"])
def test_element_types(nearwise, tmp_path, suffix, codec):
    rows = np.random.default_rng(3).integers(0, 128, (301, 19)).astype(np.float32)
    formats.write_vectors(tmp_path / ("rows" + suffix), rows)
    formats.write_vectors(tmp_path / "queries.fbin", rows[:9])
    nearwise("index", "build", "rows" + suffix, "--codec", codec, "--lists", 4, "-o", "index.nw")
    ids, distances = found_by(nearwise, tmp_path, "index.nw", "--probes", 4, "--rerank", "rows" + suffix, "--candidates", 301)
    check(ids, distances, rows[:9], rows, "sqeuclidean")


def test_the_same_command_writes_the_same_bytes(nearwise, files, tmp_path):
    written = set()
    for variant in ([], ["--threads", 1], ["--threads", 3], ["--memory-limit", "64MiB"], ["--seed", 0]):
        nearwise("index", "build", "rows.fbin", "--lists", 6, "--training-rows", 240, "-o", "index.nw", *variant)
        written.add(content(nearwise, tmp_path, "index.nw"))
    assert len(written) == 1
    nearwise("index", "build", "rows.fbin", "--lists", 6, "--training-rows", 240, "--seed", 5, "-o", "index.nw")
    assert content(nearwise, tmp_path, "index.nw") not in written


def test_it_says_where_it_comes_from(nearwise, files, tmp_path):
    written = set()
    for _ in range(2):
        nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 6, "--seed", 4, "-o", "index.nw",
                 env={"SOURCE_DATE_EPOCH": "86400"})
        written.add((tmp_path / "index.nw").read_bytes())
    assert len(written) == 1
    metadata = nearwise("info", "index.nw", "--json").json["files"][0]["metadata"]
    assert metadata["provenance.command"] == "nearwise index build rows.fbin --codec flat --lists 6 --seed 4 -o index.nw"
    assert metadata["provenance.base"] == f"rows.fbin, {8 + ROWS * DIM * 4} bytes, {ROWS} x {DIM} f32"
    assert metadata["provenance.time"].startswith("1970-01-02") and metadata["provenance.seed"] == "4"
    (tmp_path / "gone.txt").write_text("3\n")
    nearwise("index", "remove", "index.nw", "gone.txt", "-o", "index.nw")
    changed = nearwise("info", "index.nw", "--json").json["files"][0]["metadata"]
    assert changed["provenance.command"] == "nearwise index remove index.nw gone.txt -o index.nw"
    for key in ("provenance.base", "provenance.seed", "provenance.training"):
        assert changed[key] == metadata[key]


def recall_of(nearwise, tmp_path, rows, probes, *options):
    """10-recall@10 of all rows, none being its own neighbour."""
    nearwise("index", "search", "index.nw", "rows.fbin", "-k", 11, "--probes", probes, "-o", "all.bin", *options)
    found = formats.read_truth_bin(tmp_path / "all.bin")[0]
    truth = oracle(rows, rows, "sqeuclidean")[1]
    return np.mean([len({id for id in line if id != row} & {id for id in true[:11] if id != row}) / 10
                    for row, (line, true) in enumerate(zip(found, truth))])


def test_what_is_not_given_is_measured(nearwise, files, tmp_path):
    rows, _ = files
    spoken = nearwise("index", "build", "rows.fbin", "--seed", 2, "-o", "index.nw").err
    file = nearwise("info", "index.nw", "--json").json["files"][0]["metadata"]
    probes, candidates = int(file["probes"]), int(file["candidates"])
    assert 2 <= probes < 30 and candidates >= 25 and file["calibration.recall.rows"] == "500"
    recall = float(file["calibration.recall.value"])
    assert recall >= 0.9 and file["calibration.rows"] == "1200" and file["calibration.target_recall"] == "0.9"
    assert f"with {probes} of 30 lists probed and {candidates} candidates re-ranked" in spoken
    assert f"recall@10 {recall:.3f} (0." in spoken and "500 sample queries" in spoken and "warning" not in spoken
    assert "calibration.recall.value" in nearwise("info", "index.nw").out
    searched = nearwise("index", "search", "index.nw", "queries.fbin", "--json").json
    assert searched["probes"] == probes
    # All rows searched for: what is measured is what is found, and one list less is not enough.
    measured = nearwise("index", "calibrate", "index.nw", "rows.fbin", "--queries", ROWS, "--target-recall", 0.99, "-o", "index.nw", "--json").json
    assert measured["calibration"]["reached"] and measured["calibration"]["recall"]["rows"] == ROWS
    look = ["--candidates", measured["candidates"]]
    assert recall_of(nearwise, tmp_path, rows, measured["probes"], *look) == pytest.approx(measured["calibration"]["recall"]["value"])
    assert recall_of(nearwise, tmp_path, rows, measured["probes"] - 1, *look) < 0.99
    # Without re-ranking, codes of 8 bytes do not reach that recall: a warning.
    blurred = nearwise("index", "calibrate", "index.nw", "rows.fbin", "--queries", ROWS, "--no-rerank", "--target-recall", 0.999, "-o", "codes.nw")
    assert "warning: target recall 0.999 cannot be reached: recall@10 0." in blurred.err
    assert nearwise("info", "codes.nw", "--json").json["files"][0]["metadata"].get("calibration.candidates") is None
    given = nearwise("index", "build", "rows.fbin", "--probes", 7, "-o", "index.nw", "--json").json
    assert given["probes"] == 7 and given["calibration"] is None


def test_a_search_beyond_what_is_calibrated_warns(nearwise, files):
    nearwise("index", "build", "rows.fbin", "-o", "index.nw")
    for k in (1, 10, 100):
        assert "warning" not in nearwise("index", "search", "index.nw", "queries.fbin", "-k", k).err
    spoken = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 200).err
    assert "warning: the recall may be below the target 0.9: it is 0.9" in spoken and spoken.count("warning") == 1
    assert "warning" not in nearwise("index", "search", "index.nw", "queries.fbin", "-k", 200, "--probes", 9).err
    wide = nearwise("index", "calibrate", "index.nw", "--largest-k", 200, "-o", "wide.nw", "--json").json["calibration"]
    assert [one["k"] for one in wide["other_k"]] == [1, 200] and wide["other_k"][1]["recall"]["value"] >= 0.9
    assert "warning" not in nearwise("index", "search", "wide.nw", "queries.fbin", "-k", 200).err


def test_vectors_in_the_file_they_come_from(nearwise, files, tmp_path):
    nearwise("index", "build", "rows.fbin", "--lists", 9, "-o", "kept.nw")
    nearwise("index", "build", "rows.fbin", "--lists", 9, "--vectors", "file", "-o", "linked.nw")
    assert (tmp_path / "linked.nw").stat().st_size < (tmp_path / "kept.nw").stat().st_size - ROWS * DIM * 3
    for one, other in zip(found_by(nearwise, tmp_path, "kept.nw"), found_by(nearwise, tmp_path, "linked.nw")):
        np.testing.assert_array_equal(one, other)
    assert nearwise("info", "linked.nw", "--json").json["files"][0]["metadata"]["vectors.path"] == "rows.fbin"
    (tmp_path / "rows.fbin").rename(tmp_path / "other.fbin")
    assert "rows.fbin', which does not exist" in nearwise("index", "search", "linked.nw", "queries.fbin", expect=66).err


def test_measuring_after_adding_is_building(nearwise, files):
    built = nearwise("index", "build", "rows.fbin", "--lists", 9, "-o", "whole.nw", "--json").json
    nearwise("index", "build", "rows.fbin", "--lists", 9, "--train-only", "-o", "index.nw")
    added = nearwise("index", "add", "index.nw", "rows.fbin", "-o", "index.nw", "--json").json
    assert added["calibration"] is None
    measured = nearwise("index", "calibrate", "index.nw", "rows.fbin", "-o", "index.nw", "--json").json
    for key in ("probes", "candidates", "calibration"):
        assert measured[key] == built[key]


def test_options_reach_the_index(nearwise, files):
    built = nearwise("index", "build", "rows.fbin", "--lists", 9, "--code-bytes", 6, "--bits", 4, "--probes", 4, "--metric", "cosine",
                     "-o", "index.nw", "--json").json
    assert {key: built[key] for key in ("rows", "dim", "lists", "codec", "code_bytes", "metric", "probes", "output")} == {
        "rows": ROWS, "dim": DIM, "lists": 9, "codec": "pq", "code_bytes": 6, "metric": "cosine", "probes": 4,
        "output": "index.nw"}
    file = nearwise("info", "index.nw", "--json").json["files"][0]
    assert (file["content"], file["rows"], file["dim"], file["lists"], file["code_bytes"]) == ("ivf", ROWS, DIM, 9, 6)
    assert file["metadata"]["bits"] == "4" and file["metadata"]["probes"] == "4"
    text = nearwise("info", "index.nw").out
    assert text.count("  dim ") == 1 and "lists" in text and "section codewords" in text
    searched = nearwise("index", "search", "index.nw", "queries.fbin", "--json").json
    assert (searched["probes"], searched["lists"], searched["k"], searched["metric"]) == (4, 9, 10, "cosine")


def test_reranking_finds_more(nearwise, files, tmp_path):
    rows, queries = files
    truth = oracle(queries, rows, "sqeuclidean")[1][:, :5]
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--code-bytes", 2, "-o", "index.nw")

    def recall(*options):
        ids, _ = found_by(nearwise, tmp_path, "index.nw", "--probes", 8, *options)
        return np.mean([len(set(a) & set(b)) / 5 for a, b in zip(ids, truth)])

    assert recall("--codes-only") < 0.9 < recall() == recall("--rerank", "rows.fbin")


@pytest.mark.parametrize("vectors, bytes_kept", [("keep", 4 * DIM), ("f16", 2 * DIM), ("u8", DIM), ("none", 0)])
def test_vectors_in_the_index(nearwise, files, tmp_path, vectors, bytes_kept):
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--code-bytes", 2, "--vectors", vectors, "-o", "index.nw")
    sections = {section["name"]: section for section in nearwise("info", "index.nw", "--json").json["files"][0]["sections"]}
    assert sections.get("vectors", {"bytes": 0})["bytes"] == bytes_kept * ROWS
    nearwise("verify", "index.nw")
    if vectors == "none":
        assert "pass the file" in nearwise("index", "calibrate", "index.nw", "-o", "x.nw", expect=2).err
    else:
        nearwise("index", "calibrate", "index.nw", "-o", "index.nw")


def test_ids_that_are_there_already(nearwise, files):
    nearwise("index", "build", "rows.fbin", "--lists", 8, "-o", "index.nw")
    again = ["index", "add", "index.nw", "queries.fbin", "--first-id", ROWS - 10]
    assert f"id {ROWS - 10} is in the index already" in nearwise(*again, "-o", "x.nw", expect=2).err
    assert nearwise(*again, "--on-duplicate", "replace", "-o", "x.nw", "--json").json["added"] == 30
    kept = nearwise(*again, "--on-duplicate", "keep", "-o", "x.nw", "--json").json
    assert kept["added"] == 20 and kept["rows"] == ROWS + 20


def test_add(nearwise, files, tmp_path):
    rows, _ = files
    formats.write_vectors(tmp_path / "first.fbin", rows[:700])
    formats.write_vectors(tmp_path / "second.fbin", rows[700:])
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--probes", 3, "-o", "whole.nw")
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--probes", 3, "--train-only", "-o", "index.nw")
    assert nearwise("info", "index.nw", "--json").json["files"][0]["rows"] == 0
    assert "700 added" in nearwise("index", "add", "index.nw", "first.fbin", "-o", "index.nw").err
    added = nearwise("index", "add", "index.nw", "second.fbin", "-o", "index.nw", "--json").json
    assert (added["added"], added["rows"], added["output"]) == (500, ROWS, "index.nw")
    assert content(nearwise, tmp_path, "index.nw") == content(nearwise, tmp_path, "whole.nw")


@pytest.mark.parametrize("suffix", [".npy", ".ivecs", ".ibin", ".txt"])
def test_ids(nearwise, files, tmp_path, suffix):
    rows, queries = files
    ids = np.random.default_rng(1).permutation(ROWS).astype(np.int32) * 2

    def write(name, values):
        path = tmp_path / (name + suffix)
        if suffix == ".txt":
            path.write_text("".join(f"{value}\n" for value in values))
        else:
            formats.write_array(path, values[:, None])

    write("ids", ids)
    nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 8, "--train-only", "-o", "index.nw")
    nearwise("index", "add", "index.nw", "rows.fbin", "--ids", "ids" + suffix, "-o", "index.nw")
    order = oracle(queries, rows, "sqeuclidean")[1]
    np.testing.assert_array_equal(found_by(nearwise, tmp_path, "index.nw", "--probes", 8)[0], ids[order[:, :5]])
    write("gone", np.append(ids[:100], np.int32(9999)))
    removed = nearwise("index", "remove", "index.nw", "gone" + suffix, "-o", "less.nw", "--json").json
    assert (removed["removed"], removed["rows"]) == (100, ROWS - 100)
    kept = [[row for row in line if row >= 100][:5] for line in order]
    np.testing.assert_array_equal(found_by(nearwise, tmp_path, "less.nw", "--probes", 8)[0], ids[np.array(kept)])
    assert nearwise("info", "index.nw", "--json").json["files"][0]["rows"] == ROWS  # as it was


def test_parts_are_merged(nearwise, files, tmp_path):
    rows, _ = files
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--probes", 3, "-o", "whole.nw")
    nearwise("index", "build", "rows.fbin", "--lists", 8, "--probes", 3, "--train-only", "-o", "trained.nw")
    for number, first in enumerate((0, 500, 900)):
        formats.write_vectors(tmp_path / "part.fbin", rows[first : (500, 900, ROWS)[number]])
        nearwise("index", "add", "trained.nw", "part.fbin", "--first-id", first, "-o", f"part{number}.nw")
    merged = nearwise("index", "merge", "part0.nw", "part1.nw", "part2.nw", "-o", "merged.nw", "--json").json
    assert (merged["merged"], merged["rows"]) == (700, ROWS)
    assert content(nearwise, tmp_path, "merged.nw") == content(nearwise, tmp_path, "whole.nw")
    metadata = nearwise("info", "merged.nw", "--json").json["files"][0]["metadata"]
    assert "index merge part0.nw part1.nw part2.nw" in metadata["provenance.command"]
    # Into the first itself.
    nearwise("index", "merge", "part0.nw", "part1.nw", "part2.nw", "-o", "part0.nw", "--memory-limit", "1MiB")
    assert content(nearwise, tmp_path, "part0.nw") == content(nearwise, tmp_path, "whole.nw")


@pytest.mark.parametrize("suffix", [".nw", ".bin", ".ivecs", ".ibin", ".npy"])
def test_output_formats(nearwise, files, tmp_path, suffix):
    rows, queries = files
    nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 4, "-o", "index.nw")
    name = "found" + suffix
    spoken = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 4, "--probes", 4, "-o", name)
    assert spoken.out == "" and name in spoken.err
    if suffix == ".nw":
        metadata = nearwise("info", name, "--json").json["files"][0]["metadata"]
        assert metadata["provenance.command"].startswith("nearwise index search index.nw queries.fbin -k 4")
        assert metadata["provenance.index"].startswith("index.nw, ") and metadata["metric"] == "sqeuclidean"
        nearwise("convert", name, "-o", "found.bin")
        name = "found.bin"
    path = tmp_path / name
    ids = formats.read_truth_bin(path)[0] if name.endswith(".bin") else formats.read_array(path)
    np.testing.assert_array_equal(ids, oracle(queries, rows, "sqeuclidean")[1][:, :4])


def test_summaries(nearwise, files):
    rows, queries = files
    spoken = nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 4, "-o", "index.nw")
    assert spoken.out == "" and "wrote 1200 vectors in 4 lists to index.nw" in spoken.err
    assert nearwise("index", "build", "rows.fbin", "--lists", 4, "-o", "other.nw", "--quiet").err == ""
    text = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 3, "--probes", 4).out
    assert text.count("query ") == 5 and "25 more" in text and "4 of 4 lists" in text
    summary = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 3, "--probes", 4, "--json").json
    np.testing.assert_array_equal([row["ids"] for row in summary["first_rows"]],
                                  oracle(queries, rows, "sqeuclidean")[1][:5, :3])
    limited = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 3, "--limit-queries", 7, "--json").json
    assert limited["rows"] == 7 and limited["output"] is None


def test_more_queries_than_one_batch(nearwise, files, tmp_path):
    rows, _ = files
    formats.write_vectors(tmp_path / "queries.fbin", np.tile(rows, (28, 1)))  # 33 600
    nearwise("index", "build", "rows.fbin", "--codec", "flat", "--lists", 8, "-o", "index.nw")
    ids, _ = found_by(nearwise, tmp_path, "index.nw", "--probes", 8, "--memory-limit", "32MiB", k=1)
    np.testing.assert_array_equal(ids[:, 0], np.tile(np.arange(ROWS), 28))


def test_an_index_without_rows_and_more_neighbours_than_rows(nearwise, files):
    nearwise("index", "build", "rows.fbin", "--lists", 4, "--train-only", "-o", "index.nw")
    row = nearwise("index", "search", "index.nw", "queries.fbin", "-k", 3, "--json").json["first_rows"][0]
    assert row == {"ids": [-1, -1, -1], "distances": [None, None, None]}


def test_verify(nearwise, files, tmp_path):
    for codec in ("pq", "flat"):
        nearwise("index", "build", "rows.fbin", "--codec", codec, "--lists", 4, "-o", "index.nw")
        assert nearwise("verify", "index.nw").out.startswith("index.nw: ok (container of ivf")
        data = (tmp_path / "index.nw").read_bytes()
        for offset in np.linspace(0, len(data) - 1, 12, dtype=int):
            damaged = bytearray(data)
            damaged[offset] ^= 0x10
            (tmp_path / "index.nw").write_bytes(damaged)
            assert "damaged" in nearwise("verify", "index.nw", expect=65).out
            nearwise("index", "search", "index.nw", "queries.fbin", expect=65)


def test_verify_finds_what_checksums_cannot_tell(nearwise, files, tmp_path):
    nearwise("index", "build", "rows.fbin", "--lists", 4, "--probes", 2, "-o", "index.nw")
    data = bytearray((tmp_path / "index.nw").read_bytes())
    whole = bytes(data)
    try:
        formats.seal(data)
    except OSError:
        pytest.skip("needs libxxhash")
    assert data == whole
    place = data.index(b'"probes":2')
    data[place : place + 10] = b'"probes":9'
    formats.seal(data)
    (tmp_path / "index.nw").write_bytes(data)
    assert "probes of 1 to 4 expected, 9 found" in nearwise("verify", "index.nw", expect=65).out


def test_additive_codes(nearwise, tmp_path):
    base = np.random.default_rng(8).standard_normal((700, 10), dtype=np.float32)
    formats.write_vectors(tmp_path / "base.fbin", base)
    built = nearwise("index", "build", "base.fbin", "--codec", "lsq", "--lists", 6, "--code-bytes", 3, "-o", "index.nw", "--json").json
    assert (built["codec"], built["code_bytes"], built["rows"]) == ("lsq", 3, 700)
    nearwise("index", "search", "index.nw", "base.fbin", "-k", 1, "--probes", 6, "--rerank", "base.fbin", "--candidates", 100,
             "-o", "found.ivecs")
    assert (formats.read_array(tmp_path / "found.ivecs")[:, 0] == np.arange(700)).mean() > 0.99
    assert "ok" in nearwise("verify", "index.nw").out
    for options, words in [(["--bits", 4], "is for --codec pq"), (["--code-bytes", 33], "must be 1 to 32")]:
        assert words in nearwise("index", "build", "base.fbin", "--codec", "lsq", *options, "-o", "other.nw", expect=2).err
