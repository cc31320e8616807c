"""Answers to keywords that an operation does not have: those of other libraries, and misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Collection

# Our names, and those of other libraries. The first of ours that the operation has is suggested.
_NAMES: dict[str, tuple[str, ...]] = {
    "threads": ("n_jobs", "num_threads", "n_threads", "nthreads", "num_workers", "workers"),
    "memory_limit": ("max_memory", "memory", "max_memory_bytes"),
    "device": ("gpu", "gpu_id", "device_id"),
    "seed": ("random_state", "random_seed", "rng"),
    "progress": ("verbose", "show_progress", "progressbar"),
    "degree": ("n_neighbors", "graph_degree", "num_neighbors", "k", "M", "R"),
    "k": ("n_neighbors", "topk", "top_k", "num_neighbors", "neighbors", "limit", "n_results"),
    "probes": ("nprobe", "n_probe", "n_probes", "num_probes", "nprobes"),
    "beam": ("ef", "ef_search", "efSearch", "itopk_size", "L"),
    "candidates": ("ef", "ef_search", "efSearch", "k_factor", "refine_factor", "oversampling", "rescore_multiplier"),
    "lists": ("nlist", "n_list", "n_lists", "num_lists", "num_partitions", "num_leaves"),
    "clusters": ("n_clusters", "num_clusters", "n_centroids", "k"),
    "iterations": ("n_iter", "niter", "max_iter", "n_iters", "kmeans_n_iters"),
    "tolerance": ("tol",),
    "initial": ("init", "init_centroids"),
    "seeding": ("init_method",),
    "codebooks": ("M", "m", "num_codebooks"),
    "parts": ("M", "m", "pq_dim", "n_subquantizers", "num_subquantizers", "num_sub_vectors"),
    "code_bytes": ("M", "m", "pq_dim", "code_size"),
    "bits": ("nbits", "n_bits", "pq_bits", "num_bits"),
    "training_rows": ("max_points", "max_points_per_centroid", "train_size", "kmeans_trainset_fraction"),
    "target_recall": ("recall", "recall_target"),
    "metric": ("metric_type", "space", "similarity", "distance_type"),
    "radius": ("eps", "epsilon", "thresh", "distance_threshold"),
    "distance": ("eps", "epsilon", "thresh", "distance_threshold", "threshold"),
    "rerank": ("refine", "rescore", "dataset"),
    "queries": ("xq", "query", "query_vectors", "q"),
    "base": ("xb", "data", "dataset", "X", "rows", "vectors"),
    "rows": ("xb", "x", "xt", "data", "dataset", "X", "vectors", "base"),
    "pad": ("short_rows",),
    "min_cluster_size": ("min_points_per_centroid",),
    "batch_size": ("minibatch_size",),
}


def unknown_argument(function: str, name: str, known: Collection[str], context_fields: Collection[str]) -> TypeError:
    """The error for a keyword `name` that `function` does not have.

    >>> unknown_argument("knn", "n_neighbors", ["queries", "base", "k"], ())
    TypeError("knn() has no argument 'n_neighbors'; did you mean 'k'?")
    """
    ours = [own for own, theirs in _NAMES.items() if name in theirs]
    fitting = [own for own in ours if own in known] or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if fitting:
        return TypeError(f"{function}() has no argument {name!r}; did you mean {fitting[0]!r}?")
    setting = next((own for own in [name, *ours] if own in context_fields), None)
    if setting is not None and "context" in known:
        return TypeError(f"{function}() has no argument {name!r}; give it in context=nearwise.Context({setting}=...)")
    listed = ", ".join(own for own in known if own not in ("self", "cls"))
    return TypeError(f"{function}() has no argument {name!r}; it takes {listed}")
