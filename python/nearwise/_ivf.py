"""Inverted files."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._ivf_index import Ivf, adopt_index, amount, build_index, train_index
from nearwise._progress import ProgressArgument
from nearwise._rows import device_for
from nearwise._vector_file import Path


class IvfFlat(Ivf):
    """An inverted file of the rows as they are: the distances it reports are the true ones.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16), dtype=np.float32)
    >>> index = nearwise.IvfFlat.build(rows, lists=20)
    >>> index.measured.reached, index.measured.probes == index.probes
    (True, True)
    >>> index
    <nearwise.IvfFlat: 1000 rows of 16 elements in 20 lists, 64 bytes each, sqeuclidean>
    >>> ids, distances = index.search(rows[:3], k=2, probes=4)
    >>> ids[:, 0]
    array([0, 1, 2])
    >>> index.remove([0, 1])
    2
    >>> len(index)
    998
    """

    @classmethod
    def build(cls, rows: Any, *, recall: float = 0.9, progress: ProgressArgument = None, **options: Any) -> IvfFlat:
        """Trains on the rows, adds them under their numbers as ids, and measures the probes.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `train`.
        recall : float
            The share of the 10 nearest rows that a search must find which does not name its probes; see
            `measure_probes`.
        progress
            As in `train`.
        options
            Those of `train`: metric, lists, iterations, rows_per_list, seed, device, threads, memory_limit, isa.
        """
        return build_index(cls, rows, recall, progress, options)

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        metric: Metric = "sqeuclidean",
        lists: int = 0,
        iterations: int = 10,
        rows_per_list: int = 256,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> IvfFlat:
        """Finds the lists. The index that comes back has no rows yet.

        Parameters
        ----------
        rows : array [rows, dim]
            The rows to come, or a sample of them, as in `nearwise.knn`, in host memory.
        metric
            As in `nearwise.knn`, for all searches.
        lists : int
            0: about 4 sqrt(rows), with at least 39 rows in each. Say it if the rows are only a sample.
        iterations : int
            Of k-means, at most.
        rows_per_list : int
            To train on; of more rows so many are drawn by the seed. 0: all.
        seed : int
            Of the random numbers: the same seed gives the same lists.
        device, threads, isa
            As in `nearwise.knn`, for all that is done with this index.
        memory_limit : int or str
            Bytes for the index and any one call together, with its results and converted copies; 0: no limit. Searches
            at once count one by one.
        progress
            As in `nearwise.knn`; what is counted differs from one stage to the next.
        """
        return train_index(
            cls,
            _core.train_ivf_flat,
            rows,
            {
                "metric": _options.word(metric, "metric"),
                "lists": amount(lists, "lists"),
                "iterations": amount(iterations, "iterations"),
                "rows_per_list": amount(rows_per_list, "rows_per_list"),
            },
            {"seed": seed, "device": device, "threads": threads, "memory_limit": memory_limit, "isa": isa},
            progress,
        )


class IvfPq(Ivf):
    """An inverted file that keeps of every row a product code of what its centroid leaves over: 8 to 64 bytes.

    Distances are those from what the codes stand for, unless a search is given the `rows` for a second look.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((2000, 32), dtype=np.float32)
    >>> index = nearwise.IvfPq.build(rows, lists=20, code_bytes=16)
    >>> index.code_bytes
    16
    >>> bool(index.search(rows[:3], k=1, rows=rows).distances.max() == 0)  # each row finds itself
    True
    """

    @classmethod
    def build(cls, rows: Any, *, recall: float = 0.9, progress: ProgressArgument = None, **options: Any) -> IvfPq:
        """Trains on the rows, adds them under their numbers as ids, and measures the probes.

        Parameters
        ----------
        rows : array [rows, dim]
            As in `train`.
        recall : float
            The share of the 10 nearest rows that a search must find which does not name its probes and is given `rows`; see
            `measure_probes`.
        progress
            As in `train`.
        options
            Those of `train`: metric, lists, iterations, rows_per_list, code_bytes, bits, seed, device, threads, memory_limit, isa.
        """
        return build_index(cls, rows, recall, progress, options)

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        metric: Metric = "sqeuclidean",
        lists: int = 0,
        iterations: int = 10,
        rows_per_list: int = 256,
        code_bytes: int = 0,
        bits: int = 8,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> IvfPq:
        """Finds lists and codewords. The index that comes back has no rows yet.

        Parameters
        ----------
        rows : array [rows, dim]
            The rows to come, or a sample of them, as in `nearwise.knn`, in host memory; at least 2 ** bits.
        code_bytes : int
            To keep of each row, at most one per element; 0: one for every 8 elements, 8 to 64.
        bits : int
            Of the code of one part of a row, 8 or 4: with 4 there are twice as many parts.
        metric, lists, iterations, rows_per_list, seed, device, threads, memory_limit, isa, progress
            As in `IvfFlat.train`.
        """
        return train_index(
            cls,
            _core.train_ivf_pq,
            rows,
            {
                "metric": _options.word(metric, "metric"),
                "lists": amount(lists, "lists"),
                "iterations": amount(iterations, "iterations"),
                "rows_per_list": amount(rows_per_list, "rows_per_list"),
                "code_bytes": amount(code_bytes, "code_bytes"),
                "bits": _options.integer(bits, "bits", 0, 2**31 - 1),
            },
            {"seed": seed, "device": device, "threads": threads, "memory_limit": memory_limit, "isa": isa},
            progress,
        )


class IvfLsq(Ivf):
    """An inverted file that keeps of every row an additive code of what its centroid leaves over: 1 to 32 bytes.

    It loses less than an `IvfPq` of as many bytes. A code is found by a search, some fifty microseconds per row and thread
    with 8 bytes for 128 elements. Distances are those from what the codes stand for, unless a search is given the `rows` for
    a second look.

    Examples
    --------
    >>> import numpy as np
    >>> import nearwise
    >>> rows = np.random.default_rng(0).standard_normal((1000, 16), dtype=np.float32)
    >>> index = nearwise.IvfLsq.build(rows, lists=10, code_bytes=4, rounds=3)
    >>> index.code_bytes
    4
    >>> bool(index.search(rows[:3], k=1, rows=rows).distances.max() == 0)  # each row finds itself
    True
    """

    @classmethod
    def build(cls, rows: Any, *, recall: float = 0.9, progress: ProgressArgument = None, **options: Any) -> IvfLsq:
        """Trains on the rows, adds them under their numbers as ids, and measures the probes.

        Parameters
        ----------
        rows, recall, progress
            As in `IvfPq.build`.
        options
            Those of `train`.
        """
        return build_index(cls, rows, recall, progress, options)

    @classmethod
    def train(
        cls,
        rows: Any,
        *,
        metric: Metric = "sqeuclidean",
        lists: int = 0,
        iterations: int = 10,
        rows_per_list: int = 256,
        code_bytes: int = 8,
        rounds: int = 25,
        train_iterations: int = 8,
        encode_iterations: int = 16,
        seed: int = 0,
        device: Optional[str] = None,
        threads: int = 0,
        memory_limit: Union[int, str] = 0,
        isa: str = "",
        progress: ProgressArgument = None,
    ) -> IvfLsq:
        """Finds lists and codewords. The index that comes back has no rows yet.

        Parameters
        ----------
        rows : array [rows, dim]
            The rows to come, or a sample of them, as in `nearwise.knn`, in host memory; at least 256.
        code_bytes : int
            To keep of each row, 1 to 32: one for each codebook.
        rounds, train_iterations : int
            Of the training of codewords: `rounds` and `iterations` of `AdditiveQuantizer.train`.
        encode_iterations : int
            Of the search for the code of a row that is added.
        metric, lists, iterations, rows_per_list, seed, device, threads, memory_limit, isa, progress
            As in `IvfFlat.train`.
        """
        return train_index(
            cls,
            _core.train_ivf_lsq,
            rows,
            {
                "metric": _options.word(metric, "metric"),
                "lists": amount(lists, "lists"),
                "iterations": amount(iterations, "iterations"),
                "rows_per_list": amount(rows_per_list, "rows_per_list"),
                "code_bytes": amount(code_bytes, "code_bytes"),
                "rounds": amount(rounds, "rounds"),
                "train_iterations": _options.count(train_iterations, "train_iterations"),
                "encode_iterations": _options.count(encode_iterations, "encode_iterations"),
            },
            {"seed": seed, "device": device, "threads": threads, "memory_limit": memory_limit, "isa": isa},
            progress,
        )


def load_ivf(
    path: Path,
    *,
    device: Optional[str] = None,
    threads: int = 0,
    memory_limit: Union[int, str] = 0,
    isa: str = "",
) -> Union[IvfFlat, IvfPq, IvfLsq]:
    """The index that `Ivf.save` or `nearwise build` wrote, mapped: rows are read as searches need them.

    Every checksum is verified: damage is an `Error` with code corrupt. Lists are copied into memory where they change.
    Replace the file by renaming, never write to it, while the index is in use. The other arguments are those of
    `IvfFlat.train`.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> rows = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    >>> index = nearwise.IvfFlat.train(rows, lists=5)
    >>> index.add(rows)
    >>> path = os.path.join(tempfile.mkdtemp(), "index.nw")
    >>> index.save(path)
    >>> nearwise.load_ivf(path)
    <nearwise.IvfFlat: 500 rows of 8 elements in 5 lists, 32 bytes each, sqeuclidean>
    """
    limit = _options.byte_count(memory_limit, "memory_limit")
    loaded = _core.load_ivf(
        os.fspath(path), device_for(device), _options.thread_count(threads), limit, _options.word(isa, "isa")
    )
    return adopt_index({"flat": IvfFlat, "pq": IvfPq, "lsq": IvfLsq}[loaded.codec], loaded, limit)


# Users see them as nearwise.IvfFlat and so on.
for _class in (IvfFlat, IvfPq, IvfLsq):
    _class.__module__ = "nearwise"
