"""Files: vectors mapped without a copy, results that come back as they were saved or not at all."""

import builtins
import os

import ml_dtypes
import nearwise
import numpy as np
import oracle
import pytest
from checks import refuses
from samples import assert_same

SUFFIXES = {
    ".npy": (np.float32, np.float16, np.uint8, np.int8),
    ".fbin": (np.float32,),
    ".f16bin": (np.float16,),
    ".bf16bin": (ml_dtypes.bfloat16,),
    ".u8bin": (np.uint8,),
    ".i8bin": (np.int8,),
    ".fvecs": (np.float32,),
    ".bvecs": (np.uint8,),
}


def rows_of(dtype):
    return (np.random.default_rng(4).standard_normal((50, 12)) * 20).clip(0, 100).astype(dtype)


@pytest.mark.parametrize(("suffix", "dtype"), [(s, d) for s, types in SUFFIXES.items() for d in types])
def test_vectors_there_and_back(tmp_path, suffix, dtype):
    path = tmp_path / f"vectors{suffix}"
    rows = rows_of(dtype)
    nearwise.write_vectors(path, rows)
    read = nearwise.read_vectors(path)
    assert read.dtype == rows.dtype and read.shape == rows.shape
    assert not read.flags.writeable
    np.testing.assert_array_equal(read.astype(np.float32), rows.astype(np.float32))
    oracle.check(nearwise.knn(read[:5], read, 3), rows[:5], rows, 3)
    assert os.listdir(tmp_path) == [path.name]  # nothing temporary is left


def test_messages_quote_any_bytes(tmp_path):
    folder = os.fsencode(tmp_path)
    refuses("not_found", r"\\xff", nearwise.load, os.fsdecode(folder + b"/missing-\xff.nw"))
    np.save(tmp_path / "rows.npy", rows_of(np.float32))
    data = bytearray((tmp_path / "rows.npy").read_bytes())
    for offset in range(10, 80):
        hostile = data.copy()
        hostile[offset] = 0xFF
        (tmp_path / "hostile.npy").write_bytes(hostile)
        with pytest.raises((nearwise.Error, ValueError)) as raised:
            nearwise.read_vectors(tmp_path / "hostile.npy")
        assert not isinstance(raised.value, UnicodeError), offset


def test_npy_is_numpys_own(tmp_path):
    rows = rows_of(np.float32)
    nearwise.write_vectors(tmp_path / "ours.npy", rows)
    np.testing.assert_array_equal(np.load(tmp_path / "ours.npy"), rows)
    np.save(tmp_path / "theirs.npy", rows)
    np.testing.assert_array_equal(nearwise.read_vectors(tmp_path / "theirs.npy"), rows)


@pytest.mark.parametrize("view", [np.s_[::3], np.s_[:, 2:7], np.s_[::-1], np.s_[:, ::2]])
def test_views_are_written_as_they_look(tmp_path, view):
    rows = rows_of(np.float32)[view]
    nearwise.write_vectors(tmp_path / "view.fbin", rows)
    np.testing.assert_array_equal(nearwise.read_vectors(tmp_path / "view.fbin"), rows)


def test_the_array_is_the_mapped_file(tmp_path):
    path = tmp_path / "vectors.fbin"
    nearwise.write_vectors(path, rows_of(np.float32))
    read = nearwise.read_vectors(path)
    address = read.__array_interface__["data"][0]
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[0].split("-") for line in maps if line.rstrip().endswith(str(path))]
    assert any(int(begin, 16) <= address < int(end, 16) for begin, end in ranges)
    # What is written through the file shows in the array: it is the same memory.
    with open(path, "r+b") as file:
        file.seek(8)
        file.write(np.float32(12345).tobytes())
    assert read[0, 0] == 12345


def test_the_mapping_lives_as_long_as_a_view(tmp_path):
    path = tmp_path / "vectors.fvecs"
    rows = rows_of(np.float32)
    nearwise.write_vectors(path, rows)
    last = nearwise.read_vectors(path)[-1]
    os.unlink(path)
    np.testing.assert_array_equal(last, rows[-1])

    def mapped():
        with open("/proc/self/maps") as maps:
            return str(path) in maps.read()

    assert mapped()
    del last
    assert not mapped()


def test_a_read_only_array_cannot_be_written(tmp_path):
    nearwise.write_vectors(tmp_path / "v.fbin", rows_of(np.float32))
    read = nearwise.read_vectors(tmp_path / "v.fbin")
    with pytest.raises(ValueError, match="read-only"):
        read[0, 0] = 1
    with pytest.raises(ValueError):
        read.flags.writeable = True


def test_bfloat16_without_ml_dtypes(tmp_path, monkeypatch):
    path = tmp_path / "v.bf16bin"
    rows = rows_of(ml_dtypes.bfloat16)
    nearwise.write_vectors(path, rows)
    real_import = builtins.__import__

    def without_ml_dtypes(name, *rest, **named):
        if name == "ml_dtypes":
            raise ImportError(name)
        return real_import(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without_ml_dtypes)
    with pytest.warns(UserWarning, match="bits in uint16; install ml_dtypes") as caught:
        read = nearwise.read_vectors(path)
    assert caught[0].filename == __file__
    assert read.dtype == np.uint16
    np.testing.assert_array_equal(read, rows.view(np.uint16))


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("missing.fbin", None, "not_found"),
        ("short.fbin", b"\x01", "corrupt"),
        ("truncated.fbin", np.array([10, 4], np.uint32).tobytes() + bytes(100), "corrupt"),
        ("huge.fbin", np.array([2**32 - 1, 2**32 - 1], np.uint32).tobytes(), "corrupt"),
        ("uneven.fvecs", np.array([3], np.int32).tobytes() + bytes(13), "corrupt"),
    ],
)
def test_damaged_vector_files(tmp_path, name, content, code):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refuses(code, name, nearwise.read_vectors, tmp_path / name)


def test_pickled_objects_are_never_loaded(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    refuses(ValueError, "Python objects", nearwise.read_vectors, tmp_path / "objects.npy")


def test_wrong_suffixes_and_paths(tmp_path):
    rows = rows_of(np.float32)
    refuses(ValueError, r"\.xyz", nearwise.write_vectors, tmp_path / "v.xyz", rows)
    refuses(ValueError, "u8", nearwise.write_vectors, tmp_path / "v.u8bin", rows)
    with pytest.raises(nearwise.Error) as caught:
        nearwise.write_vectors(tmp_path / "no" / "such" / "folder.fbin", rows)
    assert caught.value.code in ("cannot_create", "not_found")
    for path in (None, 3, 1.5):
        refuses(TypeError, "", nearwise.read_vectors, path)
    assert os.listdir(tmp_path) == []


@pytest.fixture
def found(queries, base):
    return nearwise.knn(queries, base, 5, metric="cosine")


def test_save_and_load(tmp_path, found):
    path = tmp_path / "result.nw"
    nearwise.save(path, found, metric="cosine", provenance={"base": "b.npy", "note": "äöü ∞"})
    saved = nearwise.load(path)
    assert isinstance(saved, nearwise.SavedNeighbors) and isinstance(saved.neighbors, nearwise.Neighbors)
    assert_same(saved.neighbors, found)
    assert saved.metric == "cosine"
    assert saved.provenance == {"base": "b.npy", "note": "äöü ∞"}
    assert nearwise.read_neighbors(path).ids.tolist() == found.ids.tolist()


def test_verify_and_inspect(tmp_path, found):
    path = tmp_path / "result.nw"
    nearwise.save(path, found, metric="cosine")
    for info in (nearwise.verify(path), nearwise.inspect(path)):
        assert info.kind == "neighbors" and info.bytes == path.stat().st_size
        assert {"ids", "distances"} <= {section.name for section in info.sections}
        assert "ContainerInfo(kind='neighbors'" in repr(info)


def test_every_flipped_byte_is_found(tmp_path, found):
    path = tmp_path / "result.nw"
    nearwise.save(path, found, metric="cosine")
    whole = path.read_bytes()
    for offset in range(0, len(whole), max(1, len(whole) // 200)):
        damaged = bytearray(whole)
        damaged[offset] ^= 0x10
        path.write_bytes(damaged)
        for check in (nearwise.verify, nearwise.load):
            with pytest.raises(nearwise.Error) as caught:
                check(path)
            assert caught.value.code in ("corrupt", "unsupported"), offset
    path.write_bytes(whole + b"garbage")
    refuses(nearwise.Error, "", nearwise.load, path)
    path.write_bytes(whole[:-1])
    refuses(nearwise.Error, "", nearwise.load, path)


def test_a_file_may_be_replaced_while_its_result_is_in_use(tmp_path, found):
    path = tmp_path / "result.nw"
    nearwise.save(path, found, metric="cosine")
    saved = nearwise.load(path)
    nearwise.save(path, saved.neighbors, metric=saved.metric, provenance=saved.provenance)
    np.testing.assert_array_equal(saved.neighbors.ids, nearwise.load(path).neighbors.ids)


def test_save_takes_any_pair_of_matrices(tmp_path):
    ids = np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3))
    distances = np.linspace(0, 1, 6).reshape(2, 3)
    nearwise.save(tmp_path / "r.nw", (ids, distances), metric="euclidean")
    saved = nearwise.load(tmp_path / "r.nw")
    np.testing.assert_array_equal(saved.neighbors.ids, ids)
    np.testing.assert_array_equal(saved.neighbors.distances, distances.astype(np.float32))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, TypeError),
        ((np.zeros((2, 3)), np.zeros((2, 3))), ValueError),
        ((np.zeros((2, 3), int), np.zeros((2, 2))), ValueError),
        ((np.zeros((1, 2, 3), int), np.zeros((1, 2, 3))), ValueError),
        ((np.zeros((2, 3), int), np.zeros((2, 3), int)), ValueError),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, value, kind):
    refuses(kind, "neighbors:", nearwise.save, tmp_path / "r.nw", value, metric="cosine")
    refuses(kind, "neighbors:", nearwise.write_neighbors, tmp_path / "r.bin", value)
    assert os.listdir(tmp_path) == []


def test_metric_and_provenance_are_checked(tmp_path, found):
    refuses(TypeError, "metric", nearwise.save, tmp_path / "r.nw", found)  # it could not be trusted later
    refuses(ValueError, "metric: expected one of", nearwise.save, tmp_path / "r.nw", found, metric="l3")
    with pytest.raises(TypeError, match="provenance: expected strings"):
        nearwise.save(tmp_path / "r.nw", found, metric="cosine", provenance={"rows": 3})


@pytest.mark.parametrize("suffix", [".ivecs", ".ibin", ".npy", ".bin"])
def test_neighbors_in_other_formats(tmp_path, found, suffix):
    path = tmp_path / f"truth{suffix}"
    nearwise.write_neighbors(path, found)
    read = nearwise.read_neighbors(path)
    np.testing.assert_array_equal(read.ids, found.ids)
    if suffix == ".bin":
        np.testing.assert_array_equal(read.distances, found.distances)
    else:
        assert read.distances.shape == (0, 0)
