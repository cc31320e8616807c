"""One way to an index: `build` chooses the kind, `choose_index` says why."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, Unpack, cast

from nearwise import _core, _options
from nearwise._context import Call, Context, SeededSettings, operation
from nearwise._index.exact import Exact
from nearwise._index.graph_index import GraphIndex
from nearwise._index.ivf import IvfFlat, IvfPq
from nearwise._index.ivf_base import Vectors
from nearwise._log import logger
from nearwise._neighbors import MetricArgument

IndexKind: TypeAlias = Literal["exact", "ivf_flat", "ivf_pq", "graph"]
QueryPattern: TypeAlias = Literal["single", "batch"]
BuiltIndex: TypeAlias = Exact | IvfFlat | IvfPq | GraphIndex


class IndexEstimate(NamedTuple):
    """What one kind of index would take: rough estimates, to compare kinds with."""

    kind: IndexKind  #: `Exact`, `IvfFlat`, `IvfPq` or `GraphIndex`
    vectors: Vectors  #: what an `IvfPq` keeps of the vectors
    bytes: int  #: of the index and its vectors, in memory
    build_bytes: int  #: peak while it is built
    build_seconds: float
    query_seconds: float  #: per query: of one at a time, or of many in a batch on all threads
    total_seconds: float  #: to build it, and for all expected queries
    fits: bool  #: build_bytes are within the memory limit


class IndexChoice(NamedTuple):
    """The kind of index that `build` makes (`choose_index`)."""

    kind: IndexKind
    reason: str
    estimates: tuple[IndexEstimate, ...]  #: of all kinds that reach the target recall, the chosen one first
    table: str  #: of the estimates, to be read

    def explain(self) -> str:
        """The reason and the estimates, as a table."""
        return f"{self.kind}: {self.reason}\n{self.table}"


def _choose(
    operation: str,
    rows: Any,
    target_recall: Any,
    metric: Any,
    queries: Any,
    expected_queries: Any,
    context: Context | None,
) -> IndexChoice:
    call = Call(operation, context)
    given = call.array(rows, "rows")
    estimates, reason, table = _core.choose_index(
        rows=given.array.shape[0],
        dim=given.array.shape[1],
        element_type=given.type,
        metric=_options.metric(metric),
        target_recall=_options.target_recall(target_recall, "target_recall"),
        queries=_options.choice(queries, "queries", ("single", "batch")),
        expected_queries=_options.integer(expected_queries, "expected_queries", 0, 2**63 - 1),
        settings=call.settings,
    )
    all_of_them = tuple(IndexEstimate(**estimate) for estimate in cast("list[dict[str, Any]]", estimates))
    return IndexChoice(all_of_them[0].kind, cast("str", reason), all_of_them, cast("str", table))


@operation
def choose_index(
    rows: Any,
    *,
    target_recall: float | None = 0.95,
    metric: MetricArgument | None = "sqeuclidean",
    queries: QueryPattern | None = "single",
    expected_queries: int | None = 1_000_000,
    **settings: Unpack[SeededSettings],
) -> IndexChoice:
    """Which index `build` would make of these vectors, and why. Takes microseconds.

    Among the kinds that keep the memory limit it is exact search if a query takes it at most 50 us, else the kind with
    the least time in all, to build it and to answer all expected queries. The arguments are those of `build`.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> choice = nearwise.choose_index(np.zeros((1000, 8), np.float32))
    >>> choice.kind
    'exact'
    """
    return _choose(
        "choose_index", rows, target_recall, metric, queries, expected_queries, settings.get("context")
    )


@operation
def build(
    rows: Any,
    *,
    target_recall: float | None = 0.95,
    metric: MetricArgument | None = "sqeuclidean",
    queries: QueryPattern | None = "single",
    expected_queries: int | None = 1_000_000,
    **settings: Unpack[SeededSettings],
) -> BuiltIndex:
    """Builds the index that suits these vectors and queries: `Exact`, `IvfFlat`, `IvfPq` or `GraphIndex`.

    All of them have `search`, `range_search` and filters, and return row numbers. `choose_index` says which it will be,
    and why.

    Parameters
    ----------
    rows : array [rows, dim]
        As in `nearwise.knn`.
    target_recall : float
        Share of the 10 nearest vectors that a search finds; 1: exact search.
    metric : {"sqeuclidean", "euclidean", "inner_product", "cosine"}
        Of all searches, as in `nearwise.knn`.
    queries : {"single", "batch"}
        Whether queries come one at a time, so that latency counts, or thousands in a call.
    expected_queries : int
        Over the life of the index: few queries do not pay for building one.
    context, seed, device, threads, memory_limit, isa, progress
        See `nearwise.Context`. What needs more than `memory_limit` to be built is not chosen.

    Examples
    --------
    >>> import numpy as np, nearwise
    >>> rows = np.random.default_rng(0).standard_normal((3000, 16), dtype=np.float32)
    >>> index = nearwise.build(rows, target_recall=0.95)
    >>> index
    <nearwise.Exact: 3000 vectors of 16 elements, sqeuclidean>
    >>> index.search(rows[7], k=3).ids[0]
    np.int64(7)
    """
    context = settings.get("context")
    choice = _choose("build", rows, target_recall, metric, queries, expected_queries, context)
    logger.info("build: %s: %s", choice.kind, choice.reason)
    if choice.kind == "exact":
        return Exact(rows, metric=metric, context=context)
    if choice.kind == "graph":
        return GraphIndex.build(rows, target_recall=target_recall, metric=metric, context=context)
    if choice.kind == "ivf_flat":
        return IvfFlat.build(rows, target_recall=target_recall, metric=metric, context=context)
    vectors = choice.estimates[0].vectors
    return IvfPq.build(rows, target_recall=target_recall, metric=metric, vectors=vectors, context=context)
