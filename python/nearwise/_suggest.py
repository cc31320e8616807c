"""Answers to names that an operation, an index or the package does not have: misspelt, or of other libraries."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

# Our names, and those of other libraries. The first of ours that the operation has is suggested.
_NAMES: dict[str, tuple[str, ...]] = {
    "threads": ("n_jobs", "num_threads", "n_threads", "nthreads", "num_workers", "workers"),
    "memory_limit": ("max_memory", "memory", "max_memory_bytes"),
    "device": ("gpu", "gpu_id", "device_id"),
    "seed": ("random_state", "random_seed", "rng"),
    "progress": ("verbose", "show_progress", "progressbar"),
    "degree": ("n_neighbors", "graph_degree", "num_neighbors", "k", "M", "R"),
    "k": ("n_neighbors", "topk", "top_k", "num_neighbors", "neighbors", "limit", "n_results"),
    "probes": ("nprobe", "n_probe", "n_probes", "num_probes", "nprobes", "beam"),
    "beam": ("ef", "ef_search", "efSearch", "itopk_size", "L", "nprobe", "n_probe", "n_probes", "num_probes", "probes"),
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
    "target_recall": ("recall", "recall_target", "accuracy", "nprobe", "probes", "beam", "ef", "ef_search"),
    "graph_recall": ("ef_construction", "efConstruction"),
    "metric": ("metric_type", "space", "similarity", "distance_type", "dist"),
    "radius": ("eps", "epsilon", "thresh", "distance_threshold", "max_distance"),
    "similarity": ("threshold", "thresh", "min_similarity", "similarity_threshold"),
    "filter": ("where", "mask", "selector", "sel", "params", "allowed", "filter_function"),
    "ids": ("labels", "keys", "id"),
    "on_duplicate": ("upsert", "overwrite", "replace_deleted"),
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


def too_many_arguments(function: str, count: int, by_position: list[str], names: list[str]) -> TypeError:
    """The error for `count` values by position where fewer are taken.

    >>> too_many_arguments("knn", 4, ["queries", "base", "k"], ["queries", "base", "k", "metric", "pad"])
    TypeError('knn() takes queries, base, k as positional arguments, got 4; give the others by name: metric=, pad=')
    """
    own = 1 if by_position[:1] in (["self"], ["cls"]) else 0
    taken = ", ".join(by_position[own:]) or "nothing"
    others = [f"{each}=" for each in names[len(by_position) :]]
    if not others:
        return TypeError(f"{function}() takes {taken} as positional arguments, got {count - own}")
    return TypeError(
        f"{function}() takes {taken} as positional arguments, got {count - own}; "
        f"give the others by name: {', '.join(others)}"
    )


# What to write for names of Faiss, hnswlib, usearch, pynndescent, scikit-learn and cuVS.
_EXACT = "nearwise.Exact(base), or nearwise.knn(queries, base, k) for one search"
_GRAPH = "nearwise.GraphIndex.build(rows)"
_THREADS = "index.search(queries, k, context=nearwise.Context(threads=...))"
_OF_PACKAGE: dict[str, tuple[str, ...]] = {
    _EXACT: ("IndexFlat", "IndexFlatL2", "BFIndex", "BruteForce", "brute_force", "brute_force_knn", "knn_gpu"),
    'nearwise.Exact(base, metric="inner_product")': ("IndexFlatIP",),
    "nearwise.knn(queries, base, k), or index.search(queries, k)": ("search", "query", "nearest", "find", "kneighbors"),
    "nearwise.IvfFlat.build(rows)": ("IndexIVFFlat", "ivf_flat"),
    "nearwise.IvfPq.build(rows)": ("IndexIVFPQ", "IndexIVFPQFastScan", "IndexPQ", "IndexPQFastScan", "ivf_pq"),
    _GRAPH: ("Index", "HNSW", "Hnsw", "hnsw", "IndexHNSW", "IndexHNSWFlat", "IndexNSG", "IndexNSGFlat", "cagra"),
    "nearwise.build(rows)": ("index_factory", "AutoIndex", "create_index", "build_index"),
    "nearwise.build_knn_graph(rows, degree)": ("NNDescent", "IndexNNDescent", "nn_descent", "kneighbors_graph"),
    "nearwise.train_kmeans(rows, clusters)": ("Kmeans", "kmeans", "MiniBatchKMeans"),
    "nearwise.sklearn.NearestNeighbors, after import nearwise.sklearn": ("NearestNeighbors", "KNeighborsTransformer"),
    'metric="cosine", which needs no normalized vectors': ("normalize_L2", "normalize"),
    "nearwise.load(path)": ("read_index", "load_index", "restore", "open"),
    "index.save(path)": ("write_index", "save_index"),
    "index.add(rows, ids)": ("IndexIDMap", "IndexIDMap2"),
    "filter= and exclude= of every search": ("IDSelector", "IDSelectorBatch", "IDSelectorArray", "IDSelectorRange"),
    'device="cuda" of every operation': ("StandardGpuResources", "index_cpu_to_gpu", "GpuIndexFlatL2"),
    "threads= of every operation": ("omp_set_num_threads", "set_num_threads"),
    "the text, such as 'sqeuclidean' or 'inner_product'": ("METRIC_L2", "METRIC_INNER_PRODUCT", "MetricKind"),
}
# {knob}: what the search of the class has to trade recall for speed.
_OF_INDEX: dict[str, tuple[str, ...]] = {
    "index.search(queries, k)": ("knn_query", "query", "kneighbors", "knn", "nearest", "find", "search_batch"),
    "{knob}": (
        *("nprobe", "probes", "n_probes", "set_nprobe", "ef", "set_ef", "efSearch", "ef_search", "beam", "hnsw"),
        *("expansion_search", "candidates", "k_factor"),
    ),
    _THREADS: ("num_threads", "set_num_threads", "threads"),
    "index.add(rows, ids)": ("add_items", "add_with_ids", "insert", "append", "extend", "add_vectors"),
    'index.add(rows, ids, on_duplicate="replace")': ("upsert",),
    "index.remove(ids)": ("remove_ids", "mark_deleted", "delete", "delete_items", "pop"),
    "index.get(ids)": ("reconstruct", "reconstruct_batch", "reconstruct_n", "get_items", "get_vector", "vectors"),
    "index.save(path)": ("save_index", "write", "write_index", "dump", "serialize"),
    "nearwise.load(path)": ("load", "load_index", "read_index", "restore", "view"),
    "len(index)": ("ntotal", "count", "get_current_count", "element_count", "n_items", "num_vectors"),
    "index.dim": ("d", "ndim", "dimension", "dimensions"),
    "index.metric": ("metric_type", "space"),
    "nearwise.build(rows), or build of a class: they make an index that is filled": ("train", "fit", "init_index"),
    "index.calibrate(target_recall=...)": ("tune", "autotune", "optimize", "target_recall"),
    "nearwise.IvfFlat.build(rows, lists=...)": ("nlist", "n_lists", "num_lists"),
}
# Not what is called: setting these would do nothing.
_SETTINGS = frozenset(
    {"nlist", "n_lists", "num_lists", "target_recall"}.union(
        *(_OF_INDEX[key] for key in ("{knob}", _THREADS, "index.metric"))
    )
)
_OF_GRAPH: dict[str, tuple[str, ...]] = {
    "ids and distances": ("neighbor_graph", "indices", "neighbors_", "kneighbors", "graph", "knn"),
    "nearwise.GraphIndex.from_knn_graph(graph, rows), which is searched": ("search", "query", "knn_query", "prepare"),
    "to_csr()": ("tocsr", "kneighbors_graph", "to_scipy", "adjacency"),
}


def missing_name(name: str, public: Collection[str]) -> AttributeError:
    """The error for a name that the package does not have.

    >>> missing_name("IndexIVFFlat", [])
    AttributeError("module 'nearwise' has no attribute 'IndexIVFFlat'; write nearwise.IvfFlat.build(rows)")
    """
    text = f"module 'nearwise' has no attribute {name!r}"
    if name in ("sklearn", "cluster", "arrow"):
        return AttributeError(f"{text}; import nearwise.{name} first")
    names = [each for each in public if not each.startswith("_")]
    return AttributeError(text + _instead(name, _OF_PACKAGE, names, "nearwise."))


def _instead(name: str, words: dict[str, tuple[str, ...]], public: Collection[str], prefix: str) -> str:
    meant = {theirs: own for own, names in words.items() for theirs in names}
    if name in meant:
        return f"; write {meant[name]}"
    known = {each.lower(): own for each, own in meant.items()} | {each.lower(): prefix + each for each in public}
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.7)
    return f"; did you mean {known[near[0]]}?" if near else ""


class NamesWays:
    """Of objects: attributes that they do not have name what is meant."""

    _words = _OF_INDEX
    _knob = ""

    if not TYPE_CHECKING:  # checkers of types see the attributes that there are

        def __getattr__(self, name: str) -> Any:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name.startswith("_"):
                raise AttributeError(text)
            public = [each for each in dir(type(self)) if not each.startswith("_")]
            raise AttributeError(text + _instead(name, self._words, public, "index.").format(knob=self._knob))


class NamesGraphWays(NamesWays):
    """Of k-NN graphs."""

    _words = _OF_GRAPH


class RefusesSettings(NamesWays):
    """Of indexes: setting what other libraries search by, such as nprobe, is an error, as no search would read it."""

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None:
            if name in _SETTINGS and not hasattr(type(self), name):
                self.__getattr__(name)
            object.__setattr__(self, name, value)
