"""Vectors in Parquet files and in columns of Arrow."""

import numpy as np
import pytest

import nearwise

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
arrow = pytest.importorskip("nearwise.arrow")

VECTORS = np.random.default_rng(1).standard_normal((500, 6)).astype(np.float32)
NUMPY_TYPES = [np.float16, np.float32, np.uint8, np.int8]


def fixed_lists(rows):
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(rows).ravel()), rows.shape[1])


def table_of(rows, first=0):
    numbers = np.arange(first, first + len(rows))
    return pa.table({"id": numbers, "text": [f"t{number}" for number in numbers], "vector": fixed_lists(rows)})


@pytest.fixture
def folder(tmp_path):
    """Three files, one of them in a subfolder, in several row groups."""
    made = tmp_path / "in"
    (made / "b").mkdir(parents=True)
    pq.write_table(table_of(VECTORS[:200]), made / "a.parquet", row_group_size=70)
    pq.write_table(table_of(VECTORS[200:210], 200), made / "b" / "c.parquet", compression="zstd")
    pq.write_table(table_of(VECTORS[210:], 210), made / "d.parquet", row_group_size=100)
    return made


def test_a_folder_becomes_a_file_of_vectors(folder, tmp_path):
    assert arrow.to_vectors(folder, "vector", tmp_path / "x.fbin") == (500, 6)
    assert np.array_equal(nearwise.read_vectors(tmp_path / "x.fbin"), VECTORS)


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_element_types(tmp_path, dtype):
    rows = (VECTORS * 20 + (100 if dtype == np.uint8 else 0)).astype(dtype)
    pq.write_table(table_of(rows), tmp_path / "x.parquet")
    arrow.to_vectors(tmp_path / "x.parquet", "vector", tmp_path / "x.npy")
    found = np.load(tmp_path / "x.npy")
    assert found.dtype == dtype and np.array_equal(found, rows)


def test_doubles_are_rounded_and_plain_lists_accepted(tmp_path):
    rows = np.random.default_rng(2).standard_normal((50, 3))
    pq.write_table(pa.table({"v": pa.array(rows.tolist(), pa.list_(pa.float64()))}), tmp_path / "x.parquet")
    arrow.to_vectors([tmp_path / "x.parquet"], "v", tmp_path / "x.fbin")
    assert np.array_equal(nearwise.read_vectors(tmp_path / "x.fbin"), rows.astype(np.float32))


def test_deduplication_from_parquet_to_parquet(folder, tmp_path):
    rows = np.concatenate([VECTORS[:300], VECTORS[100:300] + np.float32(1e-4)])
    for path, first, end in (("a.parquet", 0, 200), ("b/c.parquet", 200, 210), ("d.parquet", 210, 500)):
        pq.write_table(table_of(rows[first:end], first), folder / path, row_group_size=64)
    arrow.to_vectors(folder, "vector", tmp_path / "x.fbin")
    found = nearwise.dedup(nearwise.read_vectors(tmp_path / "x.fbin"), similarity=0.9999)
    arrow.take_rows(folder, found.kept, tmp_path / "out")
    clean = pq.ParquetDataset(tmp_path / "out").read()
    assert sorted(clean["id"].to_pylist()) == found.kept.tolist() == list(range(300))
    kept = np.zeros(500, bool)
    kept[found.kept] = True
    arrow.add_columns(folder, {"kept": kept, "duplicate_of": found.removed_by}, tmp_path / "marked")
    marked = pq.read_table(tmp_path / "marked" / "d.parquet")
    assert marked.column_names == ["id", "text", "vector", "kept", "duplicate_of"]
    assert np.array_equal(marked["kept"].to_numpy(), kept[210:])
    assert np.array_equal(marked["duplicate_of"].to_numpy(), found.removed_by[210:])
    assert not list(tmp_path.rglob("*.part"))


def test_compression_and_one_file(folder, tmp_path):
    arrow.take_rows(folder / "b" / "c.parquet", [1, 3], tmp_path / "one.parquet")
    assert pq.read_table(tmp_path / "one.parquet")["id"].to_pylist() == [201, 203]
    assert pq.read_metadata(tmp_path / "one.parquet").row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("rows", [[], (), np.empty(0, np.int64), np.empty(0)])
def test_no_rows_are_files_of_none(folder, tmp_path, rows):
    arrow.take_rows(folder / "a.parquet", rows, tmp_path / "one.parquet")
    arrow.take_rows(folder, rows, tmp_path / "out")
    for name in ("one.parquet", "out/a.parquet", "out/b/c.parquet", "out/d.parquet"):
        table = pq.read_table(tmp_path / name)
        assert table.num_rows == 0 and table.schema == pq.read_schema(folder / "a.parquet")


def address_of(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("offset", [0, 7])
def test_columns_are_used_in_place(offset):
    from nearwise._rows import as_rows

    column = fixed_lists(VECTORS)[offset:]
    rows = as_rows(column, "rows")
    assert rows.copied_bytes == 0 and np.array_equal(rows.array, VECTORS[offset:])
    assert address_of(rows.array) == column.values.buffers()[1].address + offset * 6 * 4
    assert np.array_equal(nearwise.knn(column, column, 3).ids, nearwise.knn(VECTORS[offset:], VECTORS[offset:], 3).ids)
    chunked = pa.chunked_array([column[:50], column[50:]])
    assert np.array_equal(nearwise.knn(chunked, column, 3).ids, nearwise.knn(column, column, 3).ids)


def lists_with(change):
    rows = VECTORS[:20].tolist()
    change(rows)
    return pa.array(rows, pa.list_(pa.float32()))


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([[1.0, None], [2.0, 3.0]], pa.list_(pa.float32(), 2)), "row 0 holds a null"),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)), "row 1 holds a null"),
        (lists_with(lambda rows: rows[7].pop()), "row 7 has 5 elements, row 0 has 6"),
        (pa.array([1.0, 2.0]), "a column of lists of numbers, got double"),
        (pa.array([["a"]]), "got list<"),
    ],
)
def test_columns_that_are_refused(column, words, tmp_path):
    if "got double" not in words:  # as one query, a column of numbers is accepted
        with pytest.raises(nearwise.ArgumentError, match=words):
            nearwise.knn(column, column, 1)
    pq.write_table(pa.table({"v": column}), tmp_path / "x.parquet")
    with pytest.raises(nearwise.ArgumentError, match=words):
        arrow.to_vectors(tmp_path / "x.parquet", "v", tmp_path / "x.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_rows_of_null_are_counted_through_all_files(folder, tmp_path):
    column = pa.array([[1.0] * 6] * 3 + [None], pa.list_(pa.float32(), 6))
    pq.write_table(pa.table({"vector": column}), folder / "e.parquet")
    with pytest.raises(nearwise.ArgumentError, match="row 503 holds a null"):
        arrow.to_vectors(folder, "vector", tmp_path / "x.fbin")


def test_words_of_errors(folder, tmp_path):
    for call, words in (
        (lambda: arrow.to_vectors(folder, "vectr", tmp_path / "x.fbin"), "no column 'vectr'; it has id, text, vector"),
        (lambda: arrow.to_vectors(tmp_path, "v", tmp_path / "x.fbin"), None),
        (lambda: arrow.take_rows(folder, [3, 2], tmp_path / "out"), "ascending"),
        (lambda: arrow.take_rows(folder, [500], tmp_path / "out"), "the 500 rows, got 500 to 500"),
        (lambda: arrow.take_rows(folder, [0.5], tmp_path / "out"), "1-D array of integers"),
        (lambda: arrow.take_rows(folder, [1], folder), "is an input"),
        (lambda: arrow.add_columns(folder, {"kept": [True]}, tmp_path / "out"), "each of the 500 rows expected"),
        (lambda: arrow.add_columns(folder, {"id": np.zeros(500)}, tmp_path / "out"), "has a column 'id' already"),
    ):
        with pytest.raises(nearwise.Error, match=words):
            call()
    (tmp_path / "none").mkdir()
    with pytest.raises(nearwise.ArgumentError, match="has no Parquet files"):
        arrow.to_vectors(tmp_path / "none", "v", tmp_path / "x.fbin")


def test_arrays_one_after_the_other(tmp_path):
    nearwise.write_vectors(tmp_path / "x.fbin", iter([VECTORS[:10], VECTORS[10:]]))
    assert np.array_equal(nearwise.read_vectors(tmp_path / "x.fbin"), VECTORS)
    for arrays, words in (
        ([], "at least one array"),
        ([VECTORS, VECTORS[:, :3]], "array 1: expected type and dimension"),
        ([VECTORS, VECTORS.astype(np.float16)], "array 1: expected type and dimension"),
    ):
        with pytest.raises(nearwise.ArgumentError, match=words):
            nearwise.write_vectors(tmp_path / "y.fbin", iter(arrays))
        assert [path.name for path in tmp_path.iterdir()] == ["x.fbin"]
