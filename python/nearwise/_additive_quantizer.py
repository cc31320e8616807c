"""Additive quantization."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Union

import numpy as np
import numpy.typing as npt

from nearwise import _core, _options
from nearwise._neighbors import Neighbors, adopt
from nearwise._product_quantizer import TableMetric
from nearwise._progress import ProgressArgument, reporting
from nearwise._rows import Rows, as_array, as_rows, device_for, rest_of_limit
from nearwise._vector_file import Path

_LARGEST = 2**63 - 1


class AdditiveQuantizer:
    """Rows kept as the sum of one codeword of each codebook, all of them as long as a row: 128 elements in 8 bytes.

    Encoding is a search: some fifty microseconds per row and thread with 7 or 8 codebooks of 128 elements. A code has a byte per codebook and one that tells the length of the sum.

    Made by `AdditiveQuantizer.train` or `AdditiveQuantizer.from_codebooks`, and not changed any more. It can be pickled, and
    threads may share it.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(1).standard_normal((1000, 8), dtype=np.float32)
    >>> quantizer = nearwise.AdditiveQuantizer.train(rows, codebooks=3, rounds=4)
    >>> quantizer
    <nearwise.AdditiveQuantizer: 8 elements in 3 codebooks>
    >>> codes = quantizer.encode(rows)
    >>> codes.shape, codes.dtype
    ((1000, 4), dtype('uint8'))
    >>> ids, distances = quantizer.search(rows[:5], codes, 1)
    >>> ids[:, 0]
    array([0, 1, 2, 3, 4])
    """

    _bound: _core.AdditiveQuantizer

    def __init__(self) -> None:
        raise TypeError("AdditiveQuantizer: made by AdditiveQuantizer.train or AdditiveQuantizer.from_codebooks")

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        codebooks: int = 7,
        rounds: int = 25,
        iterations: int = 8,
        rows_per_centroid: int = 256,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> AdditiveQuantizer:
        """Codewords by least squares and codes by local search in turn, from those of a residual quantizer on.

        The same rows, options and seed give the same bytes with any number of threads and any memory limit, on every
        machine.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`; at least 256.
        codebooks : int
            1 to 32, each of 256 codewords. Codes have one byte more: 7 make codes of 8 bytes, 15 of 16.
        rounds : int
            Of new codewords and new codes. 0: those of a residual quantizer.
        iterations : int
            Of the search for codes in every round.
        rows_per_centroid : int
            Rows to train on, per codeword of a codebook: of more rows so many are drawn, by the seed. 0: all.
        seed : int
            Of all random numbers.
        device, threads, memory_limit, isa, progress
            As in `nearwise.knn`; progress counts rows, once per codebook and round.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "train") as report:
            bound = _core.AdditiveQuantizer.train(
                given.array,
                given.type,
                _options.count(codebooks, "codebooks"),
                _options.integer(rounds, "rounds", 0, _LARGEST),
                _options.count(iterations, "iterations"),
                _options.integer(rows_per_centroid, "rows_per_centroid", 0, _LARGEST),
                _options.seed(seed),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "AdditiveQuantizer.train", given),
                _options.word(isa, "isa"),
                report,
            )
        return cls._of(bound)

    @classmethod
    def from_codebooks(cls, codebooks: Any, norms: Any) -> AdditiveQuantizer:
        """A quantizer of given codewords, [codebooks, 256, dim], and of 256 rising squared lengths, as `norms` has them."""
        words = np.ascontiguousarray(codebooks, np.float32)
        if words.ndim != 3 or words.shape[1] != 256:
            raise ValueError(f"codebooks: expected an array [codebooks, 256, dim], given shape {words.shape}")
        lengths = np.ascontiguousarray(norms, np.float32).reshape(-1)
        return cls._of(_core.AdditiveQuantizer.from_codebooks(words.shape[2], words.reshape(-1), lengths))

    @classmethod
    def _of(cls, bound: _core.AdditiveQuantizer) -> AdditiveQuantizer:
        made = object.__new__(cls)
        made._bound = bound
        return made

    def __reduce__(self) -> Any:
        return AdditiveQuantizer.from_codebooks, (self.codebooks, self.norms)

    @property
    def dim(self) -> int:
        """Elements of a row."""
        return self._bound.dim

    @property
    def code_bytes(self) -> int:
        """Bytes of a row's code: one per codebook, and one for the length."""
        return self._bound.code_bytes

    @property
    def codebooks(self) -> npt.NDArray[np.float32]:
        """All codewords, float32 [codebooks, 256, dim]: a copy."""
        return self._bound.words().reshape(self._bound.codebooks, 256, self._bound.dim)

    @property
    def norms(self) -> npt.NDArray[np.float32]:
        """The squared lengths that the last byte of a code tells apart, float32 [256], rising: a copy."""
        return self._bound.norms().reshape(-1)

    def encode(
        self,
        rows: Any,
        *,
        iterations: int = 16,
        passes: int = 4,
        perturbed: int = 4,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> npt.NDArray[np.uint8]:
        """Codes of rows, uint8 [rows, code_bytes]: a codeword of every codebook, and the length of their sum.

        The code of a row does not depend on the rows beside it.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`.
        iterations : int
            Of the search: more cost time and never raise a row's error.
        passes : int
            Over all codes in every iteration, at most.
        perturbed : int
            Codes that an iteration changes at random, or all where there are fewer.
        seed : int
            Of all random numbers.
        device, threads, memory_limit, isa, progress
            As in `nearwise.knn`; progress counts rows.
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "encode") as report:
            return self._bound.encode(
                given.array,
                given.type,
                *_search_arguments(iterations, passes, perturbed, seed),
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
        given = _as_codes(codes, limit)
        with reporting(progress, "decode") as report:
            return self._bound.decode(
                given.array,
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "decode", given),
                _options.word(isa, "isa"),
                report,
            )

    def search(
        self,
        queries: Any,
        codes: Any,
        k: int,
        *,
        metric: TableMetric = "sqeuclidean",
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> Neighbors:
        """The k best of the codes for every query, all of them looked at.

        Squared distances from what codes stand for are off by as much as the length that a code tells; products are exact up
        to rounding. Ties go to the lower number.

        Parameters
        ----------
        queries : array [queries, dim]
            In host memory, otherwise as in `nearwise.knn`.
        codes : uint8 array [codes, code_bytes]
            What `encode` returned.
        k : int
            At least 1. With fewer codes the answer ends in id -1 at distance +inf (-inf for inner_product).
        metric : {"sqeuclidean", "inner_product"}
        device, threads, memory_limit, isa, progress
            As in `nearwise.knn`; progress counts pairs of queries and codes.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], the numbers of codes, and distances, float32 [queries, k].
        """
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(queries, "queries", limit)
        kept = _as_codes(codes, limit)
        with reporting(progress, "search") as report:
            found = self._bound.search(
                given.array,
                given.type,
                kept.array,
                _options.neighbor_count(k),
                _options.word(metric, "metric"),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "search", given, kept),
                _options.word(isa, "isa"),
                report,
            )
        return adopt(found)

    def error(
        self,
        rows: Any,
        *,
        iterations: int = 16,
        passes: int = 4,
        perturbed: int = 4,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> float:
        """The mean over all rows of the squared distance from what their code stands for, encoded as by `encode`."""
        limit = _options.byte_count(memory_limit, "memory_limit")
        given = as_rows(rows, "rows", limit)
        with reporting(progress, "error") as report:
            return self._bound.error(
                given.array,
                given.type,
                *_search_arguments(iterations, passes, perturbed, seed),
                device_for(device, given.array),
                _options.thread_count(threads),
                rest_of_limit(limit, "error", given),
                _options.word(isa, "isa"),
                report,
            )

    def save(self, path: Path, *, provenance: Optional[Mapping[str, str]] = None) -> None:
        """Saves the quantizer in a .nw file, atomically; `nearwise.load_additive_quantizer` brings it back."""
        texts = {} if provenance is None else _options.texts(provenance, "provenance")
        self._bound.save(os.fspath(path), texts)

    def __repr__(self) -> str:
        return f"<nearwise.AdditiveQuantizer: {self.dim} elements in {self._bound.codebooks} codebooks>"


def load_additive_quantizer(path: Path) -> AdditiveQuantizer:
    """Loads what `AdditiveQuantizer.save` wrote. Checksums are verified: damage is an `Error` with code corrupt."""
    return AdditiveQuantizer._of(_core.load_additive_quantizer(os.fspath(path)))


def _search_arguments(iterations: int, passes: int, perturbed: int, seed: int) -> tuple[int, int, int, int]:
    """Checked as far as Python types go; the rest is C++'s to say."""
    return (
        _options.count(iterations, "iterations"),
        _options.count(passes, "passes"),
        _options.integer(perturbed, "perturbed", 0, _LARGEST),
        _options.seed(seed),
    )


def _as_codes(codes: Any, limit: int) -> Rows:
    given = as_array(codes, "codes")
    if given.dtype != "uint8":
        raise ValueError(f"codes: expected dtype uint8, given {given.dtype}")
    return as_rows(given, "codes", limit)


# Users see it as nearwise.AdditiveQuantizer.
AdditiveQuantizer.__module__ = "nearwise"
