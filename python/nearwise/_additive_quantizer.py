"""Additive quantization."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, CallSettings, Context, SeededCallSettings, SeededSettings, operation
from nearwise._neighbors import Neighbors, adopt
from nearwise._quantizer import Quantizer, TableMetricArgument, as_codes


class AdditiveQuantizer(Quantizer):
    """Vectors encoded as a sum of codewords, one of each codebook, all of full length (LSQ): 128 elements in 8 bytes.

    Encoding is a search: about 50 microseconds per vector and thread with 7 or 8 codebooks of 128 elements. A
    code has one byte per codebook, and one for the norm of the sum.

    Made by `train`, `from_codebooks` or `nearwise.load`. It can be copied and pickled.

    Examples
    --------
    >>> import numpy as np, nearwise
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

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "AdditiveQuantizer: made by AdditiveQuantizer.train(rows), AdditiveQuantizer.from_codebooks "
            "or nearwise.load"
        )

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        codebooks: int | None = 7,
        rounds: int | None = 25,
        iterations: int | None = 8,
        training_rows: int | None = None,
        **settings: Unpack[SeededSettings],
    ) -> AdditiveQuantizer:
        """Trains codewords by least squares and codes by local search in turn, starting from a residual quantizer.

        The same vectors, options and seed give the same bytes with any number of threads and any memory limit, on every
        instruction set.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`; at least 256.
        codebooks : int
            1 to 32, each of 256 codewords. A code has one byte more: 7 codebooks make codes of 8 bytes, 15 of 16.
        rounds : int
            Updates of the codewords and the codes. 0: those of the residual quantizer.
        iterations : int
            Of the search for codes in every round.
        training_rows : int, optional
            Vectors to train on, drawn by the seed if there are more. Default: 256 per codeword of a codebook.
        context, seed, device, threads, memory_limit, isa, progress
            See `nearwise.Context`. The quantizer remembers them.
        """
        call = Call("AdditiveQuantizer.train", settings)
        bound = call.run(
            _core.AdditiveQuantizer.train,
            rows=rows,
            codebooks=codebooks,
            rounds=rounds,
            iterations=iterations,
            training_rows=training_rows,
        )
        return cls._of(bound, call.context)

    @classmethod
    @operation
    def from_codebooks(cls, codebooks: Any, norms: Any, *, context: Context | None = None) -> AdditiveQuantizer:
        """A quantizer of given codewords, [codebooks, 256, dim], and 256 ascending squared norms, as `norms` has."""
        words = np.ascontiguousarray(codebooks, np.float32)
        if words.ndim != 3 or words.shape[1] != 256:
            raise ValueError(f"codebooks: expected an array [codebooks, 256, dim], got shape {words.shape}")
        bound = _core.AdditiveQuantizer.from_codebooks(
            dim=words.shape[2], codebooks=words.reshape(-1), norms=np.ascontiguousarray(norms, np.float32).reshape(-1)
        )
        return cls._of(bound, context or Context())

    @property
    def codebooks(self) -> npt.NDArray[np.float32]:
        """All codewords, float32 [codebooks, 256, dim]: a copy."""
        return self._bound.words().reshape(self._bound.codebooks, 256, self._bound.dim)

    @property
    def norms(self) -> npt.NDArray[np.float32]:
        """The squared norms that the last byte of a code selects from, float32 [256], ascending: a copy."""
        return self._bound.norms().reshape(-1)

    @operation
    def encode(
        self,
        rows: Any,
        *,
        iterations: int | None = 16,
        passes: int | None = 4,
        perturbed: int | None = 4,
        **settings: Unpack[SeededCallSettings],
    ) -> npt.NDArray[np.uint8]:
        """Codes of vectors, uint8 [rows, code_bytes]: a codeword of every codebook, and the norm of their sum.

        The code of a vector does not depend on the other vectors of the call.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`.
        iterations : int
            Of the search: more take longer and never raise a vector's error.
        passes : int
            Over all codes in every iteration, at most.
        perturbed : int
            Codes that an iteration changes at random; all, if there are fewer.
        context, seed, progress
            See `nearwise.Context`; progress counts vectors.
        """
        return Call("encode", settings).run(
            self._bound.encode, rows=rows, iterations=iterations, passes=passes, perturbed=perturbed
        )

    @operation
    def error(
        self,
        rows: Any,
        *,
        iterations: int | None = 16,
        passes: int | None = 4,
        perturbed: int | None = 4,
        **settings: Unpack[SeededCallSettings],
    ) -> float:
        """The mean squared distance of vectors to their reconstructions, with the arguments of `encode`."""
        return Call("error", settings).run(
            self._bound.error, rows=rows, iterations=iterations, passes=passes, perturbed=perturbed
        )

    @operation
    def search(
        self,
        queries: Any,
        codes: Any,
        k: int,
        *,
        metric: TableMetricArgument | None = "sqeuclidean",
        **settings: Unpack[CallSettings],
    ) -> Neighbors:
        """The k best codes for every query, by comparing all.

        Squared distances to reconstructions are inexact by the quantization of the norm; products are exact up
        to rounding. Ties go to the lower number.

        Parameters
        ----------
        queries : array [queries, dim], or one vector [dim]
            In host memory, otherwise as in `nearwise.knn`.
        codes : uint8 array [codes, code_bytes]
            As `encode` returned them.
        k : int
            At least 1. With fewer codes rows end in id -1 at distance +inf (-inf for inner_product).
        metric : {"sqeuclidean", "inner_product"}
        context, progress
            See `nearwise.Context`; progress counts pairs of queries and codes.

        Returns
        -------
        Neighbors
            A named tuple of ids, int64 [queries, k], the numbers of codes, and distances, float32 [queries, k];
            [k] for one vector.
        """
        call = Call("search", settings)
        given = {"codes": as_codes(call, codes)}
        return adopt(call.run(self._bound.search, given, queries=queries, k=k, metric=metric), call)

    def __repr__(self) -> str:
        return f"<nearwise.AdditiveQuantizer: {self.dim} elements in {self._bound.codebooks} codebooks>"
