"""The file formats, written down a second time from their public descriptions, with NumPy."""
import ctypes
import struct

import numpy as np

# suffix: element type and layout. bin: u32 rows, u32 columns, rows; vecs: each row after its i32 length.
LAYOUTS = {
    ".fbin": (np.float32, "bin"),
    ".f16bin": (np.float16, "bin"),
    ".bf16bin": (np.uint16, "bin"),  # the bits
    ".u8bin": (np.uint8, "bin"),
    ".i8bin": (np.int8, "bin"),
    ".ibin": (np.int32, "bin"),
    ".fvecs": (np.float32, "vecs"),
    ".bvecs": (np.uint8, "vecs"),
    ".ivecs": (np.int32, "vecs"),
}


def write_array(path, array):
    if path.suffix == ".npy":
        np.save(path, array)
        return
    dtype, layout = LAYOUTS[path.suffix]
    assert array.dtype == dtype, (path, array.dtype)
    rows, columns = array.shape
    if layout == "bin":
        path.write_bytes(np.array([rows, columns], "<u4").tobytes() + array.tobytes())
    else:
        length = np.full((rows, 1), columns, "<i4").view(np.uint8)
        path.write_bytes(np.hstack([length, array.view(np.uint8).reshape(rows, -1)]).tobytes())


def read_array(path):
    if path.suffix == ".npy":
        return np.load(path)
    dtype, layout = LAYOUTS[path.suffix]
    data = path.read_bytes()
    if layout == "bin":
        rows, columns = np.frombuffer(data, "<u4", 2)
        return np.frombuffer(data, dtype, offset=8).reshape(rows, columns)
    columns = int(np.frombuffer(data, "<i4", 1)[0])
    rows = np.frombuffer(data, np.uint8).reshape(-1, 4 + columns * np.dtype(dtype).itemsize)
    assert (np.ascontiguousarray(rows[:, :4]).view("<i4") == columns).all()
    return np.ascontiguousarray(rows[:, 4:]).view(dtype)


def to_bf16_bits(array):
    """Nearest even, of finite numbers."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def write_vectors(path, array):
    """`array` as the element type of the suffix; values must fit."""
    if path.suffix == ".bf16bin":
        write_array(path, to_bf16_bits(array))
    elif path.suffix == ".npy":
        write_array(path, array)
    else:
        write_array(path, np.asarray(array, LAYOUTS[path.suffix][0]))


def read_vectors(path):
    array = read_array(path)
    if array.dtype.kind == "V":
        array = array.view(np.uint16)
    return from_bf16_bits(array) if array.dtype == np.uint16 else array


def write_truth_bin(path, ids, distances):
    path.write_bytes(np.array(ids.shape, "<u4").tobytes() + ids.astype("<i4").tobytes()
                     + distances.astype("<f4").tobytes())


def read_truth_bin(path):
    data = path.read_bytes()
    rows, k = (int(n) for n in np.frombuffer(data, "<u4", 2))
    ids = np.frombuffer(data, "<i4", rows * k, offset=8).reshape(rows, k)
    return ids, np.frombuffer(data, "<f4", offset=8 + ids.nbytes).reshape(rows, k)


def seal(data):
    """Makes every checksum of a container (docs/format.md) right again after its bytes, a bytearray, were changed."""
    hash_bytes = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
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
