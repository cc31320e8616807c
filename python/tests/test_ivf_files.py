"""Inverted files that are saved, mapped and changed."""

import ctypes
import struct

import nearwise
import numpy as np
import pytest
from checks import damage, refuses
from samples import assert_same


@pytest.mark.parametrize("kind", ["flat", "product"])
def test_save_and_load(kind, flat, product, rows, tmp_path):
    index = {"flat": flat, "product": product}[kind]
    index.probes = 5
    index.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw", threads=2)
    assert type(loaded) is type(index) and (loaded.probes, len(loaded), loaded.lists) == (5, 2000, 16)
    np.testing.assert_array_equal(loaded.centroids, index.centroids)
    assert_same(loaded.search(rows[:30], 9), index.search(rows[:30], 9))
    # It grows and shrinks as the one that was saved, the mapped file stays.
    for changed in (loaded, index):
        changed.remove(range(0, 2000, 3))
        changed.add(rows[:100] + np.float32(1))
    assert_same(loaded.search(rows[:30], 9), index.search(rows[:30], 9))
    index.save(tmp_path / "again.nw")
    loaded.save(str(tmp_path / "third.nw"))
    assert (tmp_path / "again.nw").read_bytes() == (tmp_path / "third.nw").read_bytes()
    assert len(nearwise.load(tmp_path / "index.nw")) == 2000


def test_measurements_are_saved(rows, tmp_path):
    index = nearwise.IvfPq.build(rows, lists=10, code_bytes=4)
    index.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw")
    assert loaded.calibration == index.calibration and loaded.candidates == index.candidates >= 25
    metadata = nearwise.inspect(tmp_path / "index.nw").metadata
    assert any(key.endswith("recall") or ".recall." in key for key in metadata)


def test_where_it_comes_from_is_saved(flat, rows, tmp_path):
    assert flat.provenance == {
        "version": f"nearwise {nearwise.__version__}",
        "seed": "0",
        "training": "metric sqeuclidean, lists 16, iterations 10, training_rows 2000, encoding flat on 2000 x 24 f32",
    }
    flat.provenance = {**flat.provenance, "base": "made up"}
    flat.save(tmp_path / "index.nw")
    assert nearwise.load(tmp_path / "index.nw").provenance == flat.provenance == flat.empty_copy().provenance
    with pytest.raises(TypeError, match="provenance: expected strings, got 'rows': 3"):
        flat.provenance = {"rows": 3}


def test_an_index_saved_over_its_own_file(flat, rows, tmp_path):
    flat.save(tmp_path / "index.nw")
    loaded = nearwise.load(tmp_path / "index.nw")
    loaded.add(rows[:5])
    loaded.save(tmp_path / "index.nw")
    assert_same(loaded.search(rows[:9], 3), nearwise.load(tmp_path / "index.nw").search(rows[:9], 3))
    assert len(nearwise.load(tmp_path / "index.nw")) == 2005


def test_files_that_are_no_index(flat, rows, tmp_path):
    nearwise.save(tmp_path / "result.nw", nearwise.knn(rows[:3], rows, 2), metric="sqeuclidean")
    with pytest.raises(TypeError, match="result.nw: expected an Ivf, the file holds a SavedNeighbors"):
        nearwise.load(tmp_path / "result.nw", nearwise.Ivf)
    refuses("not_found", "", nearwise.load, tmp_path / "missing.nw")
    path = tmp_path / "index.nw"
    flat.save(path)
    assert nearwise.inspect(path).kind == "ivf" and nearwise.verify(path).kind == "ivf"
    damage(path)
    for read in (nearwise.load, nearwise.verify):
        refuses("corrupt", "", read, path)


def seal(data):
    """Makes every checksum of a container right again (docs/format.md)."""
    try:
        hash_bytes = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    except OSError:
        pytest.skip("needs libxxhash")
    hash_bytes.restype = ctypes.c_uint64
    hash_bytes.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

    def checksum(begin, end):
        return struct.pack("<Q", hash_bytes(bytes(data[begin:end]), end - begin))

    sections = struct.unpack_from("<I", data, 20)[0]
    table, table_bytes = struct.unpack_from("<QQ", data, 64)
    slot = table + 64 * sections
    for entry in range(table, table + 64 * sections, 64):
        offset, rows, columns, _, element_bytes = struct.unpack_from("<QQQHH", data, entry + 32)
        end = offset + rows * columns * element_bytes
        for begin in range(offset, end, 1 << 20):
            data[slot : slot + 8] = checksum(begin, min(end, begin + (1 << 20)))
            slot += 8
    data[80:88] = checksum(table, table + table_bytes)
    data[120:128] = checksum(0, 120)


def test_damage_that_checksums_cannot_tell(flat, tmp_path):
    path = tmp_path / "index.nw"
    flat.save(path)
    data = bytearray(path.read_bytes())
    whole = bytes(data)
    seal(data)
    assert data == whole
    place = data.index(b'"probes":2')
    data[place : place + 10] = b'"probes":0'
    seal(data)
    path.write_bytes(data)
    for read in (nearwise.load, nearwise.verify):
        refuses("corrupt", "probes of 1 to 16 expected, 0 found", read, path)


def test_verify_loads_pairs(tmp_path):
    """Checksums are right, and a vector is its own duplicate."""
    rows = np.repeat(np.arange(12, dtype=np.float32), 2)[:, None] * np.ones(4, np.float32)
    nearwise.write_vectors(tmp_path / "rows.fbin", rows)
    path = tmp_path / "pairs.nw"
    nearwise.threshold_join(tmp_path / "rows.fbin", radius=0.1, work=tmp_path / "work", output=path, memory_limit="64MiB")
    assert nearwise.verify(path).kind == "pairs"
    data = bytearray(path.read_bytes())
    (ids,) = (section for section in nearwise.inspect(path).sections if section.name == "ids")
    width = ids.bytes // 12
    data[ids.offset : ids.offset + width] = bytes(width)
    seal(data)
    path.write_bytes(data)
    for read in (nearwise.load, nearwise.verify):
        refuses("corrupt", "ids", read, path)


def test_kept_vectors_stay_finite(tmp_path):
    rows = np.random.default_rng(7).standard_normal((400, 8)).astype(np.float32)
    index = nearwise.IvfPq.build(rows, lists=4, code_bytes=4, bits=4, vectors="u8", target_recall=None)
    path = tmp_path / "index.nw"
    index.save(path)
    data = bytearray(path.read_bytes())
    place = data.index(b'"step":') + 7
    end = min(data.index(mark, place) for mark in (b",", b"}") if mark in data[place:])
    data[place:end] = b"1e38".ljust(end - place)
    seal(data)
    path.write_bytes(data)
    refuses("corrupt", "step", nearwise.load, path)
