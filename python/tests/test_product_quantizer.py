"""Quantizers and rotations: equal to their definitions, without copies, and clear about what they refuse."""

import copy
import pickle

import nearwise
import numpy as np
import oracle
import pytest
from checks import refuses, reports_of, spoiled, stops_by_progress
from nearwise import OptimizedProductQuantizer, ProductQuantizer, Rotation
from samples import TYPES, positive_rows


def correlated(seed, rows, dim):
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((rows, 3)) @ random.standard_normal((3, dim))
    return (hidden + 0.05 * random.standard_normal((rows, dim))).astype(np.float32)


def parts_of(quantizer, rows):
    """Pieces of rows, one per part."""
    lengths = [book.shape[1] for book in quantizer.codebooks]
    return np.split(np.asarray(rows), np.cumsum(lengths)[:-1], axis=1)


def unpacked(quantizer, codes):
    """[rows, parts] numbers of codewords"""
    if quantizer.bits == 8:
        return codes
    halves = np.stack((codes & 15, codes >> 4), axis=2).reshape(len(codes), -1)
    return halves[:, : quantizer.parts]


@pytest.fixture(scope="module", params=[(8, 4, 5), (8, 8, 3), (17, 4, 4), (3, 8, 3), (1, 4, 1)])
def trained(request):
    dim, bits, parts = request.param
    rows = np.random.default_rng(dim).standard_normal((700, dim), dtype=np.float32)
    return ProductQuantizer.train(rows, parts=parts, bits=bits, iterations=4), rows


def test_shape(trained):
    quantizer, rows = trained
    assert quantizer.dim == rows.shape[1] and quantizer.centroids == 2**quantizer.bits
    assert len(quantizer.codebooks) == quantizer.parts
    lengths = [book.shape[1] for book in quantizer.codebooks]
    assert sum(lengths) == quantizer.dim and max(lengths) - min(lengths) <= 1
    assert all(book.shape[0] == quantizer.centroids and book.dtype == np.float32 for book in quantizer.codebooks)
    assert repr(quantizer.parts) in repr(quantizer)


def test_codes_are_the_nearest_codewords(trained):
    quantizer, rows = trained
    codes = quantizer.encode(rows)
    assert codes.dtype == np.uint8 and codes.shape == (len(rows), quantizer.code_bytes)
    for part, (piece, book) in enumerate(zip(parts_of(quantizer, rows), quantizer.codebooks)):
        ids, _ = oracle.knn(piece, book, 1)
        np.testing.assert_array_equal(unpacked(quantizer, codes)[:, part], ids[:, 0])


def test_decoded_rows_and_error(trained):
    quantizer, rows = trained
    codes = quantizer.encode(rows)
    numbers = unpacked(quantizer, codes)
    expected = np.hstack([book[numbers[:, part]] for part, book in enumerate(quantizer.codebooks)])
    decoded = quantizer.decode(codes)
    np.testing.assert_array_equal(decoded, expected)
    error = ((rows.astype(float) - decoded) ** 2).sum(axis=1).mean()
    assert quantizer.error(rows) == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize("metric", ["sqeuclidean", "inner_product"])
def test_tables(trained, metric):
    quantizer, rows = trained
    tables = quantizer.tables(rows[:6], metric)
    assert tables.shape == (6, quantizer.parts, quantizer.centroids) and tables.dtype == np.float32
    for part, (piece, book) in enumerate(zip(parts_of(quantizer, rows[:6]), quantizer.codebooks)):
        np.testing.assert_array_equal(tables[:, part], oracle.distances(piece, book, metric))


@pytest.mark.parametrize("dtype", TYPES)
def test_every_type_and_gaps(dtype):
    rows = positive_rows(3, 300, 10, dtype)
    quantizer = ProductQuantizer.train(rows, parts=3, bits=4, iterations=2)
    wide = np.asarray(rows).astype(np.float32)
    assert_same_quantizer(quantizer, ProductQuantizer.train(wide, parts=3, bits=4, iterations=2))
    np.testing.assert_array_equal(quantizer.encode(rows[::2]), quantizer.encode(wide)[::2])
    np.testing.assert_array_equal(quantizer.encode(wide.astype(np.float64)), quantizer.encode(wide))
    codes = quantizer.encode(rows)
    np.testing.assert_array_equal(quantizer.decode(codes[::3]), quantizer.decode(codes)[::3])


def assert_same_quantizer(left, right):
    assert (left.dim, left.parts, left.bits) == (right.dim, right.parts, right.bits)
    for one, other in zip(left.codebooks, right.codebooks):
        np.testing.assert_array_equal(one, other)


def test_seed_threads_and_instruction_sets():
    rows = np.random.default_rng(4).standard_normal((3000, 6), dtype=np.float32)
    options = {"parts": 2, "bits": 4, "iterations": 3, "training_rows": 50}
    first = ProductQuantizer.train(rows, seed=7, **options)
    for threads in (1, 2, 3):
        assert_same_quantizer(first, ProductQuantizer.train(rows, seed=7, threads=threads, **options))
    for isa in nearwise.info()["instruction_sets"]:
        assert_same_quantizer(first, ProductQuantizer.train(rows, seed=7, isa=isa, **options))
        np.testing.assert_array_equal(first.encode(rows, context=nearwise.Context(isa=isa)), first.encode(rows))
    other = ProductQuantizer.train(rows, seed=8, **options)
    assert not np.array_equal(first.codebooks[0], other.codebooks[0])


def test_from_codebooks_copies_and_pickles(trained):
    quantizer, rows = trained
    again = ProductQuantizer.from_codebooks(quantizer.codebooks)
    for other in (again, pickle.loads(pickle.dumps(quantizer)), copy.deepcopy(quantizer)):
        assert_same_quantizer(quantizer, other)
        np.testing.assert_array_equal(other.encode(rows), quantizer.encode(rows))
    # A copy: writing to it changes nothing.
    quantizer.codebooks[0][:] = 0
    assert_same_quantizer(quantizer, again)


def test_rotation_keeps_distances_and_finds_axes():
    random = np.random.default_rng(5)
    axes = np.linalg.qr(random.standard_normal((5, 5)))[0].T
    rows = (random.standard_normal((4000, 5)) * [9, 5, 3, 1, 0.2] @ axes + 30).astype(np.float32)
    rotation = Rotation.pca(rows, 5)
    assert (rotation.dim, rotation.rotated_dim) == (5, 5)
    np.testing.assert_allclose(rotation.matrix @ rotation.matrix.T, np.eye(5), atol=1e-5)
    np.testing.assert_allclose(np.abs((rotation.matrix * axes).sum(axis=1)), 1, atol=0.01)
    np.testing.assert_allclose(rotation.mean, rows.mean(axis=0), rtol=1e-4)
    assert (rotation.matrix[np.arange(5), np.abs(rotation.matrix).argmax(axis=1)] > 0).all()
    rotated = rotation.apply(rows)
    np.testing.assert_allclose(rotated, (rows - rotation.mean) @ rotation.matrix.T, atol=1e-4)
    np.testing.assert_allclose(rotation.reverse(rotated), rows, atol=1e-4)
    short = Rotation.pca(rows, 2)
    np.testing.assert_array_equal(short.matrix, rotation.matrix[:2])
    assert short.apply(rows).shape == (4000, 2) and short.reverse(short.apply(rows)).shape == (4000, 5)
    for other in (Rotation.from_matrix(short.matrix, short.mean), pickle.loads(pickle.dumps(short))):
        np.testing.assert_array_equal(other.apply(rows), short.apply(rows))
    np.testing.assert_array_equal(Rotation.from_matrix(np.eye(5)).apply(rows), rows)


def test_optimized_quantizer():
    rows = correlated(6, 3000, 12)
    options = {"parts": 3, "bits": 4, "iterations": 10}
    plain = ProductQuantizer.train(rows, **options)
    trained = OptimizedProductQuantizer.train(rows, rounds=4, **options)
    assert trained.error(rows) < 0.5 * plain.error(rows)
    assert (trained.parts, trained.centroids) == (3, 16)
    rotated = trained.rotation.apply(rows)
    codes = trained.encode(rows)
    np.testing.assert_array_equal(codes, trained.quantizer.encode(rotated))
    np.testing.assert_array_equal(trained.decode(codes), trained.rotation.reverse(trained.quantizer.decode(codes)))
    np.testing.assert_array_equal(trained.tables(rows[:4]), trained.quantizer.tables(rotated[:4]))
    for other in (
        pickle.loads(pickle.dumps(trained)),
        OptimizedProductQuantizer(trained.rotation, trained.quantizer),
        OptimizedProductQuantizer.train(rows, rounds=4, threads=1, **options),
    ):
        np.testing.assert_array_equal(other.encode(rows), codes)
    assert "12 elements in 3 parts of 4 bits" in repr(trained)


def test_wrong_arguments():
    rows = np.zeros((20, 6), np.float32)
    with pytest.raises(ValueError, match="256 codewords per part, which need at least as many rows, got 20"):
        ProductQuantizer.train(rows)
    refuses(ValueError, "1 to 6 parts", ProductQuantizer.train, rows, parts=7, bits=4)
    refuses(ValueError, "bits must be 4 or 8, got 6", ProductQuantizer.train, rows, bits=6)
    refuses(TypeError, "parts: expected an integer", ProductQuantizer.train, rows, parts=2.0, bits=4)
    refuses(TypeError, "made by ProductQuantizer.train", ProductQuantizer)
    refuses(TypeError, "made by Rotation.pca", Rotation)
    bad = spoiled(rows, 13)
    refuses(ValueError, "row 13 ", ProductQuantizer.train, bad, bits=4)
    quantizer = ProductQuantizer.train(rows, parts=3, bits=4)
    refuses(ValueError, "row 13 ", quantizer.encode, bad)
    refuses(ValueError, "6 elements as in training, got 5", quantizer.encode, rows[:, :5])
    refuses(ValueError, "codes: expected dtype uint8", quantizer.decode, np.zeros((2, 2), np.int64))
    refuses(ValueError, "2 bytes, got 3", quantizer.decode, np.zeros((2, 3), np.uint8))
    refuses(ValueError, "got cosine", quantizer.tables, rows, "cosine")
    refuses(ValueError, "dims must be 1 to 6, got 7", Rotation.pca, rows, 7)
    refuses(ValueError, "orthonormal", Rotation.from_matrix, [[1, 1]])
    refuses(ValueError, "mean", Rotation.from_matrix, [[1, 0]], [1, 2, 3])
    with pytest.raises(ValueError, match="expected 5 elements as the rotation returns, got 6"):
        OptimizedProductQuantizer(Rotation.from_matrix(np.eye(5)), quantizer)


@pytest.mark.parametrize(
    "codebooks", [[], [np.zeros((17, 2))], [np.zeros(16)], [np.zeros((16, 1)), np.zeros((16, 2))],
                  [np.zeros((16, 2)), np.zeros((256, 2))], [np.full((16, 2), np.inf)]]
)
def test_wrong_codebooks(codebooks):
    refuses(ValueError, "codebooks", ProductQuantizer.from_codebooks, codebooks)


def test_memory_limit_and_progress():
    rows = np.random.default_rng(9).standard_normal((2000, 8), dtype=np.float32)
    for train in (ProductQuantizer.train, OptimizedProductQuantizer.train):
        refuses("out_of_memory", "", train, rows, bits=4, memory_limit=1000)
    done, total = reports_of(ProductQuantizer.train, rows, parts=2, bits=4)[-1]
    assert done == total > 0
    quantizer = ProductQuantizer.train(rows, parts=2, bits=4)
    refuses("out_of_memory", "", quantizer.encode, rows, context=nearwise.Context(memory_limit=1000))
    stops_by_progress(quantizer.encode, rows)
