"""Inverted files: what they store of a vector."""

from __future__ import annotations

from typing import Any, Literal

from nearwise import _options
from nearwise._context import Context, operation
from nearwise._index.ivf_base import Ivf, Vectors
from nearwise._neighbors import MetricArgument
from nearwise._progress import ProgressArgument


class IvfFlat(Ivf):
    """An inverted file of uncompressed vectors: its distances are exact.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16), dtype=np.float32)
    >>> index = nearwise.IvfFlat.build(rows, lists=20)
    >>> index.calibration.reached, index.calibration.probes == index.probes
    (True, True)
    >>> index
    <nearwise.IvfFlat: 1000 vectors of 16 elements in 20 lists, 64 bytes each, sqeuclidean>
    >>> ids, distances = index.search(rows[:3], k=2, probes=4)
    >>> ids[:, 0]
    array([0, 1, 2])
    >>> index.remove([0, 1])
    2
    >>> len(index)
    998
    """

    @classmethod
    @operation
    def build(
        cls,
        rows: Any,
        *,
        target_recall: float | None = 0.9,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfFlat:
        """Trains on the vectors, adds them with their row numbers as ids, and calibrates.

        Parameters
        ----------
        target_recall : float
            Share of the 10 nearest vectors that a search with default probes finds; see `Ivf.calibrate`.
        rows, metric, lists, iterations, training_rows, context, seed, device, threads, memory_limit, isa, progress
            As in `train`.
        """
        target = _options.target_recall(target_recall)
        options = _lists(metric, lists, iterations, training_rows)
        return cls._make("flat", rows, context, target_recall=target, **options)

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfFlat:
        """Trains the centroids of the lists. The index is empty.

        Parameters
        ----------
        rows : array [rows, dim]
            The vectors of the index, or a sample of them, as in `nearwise.knn`, in host memory.
        metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
            Of all searches, as in `nearwise.knn`.
        lists : int, optional
            Default: about 4 sqrt(rows), with at least 39 vectors each. Give it if `rows` is only a sample.
        iterations : int
            Of k-means, at most.
        training_rows : int, optional
            Vectors to train on, drawn by the seed if there are more. Default: 256 per list.
        context, seed, device, threads, memory_limit, isa, progress
            See `nearwise.Context`. The index remembers them for all its methods. memory_limit covers the index and one
            call, with its results and converted copies; concurrent searches count separately.
        """
        return cls._make("flat", rows, context, **_lists(metric, lists, iterations, training_rows))


class IvfPq(Ivf):
    """An inverted file of product codes: stores a PQ code of each vector's residual, 8 to 64 bytes.

    It keeps the vectors in addition to the codes (`vectors`), and `search` re-ranks the best candidates by them.
    Without them, distances are those to the reconstructions.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((2000, 32), dtype=np.float32)
    >>> index = nearwise.IvfPq.build(rows, lists=20, code_bytes=16)
    >>> index.code_bytes
    16
    >>> bool(index.search(rows[:3], k=1).distances.max() == 0)  # each vector finds itself
    True
    """

    @classmethod
    @operation
    def build(
        cls,
        rows: Any,
        *,
        target_recall: float | None = 0.9,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        vectors: Vectors | None = "keep",
        code_bytes: int | None = None,
        bits: Literal[4, 8] | None = 8,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfPq:
        """Trains on the vectors, adds them with their row numbers as ids, and calibrates.

        Parameters
        ----------
        target_recall : float
            Share of the 10 nearest vectors that a search with re-ranking and default probes finds; see `Ivf.calibrate`.
        rows, metric, lists, iterations, training_rows, vectors, code_bytes, bits, context and its settings
            As in `train`.
        """
        target = _options.target_recall(target_recall)
        options = _lists(metric, lists, iterations, training_rows, vectors) | _product(code_bytes, bits)
        return cls._make("pq", rows, context, target_recall=target, **options)

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        vectors: Vectors | None = "keep",
        code_bytes: int | None = None,
        bits: Literal[4, 8] | None = 8,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfPq:
        """Trains the centroids of the lists and the codebooks. The index is empty.

        Parameters
        ----------
        rows : array [rows, dim]
            The vectors of the index, or a sample of them, as in `nearwise.knn`, in host memory; at least 2 ** bits.
        code_bytes : int, optional
            Per vector, at most one per element. Default: one for every 8 elements, 8 to 64.
        bits : {4, 8}
            Of the code of one part of a vector: with 4 there are twice as many parts.
        vectors : {"keep", "f16", "u8", "none", "file:PATH"}
            What the index keeps of the vectors themselves, in memory and in its file, for re-ranking and `get`: all of
            them in their element type, rounded to half precision (magnitudes up to 65504), rounded to one byte per
            element (one step for all dimensions, by the range of `rows`), or nothing. "file:base.fbin": the number of
            each vector's row in this file, which is mapped and must not change. Vectors that are added must be rows of
            the file, of its element type: those that follow the last ones, or those with the numbers of their ids.
        metric, lists, iterations, training_rows, context, seed, device, threads, memory_limit, isa, progress
            As in `IvfFlat.train`.
        """
        options = _lists(metric, lists, iterations, training_rows, vectors) | _product(code_bytes, bits)
        return cls._make("pq", rows, context, **options)


class IvfLsq(Ivf):
    """An inverted file of additive codes: stores an LSQ code of each vector's residual, 1 to 32 bytes.

    It loses less than an `IvfPq` of as many bytes. Encoding takes about 50 microseconds per vector and thread
    with 8 bytes for 128 elements. Re-ranking as in `IvfPq`.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16), dtype=np.float32)
    >>> index = nearwise.IvfLsq.build(rows, lists=10, code_bytes=4, rounds=3)
    >>> index.code_bytes
    4
    >>> bool(index.search(rows[:3], k=1).distances.max() == 0)  # each vector finds itself
    True
    """

    @classmethod
    @operation
    def build(
        cls,
        rows: Any,
        *,
        target_recall: float | None = 0.9,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        vectors: Vectors | None = "keep",
        code_bytes: int | None = 8,
        rounds: int | None = 25,
        train_iterations: int | None = 8,
        encode_iterations: int | None = 16,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfLsq:
        """Trains on the vectors, adds them with their row numbers as ids, and calibrates.

        Parameters
        ----------
        target_recall : float
            As in `IvfPq.build`.
        rows, metric, lists, iterations, training_rows, vectors, code_bytes, rounds, train_iterations,
        encode_iterations, context and its settings
            As in `train`.
        """
        target = _options.target_recall(target_recall)
        additive = _additive(code_bytes, rounds, train_iterations, encode_iterations)
        options = _lists(metric, lists, iterations, training_rows, vectors) | additive
        return cls._make("lsq", rows, context, target_recall=target, **options)

    @classmethod
    @operation
    def train(
        cls,
        rows: Any,
        *,
        metric: MetricArgument | None = "sqeuclidean",
        lists: int | None = None,
        iterations: int | None = 10,
        training_rows: int | None = None,
        vectors: Vectors | None = "keep",
        code_bytes: int | None = 8,
        rounds: int | None = 25,
        train_iterations: int | None = 8,
        encode_iterations: int | None = 16,
        context: Context | None = None,
        seed: int | None = None,
        device: str | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        isa: str | None = None,
        progress: ProgressArgument = None,
    ) -> IvfLsq:
        """Trains the centroids of the lists and the codebooks. The index is empty.

        Parameters
        ----------
        rows : array [rows, dim]
            The vectors of the index, or a sample of them, as in `nearwise.knn`, in host memory; at least 256.
        code_bytes : int
            Per vector, 1 to 32: one for each codebook.
        rounds, train_iterations : int
            Of the training of codewords: `rounds` and `iterations` of `AdditiveQuantizer.train`.
        encode_iterations : int
            Of the search for the code of a vector that is added.
        vectors : {"keep", "f16", "u8", "none", "file:PATH"}
            As in `IvfPq.train`.
        metric, lists, iterations, training_rows, context, seed, device, threads, memory_limit, isa, progress
            As in `IvfFlat.train`.
        """
        additive = _additive(code_bytes, rounds, train_iterations, encode_iterations)
        return cls._make("lsq", rows, context, **_lists(metric, lists, iterations, training_rows, vectors), **additive)


# The options of C++, checked.
def _lists(metric: Any, lists: Any, iterations: Any, training_rows: Any, vectors: Any = "keep") -> dict[str, Any]:
    word = _options.word(vectors, "vectors")
    path = word.removeprefix("file:") if word.startswith("file:") else ""
    return {
        "metric": _options.metric(metric),
        "lists": _options.optional_count(lists, "lists"),
        "iterations": _options.count(iterations, "iterations"),
        "training_rows": _options.optional_count(training_rows, "training_rows"),
        "vectors": "file" if path else word,
        "vector_file": path,
    }


def _product(code_bytes: Any, bits: Any) -> dict[str, Any]:
    return {
        "code_bytes": _options.optional_count(code_bytes, "code_bytes"),
        "bits": _options.integer(bits, "bits", 4, 8),
    }


def _additive(code_bytes: Any, rounds: Any, train_iterations: Any, encode_iterations: Any) -> dict[str, Any]:
    return {
        "code_bytes": _options.count(code_bytes, "code_bytes"),
        "rounds": _options.whole(rounds, "rounds"),
        "train_iterations": _options.count(train_iterations, "train_iterations"),
        "encode_iterations": _options.count(encode_iterations, "encode_iterations"),
    }


# Users see them as nearwise.IvfFlat and so on.
for _class in (IvfFlat, IvfPq, IvfLsq):
    _class.__module__ = "nearwise"
