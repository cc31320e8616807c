"""Arrays of every library, where their vectors lie and where nearwise reads them: equal addresses are no copy.

    python zero_copy.py --rows 20000

Prints one JSON line for each kind of array: its address, that of the vectors as the library takes them, and bytes copied on the way. Kinds
whose library is not installed have `missing` instead.
"""

import argparse
import importlib.util
import json
import tempfile
from pathlib import Path

import nearwise
import numpy as np
from nearwise._rows import as_rows

DIM = 32


def numpy_array(rows, folder):
    return rows, rows.ctypes.data


def every_second_row(rows, folder):
    return rows[::2], rows.ctypes.data


def mapped_npy(rows, folder):
    np.save(folder / "rows.npy", rows)
    mapped = np.load(folder / "rows.npy", mmap_mode="r")
    return mapped, mapped.ctypes.data


def mapped_by_nearwise(rows, folder):
    nearwise.write_vectors(folder / "rows.fbin", rows)
    mapped = nearwise.read_vectors(folder / "rows.fbin")
    return mapped, mapped.ctypes.data


def arrow_column(rows, folder):
    import pyarrow

    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(rows.ravel()), DIM)
    return lists, lists.values.buffers()[1].address


def arrow_column_in_pandas(rows, folder):
    import pandas

    lists, address = arrow_column(rows, folder)
    return pandas.Series(lists, dtype=pandas.ArrowDtype(lists.type)), address


def torch_tensor(rows, folder):
    import torch

    tensor = torch.from_numpy(rows)
    return tensor, tensor.data_ptr()


def jax_array(rows, folder):
    import jax

    array = jax.device_put(rows)
    return array, array.unsafe_buffer_pointer()


# Modules that each needs.
KINDS = {
    numpy_array: (),
    every_second_row: (),
    mapped_npy: (),
    mapped_by_nearwise: (),
    arrow_column: ("pyarrow",),
    arrow_column_in_pandas: ("pyarrow", "pandas"),
    torch_tensor: ("torch",),
    jax_array: ("jax",),
}


def report(make, rows):
    name = make.__name__.replace("_", " ")
    missing = [module for module in KINDS[make] if importlib.util.find_spec(module) is None]
    if missing:
        return {"kind": name, "missing": missing}
    with tempfile.TemporaryDirectory() as folder:
        values, address = make(rows, Path(folder))
        taken = as_rows(values, "rows")
        found = nearwise.knn(values, values, 1)
        assert (found.distances == 0).all()
        return {"kind": name, "address": address, "taken_address": taken.array.__array_interface__["data"][0],
                "copied_bytes": taken.copied_bytes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    rows = np.random.default_rng(0).standard_normal((parser.parse_args().rows, DIM), dtype=np.float32)
    for make in KINDS:
        print(json.dumps(report(make, rows)), flush=True)


if __name__ == "__main__":
    main()
