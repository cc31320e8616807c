"""Product quantization."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from nearwise import _core
from nearwise._context import Call, CallSettings, Context, SeededSettings, operation
from nearwise._quantizer import Quantizer, TableMetricArgument
from nearwise._rotation import Rotation
from nearwise._vector_file import Path


class ProductCoder(Quantizer):
    """What plain and optimized product quantizers share."""

    @property
    def parts(self) -> int:
        """Sub-vectors of a vector, each with a codebook of its own."""
        return int(self._plain.parts)

    @property
    def bits(self) -> int:
        """Bits of a part's code: 4 or 8."""
        return int(self._plain.bits)

    @property
    def centroids(self) -> int:
        """Codewords of a part."""
        return int(self._plain.centroids)

    @property
    def _plain(self) -> _core.ProductQuantizer:
        raise NotImplementedError

    @operation
    def encode(self, rows: Any, **settings: Unpack[CallSettings]) -> npt.NDArray[np.uint8]:
        """Codes of vectors, uint8 [rows, code_bytes].

        With 8 bits byte p is the number of part p's codeword. With 4 bits part 2i is in the low half of byte i,
        and part 2i + 1 in its high half. The codeword is the one that `knn` with k = 1 finds in the codebook.
        """
        codes: npt.NDArray[np.uint8] = Call("encode", settings).run(self._bound.encode, rows=rows)
        return codes

    @operation
    def error(self, rows: Any, **settings: Unpack[CallSettings]) -> float:
        """The mean squared distance of vectors to their reconstructions."""
        return float(Call("error", settings).run(self._bound.error, rows=rows))

    @operation
    def tables(
        self, queries: Any, metric: TableMetricArgument | None = "sqeuclidean", **settings: Unpack[CallSettings]
    ) -> npt.NDArray[np.float32]:
        """Distances of queries to all codewords, float32 [queries, parts, centroids].

        Entry [q, p, c] is the squared distance ("sqeuclidean") or the product ("inner_product") of part p of
        query q and codeword c of that part. The sum of the entries of a code is the distance to its
        reconstruction. One vector [dim] has [parts, centroids].
        """
        call = Call("tables", settings)
        entries: npt.NDArray[np.float32] = call.run(self._bound.tables, queries=queries, metric=metric)
        tables = entries.reshape(len(entries), self.parts, self.centroids)
        return tables[0] if call.one_query else tables


class ProductQuantizer(ProductCoder):
    """Vectors split into parts, each encoded as the number of its nearest codeword: 128 elements in 16 bytes.

    Made by `train`, `from_codebooks` or `nearwise.load`. It can be copied and pickled.

    Examples
    --------
    >>> import numpy as np, nearwise
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

    def __init__(self, *_: Any, **__: Any) -> None:
        raise TypeError(
            "ProductQuantizer: made by ProductQuantizer.train(rows), ProductQuantizer.from_codebooks or nearwise.load"
        )

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        parts: int | None = None,
        bits: Literal[4, 8] | None = 8,
        iterations: int | None = 25,
        training_rows: int | None = None,
        **settings: Unpack[SeededSettings],
    ) -> ProductQuantizer:
        """Trains a codebook for every part by k-means.

        The same vectors, options and seed give the same bytes with any number of threads and any memory limit, on every
        instruction set.

        Parameters
        ----------
        rows : array [rows, dim]
            In host memory, otherwise as in `nearwise.knn`; at least as many as a part has codewords.
        parts : int, optional
            1 to dim; their lengths differ by at most one, the longer ones come first. Default: parts of at most
            4 elements.
        bits : {4, 8}
            Of a part's code: 16 or 256 codewords per part.
        iterations : int
            Of k-means, at most.
        training_rows : int, optional
            Vectors to train on, drawn by the seed if there are more. Default: 256 per codeword of a part.
        context, seed, device, threads, memory_limit, isa, progress
            See `nearwise.Context`. The quantizer remembers them.
        """
        call = Call("ProductQuantizer.train", settings)
        bound = call.run(
            _core.ProductQuantizer.train,
            rows=rows,
            parts=parts,
            bits=bits,
            iterations=iterations,
            training_rows=training_rows,
        )
        return cls._of(bound, call.context)

    @classmethod
    @operation
    def from_codebooks(cls, codebooks: Any, *, context: Context | None = None) -> ProductQuantizer:
        """A quantizer of given codewords: a sequence of arrays [16 or 256, elements of the part], as `codebooks` has.

        >>> import numpy as np
        >>> from nearwise import ProductQuantizer
        >>> grid = np.arange(16, dtype=np.float32)[:, None]
        >>> ProductQuantizer.from_codebooks([grid, 10 * grid]).encode(np.array([[3.2, 38]]))
        array([[67]], dtype=uint8)
        """
        words: list[npt.NDArray[np.float32]] = []
        for given in codebooks:
            words.append(np.asarray(given, np.float32))
            book = words[-1]
            if book.ndim != 2 or len(book) not in (16, 256) or len(book) != len(words[0]):
                shapes = ", ".join(str(each.shape) for each in words[-3:])
                raise ValueError(f"codebooks: expected 2-D arrays of 16 rows, or all of 256, got shapes {shapes}")
        if not words:
            raise ValueError("codebooks: expected at least one")
        lengths = [book.shape[1] for book in words]
        dim, parts = sum(lengths), len(lengths)
        expected = [dim // parts + (part < dim % parts) for part in range(parts)]
        if lengths != expected:
            raise ValueError(f"codebooks: {dim} elements in {parts} parts have lengths {expected}, got {lengths}")
        flat = np.concatenate([book.reshape(-1) for book in words])
        bits = 4 if len(words[0]) == 16 else 8
        bound = _core.ProductQuantizer.from_codebooks(dim=dim, parts=parts, bits=bits, codebooks=flat)
        return cls._of(bound, context or Context())

    @property
    def codebooks(self) -> list[npt.NDArray[np.float32]]:
        """The codewords of every part, float32 [centroids, elements of the part]: a copy."""
        flat = self._bound.codebooks()[0]
        begins = [self._bound.part_begin(part) * self.centroids for part in range(self.parts + 1)]
        return [flat[begin:end].reshape(self.centroids, -1) for begin, end in itertools.pairwise(begins)]

    @property
    def _plain(self) -> _core.ProductQuantizer:
        return self._bound

    def __repr__(self) -> str:
        return f"<nearwise.ProductQuantizer: {self.dim} elements in {self.parts} parts of {self.bits} bits>"


class OptimizedProductQuantizer(ProductCoder):
    """A product quantizer of rotated vectors, and the rotation, trained together (OPQ).

    On correlated vectors its error is far below that of a `ProductQuantizer` with codes of the same size.
    `encode`, `tables` and `error` rotate their arguments, `decode` rotates back. Made by `train`,
    `nearwise.load`, or of a rotation and a quantizer. It can be copied and pickled.

    Parameters
    ----------
    rotation : Rotation
    quantizer : ProductQuantizer
        Of as many elements as the rotation returns.
    context : Context, optional
        Remembered for the methods.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> hidden = np.random.default_rng(1).standard_normal((2000, 2), dtype=np.float32)
    >>> rows = hidden @ np.array([[1, 2, 3, 4], [4, -3, 2, -1]], dtype=np.float32)
    >>> plain = nearwise.ProductQuantizer.train(rows, parts=2, bits=4)
    >>> optimized = nearwise.OptimizedProductQuantizer.train(rows, parts=2, bits=4)
    >>> optimized
    <nearwise.OptimizedProductQuantizer: 4 elements in 2 parts of 4 bits>
    >>> optimized.error(rows) < plain.error(rows) / 2
    True
    >>> optimized.decode(optimized.encode(rows)).shape
    (2000, 4)
    """

    _bound: _core.OptimizedProductQuantizer

    @operation
    def __init__(self, rotation: Rotation, quantizer: ProductQuantizer, *, context: Context | None = None) -> None:
        if not isinstance(rotation, Rotation):
            raise TypeError(f"rotation: expected a Rotation, got {type(rotation).__name__}")
        if not isinstance(quantizer, ProductQuantizer):
            raise TypeError(f"quantizer: expected a ProductQuantizer, got {type(quantizer).__name__}")
        if rotation.rotated_dim != quantizer.dim:
            raise ValueError(
                f"quantizer: expected {rotation.rotated_dim} elements as the rotation returns, got {quantizer.dim}"
            )
        self._bound = _core.OptimizedProductQuantizer(rotation=rotation._bound, quantizer=quantizer._bound)
        self._context = (context or Context()).remembered()

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        parts: int | None = None,
        bits: Literal[4, 8] | None = 8,
        iterations: int | None = 25,
        training_rows: int | None = None,
        rounds: int | None = 10,
        **settings: Unpack[SeededSettings],
    ) -> OptimizedProductQuantizer:
        """Trains rotation and codebooks in turn.

        On the training vectors the error is never above that of `ProductQuantizer.train` with the same options.

        Parameters
        ----------
        rows, parts, bits, iterations, training_rows
            As in `ProductQuantizer.train`.
        rounds : int
            Updates of the rotation and the codebooks, at most. 0: the better of two starts, without a rotation and with
            principal axes distributed over the parts.
        context, seed, device, threads, memory_limit, isa, progress
            As in `ProductQuantizer.train`.
        """
        call = Call("OptimizedProductQuantizer.train", settings)
        bound = call.run(
            _core.OptimizedProductQuantizer.train,
            rows=rows,
            parts=parts,
            bits=bits,
            iterations=iterations,
            training_rows=training_rows,
            rounds=rounds,
        )
        return cls._of(bound, call.context)

    def __reduce__(self) -> Any:
        # Not by its bytes: a file holds only some of the rotations that it may have (`save`).
        return functools.partial(OptimizedProductQuantizer, context=self._context), (self.rotation, self.quantizer)

    @operation
    def save(self, path: Path, *, provenance: Mapping[str, str] | None = None) -> None:
        """Saves the quantizer in a .nw file, atomically; `nearwise.load` reads it.

        The file holds square rotations without a mean, as `train` makes them; others are refused.
        """
        rotation = self.rotation
        if rotation.dim != rotation.rotated_dim or rotation.mean.any():
            raise ValueError("save: expected a square rotation without a mean, as train() makes it")
        super().save(path, provenance=provenance)

    @property
    def rotation(self) -> Rotation:
        return Rotation._of(self._bound.rotation, self._context)

    @property
    def quantizer(self) -> ProductQuantizer:
        """Of rotated vectors."""
        return ProductQuantizer._of(self._bound.quantizer, self._context)

    @property
    def dim(self) -> int:
        """Elements of a vector."""
        return int(self._bound.rotation.dim)

    @property
    def code_bytes(self) -> int:
        """Bytes of a code."""
        return int(self._plain.code_bytes)

    @property
    def _plain(self) -> _core.ProductQuantizer:
        return self._bound.quantizer

    def __repr__(self) -> str:
        return f"<nearwise.OptimizedProductQuantizer: {self.dim} elements in {self.parts} parts of {self.bits} bits>"
