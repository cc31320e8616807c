"""Product quantization."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import as_array, as_rows, device_for, rest_of_limit

TableMetric = Literal["sqeuclidean", "inner_product"]


class Coder:
    """What plain and optimized quantizers have in common: `_bound` is the C++ object."""

    _bound: Union[_core.ProductQuantizer, _core.OptimizedProductQuantizer]

    def encode(
        self,
        rows: Any,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.uint8]:
        """Codes of rows, uint8 [rows, code_bytes].

        With 8 bits byte p is the number of part p's codeword. With 4 bits part 2i is in the low half of byte i, and part
        2i + 1 in its high half. The codeword is the one that `knn` with k = 1 finds in the codebook.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "encode") as report:
            return self._bound.encode(
                given.array,
                given.type,
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "encode", given),
                _options.word(isa, "isa"),
                report,
            )

    def decode(
        self,
        codes: Any,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.float32]:
        """The rows that codes stand for, float32 [codes, dim]."""
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_array(codes, "codes")
        if given.dtype != "uint8":
            raise ValueError(f"codes: expected dtype uint8, given {given.dtype}")
        rows = as_rows(given, "codes", limit)
        with reporting(progress, "decode") as report:
            return self._bound.decode(
                rows.array,
                device_for(device, rows.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "decode", rows),
                _options.word(isa, "isa"),
                report,
            )

    def error(
        self,
        rows: Any,
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> float:
        """The mean over all rows of the squared distance from what their code stands for."""
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "error") as report:
            return self._bound.error(
                given.array,
                given.type,
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "error", given),
                _options.word(isa, "isa"),
                report,
            )

    def tables(
        self,
        queries: Any,
        metric: TableMetric = "sqeuclidean",
        *,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.float32]:
        """Distances of queries from all codewords, float32 [queries, parts, centroids].

        Entry [q, p, c] is the squared distance ("sqeuclidean") or the product ("inner_product") of part p of query q and
        codeword c of that part. The entries that a code names add up to the distance from the decoded row.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(queries, "queries", limit)
        with reporting(progress, "tables") as report:
            entries = self._bound.tables(
                given.array,
                given.type,
                _options.word(metric, "metric"),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "tables", given),
                _options.word(isa, "isa"),
                report,
            )
        return entries.reshape(len(entries), self.parts, self.centroids)

    # Of the plain quantizer inside.
    parts: Any
    centroids: Any


class ProductQuantizer(Coder):
    """Rows cut into parts, each kept as the number of its nearest codeword: 128 elements in 16 bytes.

    Made by `ProductQuantizer.train` or `ProductQuantizer.from_codebooks`, and not changed any more. It can be pickled, and
    threads may share it.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(1).standard_normal((1000, 8), dtype=np.float32)
    >>> quantizer = nearwise.ProductQuantizer.train(rows, parts=4, bits=4)
    >>> quantizer
    <nearwise.ProductQuantizer: 8 elements in 4 parts of 4 bits>
    >>> codes = quantizer.encode(rows)
    >>> codes.shape, codes.dtype
    ((1000, 2), dtype('uint8'))
    >>> decoded = quantizer.decode(codes)
    >>> bool(np.isclose(((rows - decoded) ** 2).sum(axis=1).mean(), quantizer.error(rows)))
    True
    >>> quantizer.tables(rows[:5]).shape
    (5, 4, 16)
    """

    _bound: _core.ProductQuantizer

    def __init__(self) -> None:
        raise TypeError("ProductQuantizer: made by ProductQuantizer.train or ProductQuantizer.from_codebooks")

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        parts: int = 0,
        bits: int = 8,
        iterations: int = 25,
        rows_per_centroid: int = 256,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> ProductQuantizer:
        """k-means on every part of the rows.

        The same rows, options and seed give the same bytes with any number of threads and any memory limit, on every
        instruction set.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`; at least as many as there are codewords of a part.
        parts : int
            1 to dim; they differ in length by at most one, the longer ones come first. 0: as many as make parts of at
            most 4 elements.
        bits : {4, 8}
            Of a part's code: 16 or 256 codewords per part.
        iterations : int
            Of k-means, at most.
        rows_per_centroid : int
            Rows to train on, per codeword of a part: of more rows so many are drawn, by the seed. 0: all.
        seed : int
            Of all random numbers.
        device, threads, memory_limit, isa, progress
            As in `nearwise.knn`; progress counts pairs of rows and codewords.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "train") as report:
            bound = _core.ProductQuantizer.train(
                given.array,
                given.type,
                *training_arguments(parts, bits, iterations, rows_per_centroid),
                _options.seed(seed),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "ProductQuantizer.train", given),
                _options.word(isa, "isa"),
                report,
            )
        return cls._of(bound)

    @classmethod
    def from_codebooks(cls, codebooks: Any) -> ProductQuantizer:
        """A quantizer of given codewords: a sequence of arrays [16 or 256, elements of the part], as `codebooks` has them.

        >>> import numpy as np
        >>> from nearwise import ProductQuantizer
        >>> grid = np.arange(16, dtype=np.float32)[:, None]
        >>> ProductQuantizer.from_codebooks([grid, 10 * grid]).encode(np.array([[3.2, 38]]))
        array([[67]], dtype=uint8)
        """
        words = [np.asarray(book, np.float32) for book in codebooks]
        if not words:
            raise ValueError("codebooks: expected at least one")
        if any(book.ndim != 2 or len(book) != len(words[0]) for book in words) or len(words[0]) not in (16, 256):
            raise ValueError(
                "codebooks: expected 2-D arrays of 16 rows, or all of 256, given shapes "
                + ", ".join(str(book.shape) for book in words)
            )
        lengths = [book.shape[1] for book in words]
        dim, parts = sum(lengths), len(lengths)
        expected = [dim // parts + (part < dim % parts) for part in range(parts)]
        if lengths != expected:
            raise ValueError(f"codebooks: {dim} elements in {parts} parts have lengths {expected}, given {lengths}")
        flat = np.concatenate([book.reshape(-1) for book in words])
        return cls._of(_core.ProductQuantizer.from_codebooks(dim, parts, 4 if len(words[0]) == 16 else 8, flat))

    @classmethod
    def _of(cls, bound: _core.ProductQuantizer) -> ProductQuantizer:
        made = object.__new__(cls)
        made._bound = bound
        return made

    def __reduce__(self) -> Any:
        return ProductQuantizer.from_codebooks, (self.codebooks,)

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._bound.dim

    @property
    def parts(self) -> int:
        return self._bound.parts

    @property
    def bits(self) -> int:
        """Of a part's code: 4 or 8."""
        return self._bound.bits

    @property
    def centroids(self) -> int:
        """Codewords of a part."""
        return self._bound.centroids

    @property
    def code_bytes(self) -> int:
        """Bytes of a row's code."""
        return self._bound.code_bytes

    @property
    def codebooks(self) -> list[npt.NDArray[np.float32]]:
        """Of every part, its codewords, float32 [centroids, elements of the part]: a copy."""
        flat = self._bound.codebooks()[0]
        begins = [self._bound.part_begin(part) * self.centroids for part in range(self.parts + 1)]
        return [flat[begin:end].reshape(self.centroids, -1) for begin, end in zip(begins, begins[1:])]

    def __repr__(self) -> str:
        return f"<nearwise.ProductQuantizer: {self.dim} elements in {self.parts} parts of {self.bits} bits>"


def training_arguments(parts: int, bits: int, iterations: int, rows_per_centroid: int) -> tuple[int, int, int, int]:
    """Checked as far as Python types go; the rest is C++'s to say."""
    return (
        _options.integer(parts, "parts", 0, 2**63 - 1),
        _options.integer(bits, "bits", 4, 8),
        _options.count(iterations, "iterations"),
        _options.integer(rows_per_centroid, "rows_per_centroid", 0, 2**63 - 1),
    )


# Users see it as nearwise.ProductQuantizer.
ProductQuantizer.__module__ = "nearwise"
