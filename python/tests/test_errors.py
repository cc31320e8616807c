"""Wrong arguments are named, never swallowed. Also run under `python -O` (test_process.py)."""

import pathlib
import pickle

import nearwise
import numpy as np
import pytest
from checks import refuses, spoiled
from nearwise import _core
from scipy import sparse


def objects(*elements):
    """As a column of pandas: a 1-D array of objects."""
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


@pytest.mark.parametrize(
    ("k", "kind", "text"),
    [
        (0, ValueError, "k: expected at least 1, got 0"),
        (-1, ValueError, "k: expected at least 1, got -1"),
        (301, ValueError, "300.*301"),
        (2**31, ValueError, "300.*2147483648"),
        (2**70, ValueError, "k: expected at most"),
        (3.7, TypeError, r"k: expected an integer, got 3.7 \(float\)"),
        (np.float32(3), TypeError, "k: expected an integer"),
        (True, TypeError, "k: expected an integer, got True"),
        (np.True_, TypeError, "k: expected an integer"),
        ("3", TypeError, r"k: expected an integer, got '3' \(str\)"),
        (None, TypeError, "k: expected an integer"),
    ],
)
def test_k(k, kind, text, queries, base):
    refuses(kind, text, nearwise.knn, queries, base, k)


def test_a_padded_result_beyond_all_memory(queries, base):
    refuses("out_of_memory", "", nearwise.knn, queries, base, 2**40, pad=True, memory_limit="1GiB")
    refuses((nearwise.Error, MemoryError, ValueError), "", nearwise.knn, queries, base, 2**62, pad=True)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.zeros((3, 24), np.complex64), "queries: dtype complex64 is not accepted; accepted are float32, float16"),
        (np.zeros((3, 24), bool), "queries: dtype bool is not accepted; accepted are"),
        (np.full((3, 24), "a", dtype=object), "queries: dtype object is not accepted"),
        (np.full((3, 24), "a"), "queries: dtype <U1 is not accepted"),
        (np.zeros((3, 24), "M8[s]"), "queries: dtype datetime64"),
        (np.zeros((3, 24), np.longdouble), "queries: dtype float128|queries: dtype longdouble"),
        (np.zeros((3, 24), [("x", "f4")]), "queries: dtype .* is not accepted"),
        (np.zeros((2, 2, 24), np.float32), "queries: expected a 2-D .* got 3-D"),
        (np.float32(1), "queries: expected a 2-D .* got 0-D"),
        (None, r"queries: expected an array of vectors \[rows, dim\], got None"),
        ("base.fbin", r"queries: expected an array, got the text 'base.fbin'; .* nearwise.read_vectors\('base.fbin'\) maps it"),
        (pathlib.Path("base.fbin"), r"nearwise.read_vectors\('base.fbin'\)"),
        (b"base.fbin", r"nearwise.read_vectors\(b'base.fbin'\)"),
        (sparse.csr_array(np.eye(24, dtype=np.float32)), r"a sparse matrix \(csr_array of shape \(24, 24\)\) .*queries.toarray\(\)"),
        (sparse.coo_matrix(np.eye(24)), r"a sparse matrix \(coo_matrix .*queries.toarray\(\)"),
        ([np.zeros(24), np.zeros(23)], "queries: list does not convert|row 1 has 23 elements, row 0 has 24"),
        (objects(np.zeros(24), np.zeros(23)), "queries: row 1 has 23 elements, row 0 has 24: vectors of one length expected"),
        (objects(np.zeros(24), None), "queries: row 1 holds None, row 0 has 24: vectors"),
        (objects(1, 2), "queries: dtype object is not accepted"),
        (objects(["a"] * 24), "queries: dtype <U1 is not accepted"),
        ([[1.0, 2.0], [3.0]], "queries: list does not convert to an array"),
        (np.zeros((3, 16), np.float32), "16 and 24"),
        (np.zeros((3, 48), np.float32), "48 and 24"),
    ],
)
def test_queries(values, text, base):
    refuses(ValueError, text, nearwise.knn, values, base, 1)


def test_base_is_checked_alike(queries):
    refuses(ValueError, r"base: expected a 2-D .*base\[None, :\]", nearwise.knn, queries, queries[0], 1)
    refuses(ValueError, "base: dtype complex128", nearwise.knn, queries, queries.astype(complex), 1)


def test_masked_elements(queries, base):
    refuses(ValueError, "masked", nearwise.knn, np.ma.masked_array(queries, mask=queries > 1), base, 1)


def test_dimension_zero():
    nothing = np.zeros((3, 0), np.float32)
    refuses(ValueError, "dimension", nearwise.knn, nothing, nothing, 1)


def test_an_empty_base(queries):
    refuses(ValueError, "number of base rows, 0", nearwise.knn, queries, np.empty((0, 24), np.float32), 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("row", [0, 17])
def test_non_finite_rows_are_named(value, dtype, row, queries, base):
    refuses(ValueError, rf"row {row}\b", nearwise.knn, spoiled(queries.astype(dtype), row, value), base, 1)
    refuses(ValueError, rf"row {row}\b", nearwise.knn, queries, spoiled(base.astype(dtype), row, value), 1)


def test_huge_but_finite_values(queries, base):
    """1e30 squared overflows float32 in a naive sum; here it is a distance of +inf at worst, ids stay true."""
    found = nearwise.knn(queries * np.float32(1e30), base, 3)
    assert ((found.ids >= 0) & (found.ids < 300)).all()


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"metric": "l3"}, ValueError, "metric: expected one of sqeuclidean, euclidean, inner_product, cosine"),
        ({"metric": 2}, TypeError, r"metric: expected a string, got 2 \(int\)"),
        ({"pad": "yes"}, TypeError, "pad: expected True or False, got 'yes'"),
        ({"device": "tpu"}, ValueError, "device must be cpu, cuda or cuda:N, got 'tpu'"),
        ({"device": "cuda:x"}, ValueError, "cuda:x"),
        ({"device": 0}, TypeError, "device: expected a string"),
        ({"isa": "mmx"}, ValueError, "mmx"),
        ({"threads": -1}, ValueError, "threads: expected at least 1, got -1"),
        ({"threads": 10**9}, ValueError, "threads"),
        ({"threads": 2**40}, ValueError, "threads: expected at most"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer"),
        ({"memory_limit": "much"}, ValueError, "memory_limit: expected bytes such as 2147483648, '2GiB'"),
        ({"memory_limit": "-1GiB"}, ValueError, "memory_limit: expected bytes"),
        ({"memory_limit": -1}, ValueError, "memory_limit: expected at least 1"),
        ({"memory_limit": 1.5}, TypeError, "memory_limit: expected an integer"),
        ({"progress": 3}, TypeError, "progress: expected None, True or a callable"),
        ({"unknown": 3}, TypeError, "unknown"),
    ],
)
def test_options(options, kind, text, queries, base):
    refuses(kind, text, nearwise.knn, queries, base, 1, **options)


def test_options_have_no_positions(queries, base):
    refuses(TypeError, "", nearwise.knn, queries, base, 1, "cosine")


def test_a_device_that_is_not_there(queries, base):
    refuses("unsupported", "cuda:99", nearwise.knn, queries, base, 1, device="cuda:99")


def test_memory_limit_says_what_it_would_take(queries, base):
    refuses("out_of_memory", "memory", nearwise.knn, queries, base, 5, memory_limit=100)


def test_memory_limit_counts_converted_copies(base):
    wide, text = base.astype(np.float64), r"base: a converted copy of float64 \(300, 24\) takes 28800"
    refuses("out_of_memory", text, nearwise.knn, base, wide, 5, memory_limit=20_000)
    refuses("out_of_memory", "converted copies take 57600", nearwise.knn, wide, wide, 5, memory_limit=40_000)


def test_the_error_class():
    assert issubclass(nearwise.Error, RuntimeError)
    error = nearwise.Error("file: broken", "corrupt")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is nearwise.Error and again.code == "corrupt" and str(again) == "file: broken"
    assert repr(type(error)) == "<class 'nearwise.Error'>"


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.zeros((2, 3), np.float64), "f32"),
        (np.zeros((2, 3), np.float32), "u8"),
        (np.zeros((2, 3), np.float32), "f16"),
        (np.zeros((2, 3), np.int8), "u8"),
        (np.zeros(3, np.float32), "f32"),
        (np.zeros((2, 6), np.float32)[:, ::2], "f32"),
        (np.zeros((2, 3), np.float32)[::-1], "f32"),
        (np.broadcast_to(np.zeros(3, np.float32), (2, 3)), "f32"),
        (np.zeros((2, 3), ">f4"), "f32"),
        (np.zeros((2, 3), np.float32), "f64"),
    ],
)
def test_the_private_module_checks_again(array, kind):
    """Nothing that Python code does can make C++ read beyond an array."""
    refuses(ValueError, "", _core.Rows, array=array, type=kind, name="queries")


def test_the_private_module_refuses_what_is_no_array():
    for value in (None, 3, "text", object()):
        refuses(TypeError, "", _core.Rows, array=value, type="f32", name="queries")


def test_objects_of_other_kinds(base):
    quantizer = nearwise.ProductQuantizer.train(base, parts=2, bits=4, iterations=1)
    rotation = nearwise.Rotation.pca(base, 24)
    refuses(TypeError, "expected: expected a class, got tuple", nearwise.load, "index.nw", ())
    refuses(TypeError, "sums: expected ClusterSums, got tuple", nearwise.move_centroids, (1, 2), base)
    refuses(TypeError, "rotation: expected a Rotation", nearwise.OptimizedProductQuantizer, quantizer, quantizer)
    refuses(TypeError, "quantizer: expected a ProductQuantizer", nearwise.OptimizedProductQuantizer, rotation, None)


def test_a_copy_beyond_all_memory(tmp_path):
    huge = np.broadcast_to(np.float32(1), (2**40, 8))  # rows that overlap are copied
    refuses("out_of_memory", "vectors: Unable to allocate", nearwise.write_vectors, tmp_path / "new.fbin", huge)
