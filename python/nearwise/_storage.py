"""Saved results: checked when they come back."""

from __future__ import annotations

import os
from typing import Any, Mapping, NamedTuple, Optional

from nearwise import _core, _options
from nearwise._exact import Metric
from nearwise._neighbors import Neighbors, adopt, as_neighbors
from nearwise._vector_file import Path


class SavedNeighbors(NamedTuple):
    """What `load` returns."""

    neighbors: Neighbors
    metric: str
    provenance: dict[str, str]


def save(path: Path, neighbors: Any, *, metric: Metric, provenance: Optional[Mapping[str, str]] = None) -> None:
    """Saves the result of `knn` with its metric and free text on where it came from, in a .nw file.

    The save is atomic and durable: whatever happens, the old file or the new one is there, whole.

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
    metric_word = _options.word(metric, "metric")
    _core.save(os.fspath(path), pair.ids, pair.distances, metric_word, texts_of(provenance))


def texts_of(provenance: Optional[Mapping[str, str]]) -> dict[str, str]:
    texts = {} if provenance is None else dict(provenance)
    for key, text in texts.items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise TypeError(f"provenance: expected strings, given {key!r}: {text!r}")
    return texts


def load(path: Path) -> SavedNeighbors:
    """Loads what `save` wrote. Every checksum is verified: damage is an `Error` with code corrupt."""
    pair, metric, provenance = _core.load(os.fspath(path))
    return SavedNeighbors(adopt(pair), metric, provenance)


def inspect(path: Path) -> _core.ContainerInfo:
    """What a .nw file says of itself; its sections are not read."""
    return _core.inspect(os.fspath(path))


def verify(path: Path) -> _core.ContainerInfo:
    """Reads and checks a whole .nw file; damage is an `Error` with code corrupt that says where."""
    return _core.verify(os.fspath(path))
