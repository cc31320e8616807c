"""Reads files of big-ann-benchmarks with the standard library, and compares results with ground truth."""
import array
import mmap
import struct
import sys
from pathlib import Path


def read_neighbors(path):
    """(queries, k, ids, distances) of a .bin file: ids and distances as flat arrays of i32 and f32."""
    content = Path(path).read_bytes()
    queries, k = struct.unpack_from("<II", content)
    count = queries * k
    if sys.byteorder != "little" or len(content) != 8 + 8 * count:
        raise ValueError(f"{path}: not {queries} x {k} neighbours")
    ids, distances = array.array("i"), array.array("f")
    ids.frombytes(content[8:8 + 4 * count])
    distances.frombytes(content[8 + 4 * count:])
    return queries, k, ids, distances


class ByteVectors:
    """Rows of a .u8bin file, mapped."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.rows, self.dim = struct.unpack_from("<II", self._bytes)

    def __getitem__(self, row):
        start = 8 + row * self.dim
        return self._bytes[start:start + self.dim]


def first_rows(base, count, folder):
    """A file with the first `count` rows of a .u8bin or .fbin file, or all of them; made once in `folder`."""
    path = Path(folder) / f"{count}{base.suffix}"
    if not path.exists():
        with open(base, "rb") as source, open(path, "wb") as target:
            rows, dim = struct.unpack("<II", source.read(8))
            target.write(struct.pack("<II", min(count, rows), dim))
            left = min(count, rows) * dim * (4 if base.suffix == ".fbin" else 1)
            while left:
                left -= target.write(source.read(min(left, 1 << 24)))
    return path


def squared_distance(left, right):
    return sum((a - b) * (a - b) for a, b in zip(left, right))


def compare(found, truth, base, queries):
    """The differences between a result and the ground truth of byte vectors under squared Euclidean distance.

    Such distances are integers below 2^24, exact in f32, so they are compared for equality. Ids may differ only
    where distances are equal; then the tie rule decides: lower ids first, and at the last rank the lowest ids of all
    that tie.
    """
    if found[:2] != truth[:2]:
        return {"shape": f"{found[:2]}, ground truth has {truth[:2]}"}
    rows, k, found_ids, found_distances = found
    _, _, true_ids, true_distances = truth
    faults = {"distance": 0, "order": 0, "id": 0}
    tied_ids = 0
    for query in range(rows):
        place = slice(query * k, (query + 1) * k)
        ids, distances = found_ids[place], found_distances[place]
        faults["distance"] += distances != true_distances[place]
        pairs = list(zip(distances, ids))
        faults["order"] += any(left >= right for left, right in zip(pairs, pairs[1:]))
        other_ids = set(ids) - set(true_ids[place])
        tied_ids += len(other_ids)
        # An id missing from the ground truth is right only if it ties at the last rank and is lower than the
        # id it replaces.
        last = distances[-1]
        replaced = sorted(set(true_ids[place]) - set(ids))
        for rank, identity in enumerate(sorted(other_ids)):
            right = dict(zip(ids, distances))[identity] == last and identity < replaced[rank]
            faults["id"] += not (right and squared_distance(base[identity], queries[query]) == last)
    return {"queries": rows, "k": k, "faults": faults, "ids_that_differ_in_ties": tied_ids}
