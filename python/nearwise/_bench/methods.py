"""What can be measured: the indexes of nearwise, and those of the libraries that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nearwise import _options
from nearwise._bench.method import Method
from nearwise._bench.task import Task
from nearwise._error import ArgumentError, Error


class Rival(NamedTuple):
    """Another library: what Python and pip call it, and the names of its methods."""

    module: str
    package: str
    methods: tuple[str, ...]

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


# The names are those of nearwise.choose_index.
OWN = ("exact", "ivf_flat", "ivf_pq", "graph")

RIVALS = {
    "faiss": Rival(
        "faiss",
        "faiss-cpu",
        (
            "faiss_flat",
            "faiss_ivf_flat_2",
            "faiss_ivf_flat_4",
            "faiss_fast_scan_2",
            "faiss_fast_scan_4",
            "faiss_hnsw",
            "faiss_hnsw_sq8",
        ),
    ),
    "hnswlib": Rival("hnswlib", "hnswlib", ("hnswlib_16", "hnswlib_32")),
    "usearch": Rival("usearch", "usearch", ("usearch_f32", "usearch_f16", "usearch_i8")),
    "scann": Rival("scann", "scann", ("scann",)),
    "pynndescent": Rival("pynndescent", "pynndescent", ("pynndescent",)),
}


def make(name: str, task: Task) -> Method:
    """The method of this name. Only its own library is imported: several in one process get in each other's way."""
    if name in OWN:
        from nearwise._bench import own

        made: dict[str, Callable[[Task], Method]]
        made = {"exact": own.OwnExact, "ivf_flat": own.OwnIvfFlat, "ivf_pq": own.OwnIvfPq, "graph": own.OwnGraph}
        return made[name](task)
    if name.startswith("faiss_"):
        from nearwise._bench import faiss_methods

        if name == "faiss_flat":
            return faiss_methods.FaissFlat(task)
        if name.startswith("faiss_ivf_flat_"):
            return faiss_methods.FaissIvfFlat(task, factor=int(name[-1]))
        if name.startswith("faiss_fast_scan_"):
            return faiss_methods.FaissFastScan(task, width=int(name[-1]))
        return faiss_methods.FaissHnsw(task, codes=name.endswith("sq8"))
    if name == "scann":
        from nearwise._bench.scann_method import Scann

        return Scann(task)
    from nearwise._bench import graph_methods

    if name.startswith("hnswlib_"):
        return graph_methods.Hnswlib(task, links=int(name.removeprefix("hnswlib_")))
    if name.startswith("usearch_"):
        return graph_methods.Usearch(task, dtype=name.removeprefix("usearch_"))
    return graph_methods.Pynndescent(task)


class Selection(NamedTuple):
    names: tuple[str, ...]  # of the methods
    left_out: tuple[dict[str, str], ...]  # libraries that are not installed, and why that is


def select(kinds: Sequence[str], against: Sequence[str] | None) -> Selection:
    """The methods to measure; `against` None: of all libraries that are installed."""
    for kind in kinds:
        if kind not in OWN:
            raise ArgumentError(f"kinds: expected some of {', '.join(OWN)}, got {kind!r}")
    for library in against or ():
        if library not in RIVALS:
            raise ArgumentError(f"against: expected some of {', '.join(RIVALS)}, got {library!r}")
    names, left_out = [kind for kind in OWN if kind in kinds], []
    for library, rival in RIVALS.items():
        if against is not None and library not in against:
            continue
        if rival.is_installed:
            names += rival.methods
        elif against is None:
            left_out.append({"library": library, "reason": f"not installed: pip install {rival.package}"})
        else:
            raise Error(f"against: {library} is not installed: pip install {rival.package}", "unsupported")
    if not names:
        raise ArgumentError("kinds: expected at least one index of nearwise, or of another library in against")
    return Selection(tuple(names), tuple(left_out))


def words(value: Any, name: str) -> tuple[str, ...]:
    """A sequence of strings, or one string."""
    return tuple(_options.word(each, name) for each in ((value,) if isinstance(value, str) else value))
