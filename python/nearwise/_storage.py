"""Saved objects."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self, TypeVar, Unpack, overload

from nearwise import _core, _options
from nearwise._additive_quantizer import AdditiveQuantizer
from nearwise._context import Call, PlaceSettings, operation
from nearwise._deduplication import Deduplication, adopt_deduplication
from nearwise._error import Error
from nearwise._index.graph_index import GraphIndex
from nearwise._index.ivf import IvfFlat, IvfLsq, IvfPq
from nearwise._index.ivf_base import Ivf
from nearwise._index.string_ids import StringIds
from nearwise._knn_graph import KnnGraph
from nearwise._neighbors import MetricArgument, Neighbors, RangeNeighbors, adopt, adopt_range, as_neighbors
from nearwise._product_quantizer import OptimizedProductQuantizer, ProductQuantizer
from nearwise._vector_file import Path


class SavedNeighbors(NamedTuple):
    """A saved search result."""

    neighbors: Neighbors
    metric: str
    provenance: dict[str, str]


class SectionInfo(NamedTuple):
    """One section of a saved file."""

    name: str
    offset: int
    bytes: int
    blocks: int  #: checksummed blocks


class ContainerInfo(NamedTuple):
    """Header, metadata and sections of a saved file."""

    kind: str
    version_major: int
    version_minor: int
    bytes: int
    metadata: dict[str, str]
    sections: list[SectionInfo]

    @classmethod
    def _of(cls, info: _core.ContainerInfo) -> Self:
        sections = [SectionInfo(part.name, part.offset, part.bytes, part.blocks) for part in info.sections]
        return cls(info.kind, info.version_major, info.version_minor, info.bytes, info.metadata, sections)

    def __repr__(self) -> str:
        return (
            f"ContainerInfo(kind={self.kind!r}, version={self.version_major}.{self.version_minor}, "
            f"bytes={self.bytes}, {len(self.sections)} sections)"
        )


Saved = (
    SavedNeighbors | StringIds | RangeNeighbors | Deduplication | Ivf | GraphIndex | KnnGraph
    | ProductQuantizer | OptimizedProductQuantizer | AdditiveQuantizer
)  # fmt: skip
_T = TypeVar("_T", bound=Saved)


@operation
def save(path: Path, neighbors: Any, *, metric: MetricArgument, provenance: Mapping[str, str] | None = None) -> None:
    """Saves a search result with its metric and free text on its origin, in a .nw file.

    The save is atomic and durable: after a crash there is the old file or the new one, complete. Indexes, graphs and
    quantizers have a method `save`.

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "result.nw")
    >>> base = np.eye(3, dtype=np.float32)
    >>> found = nearwise.knn(base, base, k=2, metric="cosine")
    >>> nearwise.save(path, found, metric="cosine", provenance={"base": "three unit vectors"})
    >>> saved = nearwise.load(path)
    >>> bool((saved.neighbors.ids == found.ids).all()), saved.metric, saved.provenance["base"]
    (True, 'cosine', 'three unit vectors')
    >>> nearwise.verify(path).kind
    'neighbors'
    """
    pair = as_neighbors(neighbors)
    _core.save_neighbors(
        path=os.fspath(path),
        ids=pair.ids,
        distances=pair.distances,
        metric=_options.metric(metric),
        provenance=_options.texts(provenance, "provenance"),
    )


@overload
def load(path: Path, expected: None = None, **settings: Unpack[PlaceSettings]) -> Saved: ...


@overload
def load(path: Path, expected: type[_T], **settings: Unpack[PlaceSettings]) -> _T: ...


@operation
def load(path: Path, expected: type[Any] | None = None, **settings: Unpack[PlaceSettings]) -> Any:
    """Loads a .nw file: a search result, names, pairs, a deduplication, an index, a k-NN graph or a quantizer.

    Every checksum is verified: damage is an `Error` with code corrupt. An index is mapped: its vectors are read
    as searches need them, and copied list by list when they change. Replace its file by renaming while it is in
    use, never write to it.

    Parameters
    ----------
    path : path
    expected : type, optional
        Raises TypeError, naming what the file holds, unless it is of this class: `nearwise.Ivf`,
        `nearwise.KnnGraph`, ... Type checkers infer the result from it.
    context, device, threads, memory_limit, isa
        See `nearwise.Context`. The object remembers them.

    Returns
    -------
    SavedNeighbors, StringIds, RangeNeighbors (pairs), Deduplication, IvfFlat, IvfPq, IvfLsq, GraphIndex, KnnGraph,
    ProductQuantizer, OptimizedProductQuantizer or AdditiveQuantizer

    Examples
    --------
    >>> import numpy as np, nearwise, os, tempfile
    >>> rows = np.random.default_rng(0).standard_normal((500, 8), dtype=np.float32)
    >>> path = os.path.join(tempfile.mkdtemp(), "index.nw")
    >>> nearwise.IvfFlat.build(rows, lists=5).save(path)
    >>> nearwise.load(path)
    <nearwise.IvfFlat: 500 vectors of 8 elements in 5 lists, 32 bytes each, sqeuclidean>
    >>> nearwise.load(path, nearwise.KnnGraph)
    Traceback (most recent call last):
    TypeError: .../index.nw: expected a KnnGraph, the file holds an IvfFlat
    """
    if not (expected is None or isinstance(expected, type)):
        raise TypeError(f"expected: expected a class, got {type(expected).__name__}")
    name = os.fspath(path)
    try:
        info = _core.inspect(path=name)
    except Error as error:
        if "no nearwise file" not in str(error):
            raise
        raise Error(f"{error}; if it holds vectors, nearwise.read_vectors maps it", error.code) from None
    reader = _READERS.get(info.kind)
    if reader is None:
        raise ValueError(f"{name}: a file of kind '{info.kind}', which nearwise.load does not read; it reads {_KINDS}")
    found = reader(name, info, Call("load", settings))
    if expected is not None and not isinstance(found, expected):
        raise TypeError(f"{name}: expected {_a(expected.__name__)}, the file holds {_a(type(found).__name__)}")
    return found


@overload
def from_bytes(data: bytes, expected: None = None, **settings: Unpack[PlaceSettings]) -> Saved: ...


@overload
def from_bytes(data: bytes, expected: type[_T], **settings: Unpack[PlaceSettings]) -> _T: ...


@operation
def from_bytes(data: bytes, expected: type[Any] | None = None, **settings: Unpack[PlaceSettings]) -> Any:
    """What `load` makes of a file with these bytes: those of `to_bytes`, which every class with `save` has.

    Parameters
    ----------
    data : bytes
        Or another buffer. It is written to a temporary file, which is removed at once.
    expected, context, device, threads, memory_limit, isa
        As in `load`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bytes.nw")
        with open(path, "wb") as file:
            file.write(data)
        # A mapping outlives the name of its file.
        return load(path, expected, **settings)


from_bytes.__module__ = "nearwise"  # pickles name it


def _load_neighbors(path: str, info: _core.ContainerInfo, call: Call) -> SavedNeighbors:
    pair, metric, provenance = _core.load_neighbors(path=path)
    return SavedNeighbors(adopt(pair), metric, provenance)


def _load_names(path: str, info: _core.ContainerInfo, call: Call) -> StringIds:
    return StringIds._load(path)


def _load_pairs(path: str, info: _core.ContainerInfo, call: Call) -> RangeNeighbors:
    return adopt_range(_core.load_pairs(path=path))


def _load_deduplication(path: str, info: _core.ContainerInfo, call: Call) -> Deduplication:
    return adopt_deduplication(_core.load_deduplication(path=path))


def _load_index(path: str, info: _core.ContainerInfo, call: Call) -> Ivf:
    index = _core.load_ivf(path=path, settings=call.settings, progress=None)
    kinds: dict[str, type[Ivf]] = {"flat": IvfFlat, "pq": IvfPq, "lsq": IvfLsq}
    return kinds[index.codec]._of(index, call.context)


def _load_graph_index(path: str, info: _core.ContainerInfo, call: Call) -> GraphIndex:
    return GraphIndex._of(_core.load_graph_index(path=path, settings=call.settings, progress=None), call.context)


def _load_graph(path: str, info: _core.ContainerInfo, call: Call) -> KnnGraph:
    return KnnGraph(_core.load_knn_graph(path=path), call.context)


def _load_product(path: str, info: _core.ContainerInfo, call: Call) -> ProductQuantizer | OptimizedProductQuantizer:
    if any(section.name == "rotation" for section in info.sections):
        return OptimizedProductQuantizer._of(_core.OptimizedProductQuantizer.load(path=path), call.context)
    return ProductQuantizer._of(_core.ProductQuantizer.load(path=path), call.context)


def _load_additive(path: str, info: _core.ContainerInfo, call: Call) -> AdditiveQuantizer:
    return AdditiveQuantizer._of(_core.AdditiveQuantizer.load(path=path), call.context)


_READERS: dict[str, Callable[[str, _core.ContainerInfo, Call], Saved]] = {
    "neighbors": _load_neighbors,
    "names": _load_names,
    "pairs": _load_pairs,
    "deduplication": _load_deduplication,
    "ivf": _load_index,
    "graph": _load_graph,
    "graph_index": _load_graph_index,
    "product_quantizer": _load_product,
    "additive_quantizer": _load_additive,
}
_KINDS = ", ".join(f"'{kind}'" for kind in _READERS)


def _a(noun: str) -> str:
    """
    >>> _a("KnnGraph"), _a("IvfPq")
    ('a KnnGraph', 'an IvfPq')
    """
    return f"an {noun}" if noun[0] in "AEIOU" else f"a {noun}"


@operation
def inspect(path: Path) -> ContainerInfo:
    """Header, metadata and section table of a .nw file; other sections are not read."""
    return ContainerInfo._of(_core.inspect(path=os.fspath(path)))


@operation
def verify(path: Path) -> ContainerInfo:
    """Reads and checks a whole .nw file; damage is an `Error` with code corrupt that says where."""
    return ContainerInfo._of(_core.verify(path=os.fspath(path)))
