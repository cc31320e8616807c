"""Selection: equal to the definition, bit for bit, without copies, and clear about what it refuses."""

import hypothesis.strategies as st
import nearwise
import numpy as np
import pytest
from checks import MACHINES, refuses, reports_of
from hypothesis import given

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1, 1, 2], np.float32)


def defined(values, k, largest=False, ids=None):
    """A stable sort of every row: numbers before NaNs, then by value, id and column."""
    if ids is None:
        ids = np.arange(values.shape[1])
    ids = np.broadcast_to(ids, values.shape).astype(np.int64)
    wide = values.astype(np.float64)
    isnan = np.isnan(wide)
    key = np.where(isnan, 0.0, -wide if largest else wide)
    order = np.empty((len(values), k), np.int64)
    for row in range(len(values)):
        order[row] = np.lexsort((ids[row], key[row], isnan[row]))[:k]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(values, order, 1)


def check(found, expected):
    np.testing.assert_array_equal(found.ids, expected[0])
    np.testing.assert_array_equal(found.values.view(np.uint32), expected[1].view(np.uint32))


@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 4),
    columns=st.sampled_from((1, 2, 7, 16, 33, 64, 100, 3000, 9000)),
    share=st.floats(0, 1),
    largest=st.booleans(),
    ids=st.sampled_from((None, np.int64, np.uint32)),
    special=st.booleans(),
)
def test_equals_the_definition(seed, rows, columns, share, largest, ids, special):
    random = np.random.default_rng(seed)
    values = random.choice(SPECIAL, (rows, columns)) if special else random.random((rows, columns), np.float32)
    k = max(1, int(share * columns))
    given_ids = None if ids is None else random.integers(0, columns, (rows, columns)).astype(ids)
    found = nearwise.select_k(values, k, largest=largest, ids=given_ids)
    check(found, defined(values, k, largest, given_ids))


def test_shapes_types_and_ownership_of_the_result():
    values = np.random.default_rng(1).random((5, 50), np.float32)
    found = nearwise.select_k(values, 7)
    assert type(found) is nearwise.Selection and found._fields == ("ids", "values")
    assert found.ids.shape == found.values.shape == (5, 7)
    assert found.ids.dtype.num == np.dtype(np.int64).num and found.values.dtype == np.float32
    for array in found:
        assert array.flags.writeable and array.flags.c_contiguous and array.flags.aligned


def test_one_row_of_ids_serves_all_rows():
    values = np.random.default_rng(2).random((6, 40), np.float32)
    ids = np.random.default_rng(3).permutation(40) - 20
    for shared in (ids, ids[None, :], np.broadcast_to(ids, (6, 40)).copy()):
        check(nearwise.select_k(values, 9, ids=shared), defined(values, 9, ids=ids))


def test_rows_with_gaps_and_read_only_arrays_are_used_in_place():
    whole = np.random.default_rng(4).random((20, 90), np.float32)
    ids = np.random.default_rng(5).integers(0, 1000, (20, 90))
    whole.flags.writeable = False
    ids.flags.writeable = False
    for cut in (np.s_[::2], np.s_[:, :33], np.s_[3:4], np.s_[:, 5:6], np.s_[:0]):
        values, cut_ids = whole[cut], ids[cut]
        check(nearwise.select_k(values, 1, ids=cut_ids), defined(values, 1, ids=cut_ids))


def test_same_bits_for_threads_and_instruction_sets():
    values = np.round(np.random.default_rng(6).random((3, 200_000), np.float32), 2)
    expected = defined(values, 500)
    for options in (*MACHINES, {"threads": 2}, {"threads": 4}):
        check(nearwise.select_k(values, 500, **options), expected)


def test_short_rows():
    values = np.array([[2, 1]], np.float32)
    refuses(ValueError, "number of columns, 2, got 3", nearwise.select_k, values, 3)
    for largest, worst in ((False, np.inf), (True, -np.inf)):
        found = nearwise.select_k(values, 3, largest=largest, pad=True)
        assert found.ids[0, 2] == -1 and found.values[0, 2] == worst


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, ">f4", bool, object])
def test_other_types_are_refused(dtype):
    refuses(ValueError, "values: expected dtype float32, got", nearwise.select_k, np.zeros((2, 3), dtype), 1)


def test_other_layouts_are_refused():
    values = np.zeros((4, 6), np.float32)
    for wrong in (np.asfortranarray(values), values[:, ::2], values[::-1], np.broadcast_to(values[:1], (3, 6))):
        refuses(ValueError, "ascontiguousarray", nearwise.select_k, wrong, 1)
    refuses(ValueError, r"values\[None, :\]", nearwise.select_k, values[0], 1)


def test_wrong_ids_are_refused():
    values = np.zeros((4, 6), np.float32)
    for ids in (np.zeros((4, 6), np.int32), np.zeros((4, 6), np.float32), np.zeros((4, 6), np.uint64)):
        refuses(ValueError, "ids: expected dtype int64 or uint32", nearwise.select_k, values, 1, ids=ids)
    for shape in ((4, 5), (3, 6), (5,), (1, 4, 6)):
        refuses(ValueError, "ids", nearwise.select_k, values, 1, ids=np.zeros(shape, np.int64))


def test_other_wrong_arguments():
    values = np.zeros((4, 6), np.float32)
    refuses(ValueError, "k: expected at least 1", nearwise.select_k, values, 0)
    refuses(TypeError, "largest", nearwise.select_k, values, 1, largest="yes")
    refuses("out_of_memory", "", nearwise.select_k, values, 1, memory_limit=100)


def test_progress_ends_at_the_number_of_values():
    values = np.random.default_rng(7).random((30, 5000), np.float32)
    assert reports_of(nearwise.select_k, values, 3)[-1] == (150_000, 150_000)
