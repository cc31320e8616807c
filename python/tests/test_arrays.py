"""What arrays may look like, and that those that can be used in place are."""

import tracemalloc

import ml_dtypes
import nearwise
import numpy as np
import oracle
import pytest
from checks import refuses
from nearwise import _rows
from nearwise._rows import as_rows, contiguous, copied
from tensor import FLOAT, INT, ROCM, UINT, Tensor, bfloat16_tensor


def address(array):
    return array.__array_interface__["data"][0]


def unaligned(array):
    memory = bytearray(array.nbytes + 1)
    view = np.frombuffer(memory, dtype=array.dtype, count=array.size, offset=1).reshape(array.shape)
    view[:] = array
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def field_of_records(array):
    """Rows with other data between them, each still aligned."""
    records = np.zeros(len(array), [("vector", array.dtype, array.shape[1:]), ("id", np.int32)])
    records["vector"] = array
    return records["vector"]


class Special(np.ndarray):
    """A subclass whose arithmetic is none of our business."""

    def __getitem__(self, _):
        raise NotImplementedError


IN_PLACE = {
    "contiguous": np.copy,
    "every third row": lambda a: np.repeat(a, 3, axis=0)[::3],
    "first columns": lambda a: np.hstack([a, a])[:, : a.shape[1]],
    "middle columns": lambda a: np.hstack([a[:, :3], a, a])[:, 3 : 3 + a.shape[1]],
    "read-only": read_only,
    "field of records": field_of_records,
    "array of a class of its own": lambda a: a.copy().view(Special),
    "masked array without masked elements": np.ma.masked_array,
}

COPIED = {
    "Fortran order": np.asfortranarray,
    "step within rows": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "rows backwards": lambda a: a[::-1].copy()[::-1],
    "columns backwards": lambda a: a[:, ::-1].copy()[:, ::-1],
    "both backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "unaligned": unaligned,
    "list": lambda a: a.tolist(),
    "float64": lambda a: a.astype(np.float64),
}


@pytest.mark.parametrize("layout", IN_PLACE)
def test_used_in_place(layout, queries, base):
    array = IN_PLACE[layout](queries)
    rows = as_rows(array, "queries")
    assert rows.copied_bytes == 0 and address(rows.array) == address(np.asarray(array))
    oracle.check(nearwise.knn(array, base, 5), queries, base, 5)
    oracle.check(nearwise.knn(base, array, 5), base, queries, 5)


@pytest.mark.parametrize("layout", COPIED)
def test_converted_by_one_copy(layout, queries, base):
    array = COPIED[layout](queries)
    assert as_rows(array, "queries").copied_bytes == queries.nbytes
    oracle.check(nearwise.knn(array, base, 5), queries, base, 5)
    oracle.check(nearwise.knn(base, array, 5), base, queries, 5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint8, np.int8])
@pytest.mark.parametrize("layout", ["every third row", "first columns", "read-only", "Fortran order", "rows backwards"])
def test_layouts_of_narrow_types(layout, dtype, queries, base):
    make = IN_PLACE.get(layout) or COPIED[layout]
    array = make((queries * 20).clip(0, 100).astype(dtype))
    plain = np.ascontiguousarray(array).astype(np.float32)
    assert (as_rows(array, "queries").copied_bytes == 0) == (layout in IN_PLACE)
    oracle.check(nearwise.knn(array, base, 5), plain, base, 5)


def test_big_endian_halves(queries, base):
    halves = queries.astype(np.float16)
    oracle.check(nearwise.knn(halves.astype(">f2"), base, 5), halves, base, 5)


def test_repeated_and_overlapping_rows(base):
    repeated = np.broadcast_to(base[3], (4, 24))
    assert nearwise.knn(repeated, base, 1).ids.tolist() == [[3]] * 4
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(50, dtype=np.float32), 24)
    assert nearwise.knn(windows[5:6], windows, 1).ids.tolist() == [[5]]


def test_one_row_and_one_column_whatever_their_strides(base):
    assert nearwise.knn(base[4][None, :], base, 1).ids.tolist() == [[4]]
    assert nearwise.knn(base[::-1][295:296], base, 1).ids.tolist() == [[4]]
    assert nearwise.knn(base[7:8, :1], base[:, :1], 1).ids.tolist() == [[7]]
    assert nearwise.knn(base[7:8, 0][:, None], base[:, 0][:, None], 1).ids.tolist() == [[7]]


def test_a_large_array_is_not_copied():
    rows = np.zeros((40_000, 128), np.float32)
    rows[:, 0] = np.arange(len(rows))
    tracemalloc.start()  # numpy reports its allocations there
    try:
        for view in (rows, rows[::2], rows[:, :64]):
            assert nearwise.knn(view[9:10], view, 1).ids.tolist() == [[9]]
        assert tracemalloc.get_traced_memory()[1] < 100_000  # of 20 MB
    finally:
        tracemalloc.stop()


def test_memory_mapped_array(tmp_path, queries, base):
    np.save(tmp_path / "base.npy", base)
    mapped = np.load(tmp_path / "base.npy", mmap_mode="r")
    assert as_rows(mapped, "base").copied_bytes == 0
    oracle.check(nearwise.knn(queries, mapped, 5), queries, base, 5)


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">i4"])
def test_integers_that_float32_holds(dtype, base):
    values = np.array([[0, 7], [100, 16384]]).astype(dtype)
    assert nearwise.knn(values, values, 1).ids.tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("value", "dtype", "exact"),
    [
        (2**24, np.int32, True),
        (2**24 + 1, np.int32, False),
        (-(2**24) - 1, np.int64, False),
        (2**24 + 2, np.int64, True),
        (2**53 + 1, np.int64, False),
        (2**62, np.int64, True),
        (2**63 - 1, np.int64, False),
        (-(2**63), np.int64, True),
        (2**64 - 1, np.uint64, False),
        (2**63, np.uint64, True),
        (2**64 - 2**40, np.uint64, True),
        (2**64 - 2**39, np.uint64, False),
    ],
)
def test_integers_at_the_edge_of_float32(value, dtype, exact):
    rows = np.array([[1, 2], [3, value]], dtype=dtype)
    if exact:
        assert as_rows(rows, "base").array[1, 1] == np.float32(value)
    else:
        refuses(ValueError, rf"base: row 1 holds {value}, which float32 cannot hold exactly", as_rows, rows, "base")


def test_float64_is_rounded(base):
    fine = base.astype(np.float64) + 1e-12
    oracle.check(nearwise.knn(fine[:3], base, 5), fine[:3].astype(np.float32), base, 5)


def test_float64_beyond_float32_is_refused_by_row(base):
    large = base.astype(np.float64)
    large[123, 4] = -1e200
    refuses(ValueError, r"base: row 123 holds -1e\+200, too large for float32", nearwise.knn, base, large, 1)


def test_the_arrays_are_not_changed(queries, base):
    before = queries.copy(), base.copy()
    nearwise.knn(queries, base, 5, metric="cosine")
    np.testing.assert_array_equal(queries, before[0])
    np.testing.assert_array_equal(base, before[1])


def column_of(rows):
    """As numpy sees a column of pandas or polars: a 1-D array of arrays."""
    column = np.empty(len(rows), object)
    column[:] = list(rows)
    return column


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.uint8, np.int8, np.float64])
def test_arrays_of_arrays_are_stacked(dtype, queries, base):
    rows = (queries * 20).clip(0, 100).astype(dtype)
    plain = rows.astype(np.float32)
    oracle.check(nearwise.knn(column_of(rows), base, 5), plain, base, 5)
    oracle.check(nearwise.knn(list(rows), base, 5), plain, base, 5)
    assert as_rows(column_of(rows), "queries").type == as_rows(rows, "queries").type


def test_columns_of_pandas(queries, base):
    pandas = pytest.importorskip("pandas")
    oracle.check(nearwise.knn(pandas.Series(list(queries)), base, 5), queries, base, 5)
    oracle.check(nearwise.knn(pandas.Series(queries.tolist()), base, 5), queries, base, 5)
    oracle.check(nearwise.knn(pandas.DataFrame(queries), base, 5), queries, base, 5)
    assert nearwise.knn(pandas.Series(queries[0]), base, 5).ids.shape == (5,)  # one query
    column = pandas.Series(list(queries), index=range(100, 100 + len(queries)))  # whatever its index
    oracle.check(nearwise.knn(pandas.DataFrame({"vector": column})["vector"], base, 5), queries, base, 5)


def test_columns_of_arrow_in_pandas_are_used_in_place(queries, base):
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(queries.ravel()), queries.shape[1])
    column = pandas.Series(lists, dtype=pandas.ArrowDtype(lists.type))
    rows = as_rows(column, "queries")
    assert rows.copied_bytes == 0 and address(rows.array) == lists.values.buffers()[1].address
    oracle.check(nearwise.knn(column, base, 5), queries, base, 5)


class TestDlpack:
    def test_bfloat16(self, queries, base):
        tensor = bfloat16_tensor(queries)
        rounded = tensor.array.view(ml_dtypes.bfloat16).astype(np.float32)
        rows = as_rows(tensor, "queries")
        assert rows.type == "bf16" and rows.copied_bytes == 0 and address(rows.array) == address(tensor.array)
        oracle.check(nearwise.knn(tensor, base, 5), rounded, base, 5)

    @pytest.mark.parametrize(
        ("dtype", "code"), [(np.float32, FLOAT), (np.float16, FLOAT), (np.uint8, UINT), (np.int8, INT)]
    )
    def test_other_types_in_place(self, dtype, code, queries, base):
        array = (queries * 20).clip(0, 100).astype(dtype)
        tensor = Tensor(array[::2], code)
        assert address(as_rows(tensor, "queries").array) == address(array)
        oracle.check(nearwise.knn(tensor, base, 5), array[::2], base, 5)

    def test_types_that_are_converted(self, queries, base):
        oracle.check(nearwise.knn(Tensor(queries.astype(np.float64), FLOAT), base, 5), queries, base, 5)
        whole = (queries * 5).astype(np.int64)
        oracle.check(nearwise.knn(Tensor(whole, INT), base, 5), whole, base, 5)

    def test_the_tensor_is_given_back(self, queries, base):
        tensor = bfloat16_tensor(queries)
        nearwise.knn(tensor, base, 5)
        assert tensor.deleted == 1

    def test_a_device_of_another_kind_is_refused(self, queries, base):
        with pytest.raises(ValueError, match=r"queries: the Tensor is neither in host memory nor on a CUDA device \(.* 10\)"):
            nearwise.knn(Tensor(queries, FLOAT, device=ROCM), base, 5)

    def test_an_exporter_that_refuses_is_quoted(self, base):
        class Reluctant:
            def __dlpack__(self):
                raise BufferError("requires grad")

            def __dlpack_device__(self):
                return (1, 0)

        with pytest.raises(ValueError, match="queries: Reluctant cannot be used in place: requires grad"):
            nearwise.knn(Reluctant(), base, 5)

    def test_an_unknown_element_type_is_refused(self, base):
        with pytest.raises(ValueError, match="no numpy counterpart"):
            nearwise.knn(Tensor(np.zeros((2, 24), np.uint8), 10), base, 5)  # a kind of float8


@pytest.mark.parametrize("shape", [(), (0,), (5,), (23,), (4, 6), (0, 3), (3, 0), (50, 3), (2, 40)])
def test_large_copies_are_made_in_pieces(monkeypatch, shape):
    monkeypatch.setattr(_rows, "_ELEMENTS_AT_ONCE", 10)
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(">i4")
    for given in (array, np.asfortranarray(array), array[::-1] if shape else array):
        copy = copied(given, np.int64)
        assert copy.dtype == np.int64 and copy.dtype.isnative and copy.shape == given.shape and copy.flags.c_contiguous
        np.testing.assert_array_equal(copy, given)
        assert not np.shares_memory(copy, copied(copy, np.int64))
        expected = np.ascontiguousarray(given, np.int64)
        found = contiguous(given, np.int64)
        assert found.shape == expected.shape and found.flags.c_contiguous
        np.testing.assert_array_equal(found, expected)
        assert contiguous(found, np.int64) is found
