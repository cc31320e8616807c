"""Additive quantizers: equal to their definition, the same bytes everywhere, and clear about what they refuse."""

import copy
import pickle

import nearwise
import numpy as np
import pytest
from checks import damage, refuses, reports_of, spoiled
from nearwise import AdditiveQuantizer, ProductQuantizer
from samples import TYPES, positive_rows


@pytest.fixture(scope="module")
def trained():
    rows = np.random.default_rng(1).standard_normal((900, 10), dtype=np.float32)
    return AdditiveQuantizer.train(rows, codebooks=3, rounds=3), rows


def sums(quantizer, codes):
    books = quantizer.codebooks.astype(float)
    return sum(books[book, codes[:, book]] for book in range(len(books)))


def test_shape_codes_and_errors(trained):
    quantizer, rows = trained
    assert (quantizer.dim, quantizer.code_bytes) == (10, 4)
    assert quantizer.codebooks.shape == (3, 256, 10) and quantizer.norms.shape == (256,)
    codes = quantizer.encode(rows)
    assert codes.shape == (900, 4) and codes.dtype == np.uint8
    decoded = quantizer.decode(codes)
    np.testing.assert_array_equal(decoded, sums(quantizer, codes).astype(np.float32))
    lengths = (decoded.astype(float) ** 2).sum(axis=1)
    levels = quantizer.norms.astype(float)
    np.testing.assert_allclose(abs(levels[codes[:, 3]] - lengths), abs(levels - lengths[:, None]).min(axis=1), atol=1e-4)
    error = ((rows.astype(float) - decoded) ** 2).sum(axis=1).mean()
    assert quantizer.error(rows) == pytest.approx(error, rel=1e-9)
    assert error < ProductQuantizer.train(rows, parts=3).error(rows)
    assert quantizer.error(rows, iterations=1) > quantizer.error(rows, iterations=40)
    assert "10 elements in 3 codebooks" in repr(quantizer)


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
def test_search(trained, metric):
    quantizer, rows = trained
    codes = quantizer.encode(rows)
    queries = np.random.default_rng(2).standard_normal((30, 10), dtype=np.float32)
    ids, distances = quantizer.search(queries, codes, 5, metric=metric)
    assert ids.shape == distances.shape == (30, 5) and ids.dtype == np.int64
    products = queries.astype(float) @ sums(quantizer, codes).T
    expected = products
    if metric == "sqeuclidean":
        lengths = quantizer.norms.astype(float)[codes[:, 3]]
        expected = (queries.astype(float) ** 2).sum(axis=1)[:, None] - 2 * products + lengths
    np.testing.assert_allclose(distances, np.take_along_axis(expected, ids, 1), atol=1e-4)
    best = np.sort(expected)[:, :5] if metric == "sqeuclidean" else -np.sort(-expected)[:, :5]
    np.testing.assert_allclose(distances, best, atol=1e-4)
    one, _ = quantizer.search(queries[7:8], codes, 5, metric=metric, context=nearwise.Context(threads=1))
    np.testing.assert_array_equal(one[0], ids[7])
    assert (quantizer.search(queries, codes[:2], 3, metric=metric).ids[:, 2] == -1).all()


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_and_gaps(dtype):
    rows = positive_rows(3, 300, 6, dtype)
    wide = np.asarray(rows).astype(np.float32)
    quantizer = AdditiveQuantizer.train(rows, codebooks=2, rounds=1)
    np.testing.assert_array_equal(
        quantizer.codebooks, AdditiveQuantizer.train(wide, codebooks=2, rounds=1).codebooks
    )
    codes = quantizer.encode(wide)
    np.testing.assert_array_equal(quantizer.encode(rows[::2]), codes[::2])
    np.testing.assert_array_equal(quantizer.decode(codes[::3]), quantizer.decode(codes)[::3])


def test_seed_threads_copies_and_pickles(trained):
    quantizer, rows = trained
    codes = quantizer.encode(rows)
    for threads in (1, 3):
        again = AdditiveQuantizer.train(rows, codebooks=3, rounds=3, threads=threads)
        np.testing.assert_array_equal(again.codebooks, quantizer.codebooks)
        np.testing.assert_array_equal(quantizer.encode(rows, context=nearwise.Context(threads=threads)), codes)
    for isa in nearwise.info()["instruction_sets"]:
        np.testing.assert_array_equal(quantizer.encode(rows[:50], context=nearwise.Context(isa=isa)), codes[:50])
    assert not np.array_equal(quantizer.encode(rows, seed=1), codes)
    for other in (pickle.loads(pickle.dumps(quantizer)), copy.deepcopy(quantizer)):
        np.testing.assert_array_equal(other.encode(rows), codes)


def test_files(trained, tmp_path):
    quantizer, rows = trained
    path = tmp_path / "words.nw"
    quantizer.save(path, provenance={"rows": "random"})
    loaded = nearwise.load(path)
    np.testing.assert_array_equal(loaded.encode(rows), quantizer.encode(rows))
    assert nearwise.verify(path).kind == "additive_quantizer"
    assert nearwise.inspect(path).metadata["provenance.rows"] == "random"
    damage(path)
    refuses("corrupt", "", nearwise.load, path)


def test_wrong_arguments(trained):
    quantizer, rows = trained
    with pytest.raises(ValueError, match="training needs at least 256 rows, as many as a codebook has codewords, got 20"):
        AdditiveQuantizer.train(rows[:20])
    refuses(ValueError, "1 to 32 codebooks, got 33", AdditiveQuantizer.train, rows, codebooks=33)
    refuses(TypeError, "rounds: expected an integer", AdditiveQuantizer.train, rows, rounds=2.0)
    refuses(TypeError, "made by AdditiveQuantizer.train", AdditiveQuantizer)
    refuses(ValueError, "iterations: expected at least 1", quantizer.encode, rows, iterations=0)
    refuses(ValueError, "codes: expected dtype uint8", quantizer.decode, np.zeros((2, 4), np.int64))
    refuses(ValueError, "4 bytes, got 3", quantizer.search, rows, np.zeros((2, 3), np.uint8), 1)
    refuses(ValueError, "got cosine", quantizer.search, rows, np.zeros((2, 4), np.uint8), 1, metric="cosine")
    with pytest.raises(ValueError, match=r"\[codebooks, 256, dim\]"):
        AdditiveQuantizer.from_codebooks(np.zeros((2, 16, 4)), quantizer.norms)
    refuses(ValueError, "in ascending order", AdditiveQuantizer.from_codebooks, quantizer.codebooks, quantizer.norms[::-1])
    refuses(ValueError, "row 13 ", quantizer.encode, spoiled(rows, 13))
    refuses("out_of_memory", "", quantizer.encode, rows, context=nearwise.Context(memory_limit=1000))


def test_progress(trained):
    quantizer, rows = trained
    assert reports_of(quantizer.encode, rows)[-1] == (900, 900)
