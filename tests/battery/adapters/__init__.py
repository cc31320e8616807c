"""The libraries under test: an adapter for every kind of index."""

from adapters import faiss_kinds, hnswlib_kinds, nearwise_kinds, nearwise_quantizers, usearch_kinds

ADAPTERS = (
    *nearwise_kinds.ADAPTERS,
    *nearwise_quantizers.ADAPTERS,
    *faiss_kinds.ADAPTERS,
    *hnswlib_kinds.ADAPTERS,
    *usearch_kinds.ADAPTERS,
)
