"""Vectors in Parquet files: read into a vector file, and results joined back.

Needs pyarrow, which nothing else here does: ``pip install nearwise[arrow]``.

    nearwise.arrow.to_vectors("embeddings/", "embedding", "vectors.fbin")
    found = nearwise.dedup(nearwise.read_vectors("vectors.fbin"), similarity=0.95)
    nearwise.arrow.take_rows("embeddings/", found.kept, "clean/")

A source is a Parquet file, a folder of them (with its subfolders, in the order of their names), or a list of files.
Rows are counted through all files. Files are read one row group at a time.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nearwise._arrow_rows import vectors_of
from nearwise._context import operation
from nearwise._vector_file import write_vectors

__all__ = ["VectorShape", "add_columns", "take_rows", "to_vectors"]

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

# Vectors are converted and written in pieces, so that a large row group is not copied whole.
_ROWS_AT_ONCE = 1 << 16


class VectorShape(NamedTuple):
    """Of the vectors that `to_vectors` wrote."""

    rows: int
    dim: int


@operation
def to_vectors(source: Source, column: str, output: str | os.PathLike[str]) -> VectorShape:
    """Writes the vectors of a column to a file of vectors, which may be larger than memory.

    Parameters
    ----------
    source : path, or sequence of paths
        Parquet files.
    column : str
        Of fixed-size lists, lists of one length, or 1-D tensors, of float16, float32, float64, uint8 or int8. float64
        is rounded to the nearest float32. A null is refused by its row.
    output : path
        The suffix names the format, which must hold the element type: .npy any, .fbin and .fvecs float32, .f16bin
        float16, .u8bin and .bvecs uint8, .i8bin int8.
    """
    shape = VectorShape(0, 0)

    def batches() -> Iterator[npt.NDArray[Any]]:
        nonlocal shape
        for path in _files(source):
            with pq.ParquetFile(path) as file:
                _require_columns(file, [column], path)
                for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE, columns=[column]):
                    vectors = vectors_of(batch.column(0), f"column '{column}'", shape.rows)
                    if shape.rows and vectors.shape[1] != shape.dim:
                        raise ValueError(
                            f"column '{column}': row {shape.rows} of '{path}' has {vectors.shape[1]} elements, "
                            f"rows before it have {shape.dim}"
                        )
                    shape = VectorShape(shape.rows + len(vectors), vectors.shape[1])
                    yield vectors

    write_vectors(output, batches())
    return shape


@operation
def take_rows(source: Source, rows: npt.ArrayLike, output: str | os.PathLike[str]) -> None:
    """Writes the Parquet files with some of their rows, such as the `kept` of `dedup`.

    Parameters
    ----------
    source
        As in `to_vectors`.
    rows : array of int
        Row numbers through all files, ascending. None of them leaves files of 0 rows.
    output : path
        A file for one file, else a folder: files keep their names and subfolders. Each appears when it is complete.
    """
    numbers = np.asarray(rows)
    if numbers.shape == (0,):
        numbers = numbers.astype(np.int64)  # an empty list becomes floats in numpy
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise ValueError(f"rows: expected a 1-D array of integers, got {numbers.ndim}-D of dtype {numbers.dtype}")
    if (np.diff(numbers.astype(np.int64)) <= 0).any():
        raise ValueError("rows: expected ascending row numbers, each once")
    files = _files(source)
    total = sum(pq.read_metadata(path).num_rows for path in files)
    if len(numbers) and not 0 <= numbers[0] <= numbers[-1] < total:
        raise ValueError(f"rows: expected numbers of the {total} rows, got {numbers[0]} to {numbers[-1]}")

    def chosen(table: Any, first: int) -> Any:
        begin, end = np.searchsorted(numbers, [first, first + len(table)])
        return table.take(pa.array(numbers[begin:end] - first))

    _rewrite(files, source, output, chosen, lambda schema: schema)


@operation
def add_columns(
    source: Source, columns: Mapping[str, npt.ArrayLike], output: str | os.PathLike[str]
) -> None:
    """Writes the Parquet files with further columns, such as whether each row is kept.

    Parameters
    ----------
    source, output
        As in `take_rows`.
    columns : mapping of names to arrays
        One value for each row of all files.
    """
    files = _files(source)
    total = sum(pq.read_metadata(path).num_rows for path in files)
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    for name, values in arrays.items():
        if values.shape != (total,):
            raise ValueError(
                f"columns: '{name}': a value for each of the {total} rows expected, got shape {values.shape}"
            )
    for path in files:
        for name in set(pq.read_schema(path).names) & set(arrays):
            raise ValueError(f"columns: '{path}' has a column '{name}' already")

    def extended(table: Any, first: int) -> Any:
        for name, values in arrays.items():
            table = table.append_column(name, pa.array(values[first : first + len(table)]))
        return table

    def schema_with(schema: Any) -> Any:
        for name, values in arrays.items():
            schema = schema.append(pa.field(name, pa.array(values[:0]).type))
        return schema

    _rewrite(files, source, output, extended, schema_with)


def _files(source: Source) -> list[Path]:
    """In the order in which rows are counted."""
    if not isinstance(source, (str, os.PathLike)):
        files = [Path(path) for path in source]
    elif Path(source).is_dir():
        files = sorted(Path(source).rglob("*.parquet"))
    else:
        files = [Path(source)]
    if not files:
        raise ValueError(f"source: '{source}' has no Parquet files (*.parquet)")
    return files


def _require_columns(file: Any, names: list[str], path: Path) -> None:
    missing = [name for name in names if name not in file.schema_arrow.names]
    if missing:
        raise ValueError(f"'{path}' has no column '{missing[0]}'; it has {', '.join(file.schema_arrow.names)}")


def _rewrite(files: list[Path], source: Source, output: str | os.PathLike[str], change: Any, schema_of: Any) -> None:
    """Writes each file with its row groups as change(table, first row) returns them."""
    first = 0
    for path, target in zip(files, _targets(files, source, Path(output)), strict=True):
        with (
            pq.ParquetFile(path) as file,
            _replaced(target) as temporary,
            pq.ParquetWriter(temporary, schema_of(file.schema_arrow), compression=_compression(file)) as writer,
        ):
            for number in range(file.num_row_groups):
                table = file.read_row_group(number)
                writer.write_table(change(table, first))
                first += len(table)


def _targets(files: list[Path], source: Source, output: Path) -> list[Path]:
    if isinstance(source, (str, os.PathLike)) and not Path(source).is_dir():
        targets = [output]
    else:
        root = Path(source) if isinstance(source, (str, os.PathLike)) else None
        targets = [output / (path.relative_to(root) if root else path.name) for path in files]
    if len(set(targets)) < len(targets):
        raise ValueError("source: files of different names expected, as all go to one folder")
    for path, target in zip(files, targets, strict=True):
        if target.exists() and target.samefile(path):
            raise ValueError(f"output: '{target}' is an input")
    return targets


def _compression(file: Any) -> str:
    """That of the file's first column."""
    if file.num_row_groups == 0 or file.metadata.num_columns == 0:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression).lower()
    return "none" if name == "uncompressed" else name


@contextlib.contextmanager
def _replaced(target: Path) -> Iterator[Path]:
    """A temporary file, which becomes `target` when it is complete and on disk, or goes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
