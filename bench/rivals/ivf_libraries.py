"""The inverted files that ivf_vs_faiss.py compares, each behind the same two calls.

A library is built over rows (`seconds` says how long its training and adding took) and then searched:
    search(probes, candidates, count)        neighbours [count, K] of the first queries in one call; None: of all
    search_one(row, probes, candidates)      of one query, given as one row of `queries`
    use_threads(count)
All look at the best candidates again in the rows themselves. Rows of the cosine metric are scaled to length 1 for rivals
beforehand: squared distances (Faiss) and products (ScaNN) then have the same order.
"""
import os
import tempfile
import time

import faiss
import numpy

import nearwise

K = 10


def unit(rows):
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


class Nearwise:
    def __init__(self, options, data, lists, code_bytes):
        self.base, self.queries = data.base, numpy.ascontiguousarray(data.queries)
        start = time.perf_counter()
        self.index = nearwise.IvfPq.train(self.base, lists=lists, code_bytes=code_bytes, metric=options.metric,
                                          iterations=options.iterations, threads=options.threads)
        middle = time.perf_counter()
        self.index.add(self.base)
        self.seconds = {"train": middle - start, "add": time.perf_counter() - middle}

        self.threads = options.threads

    def use_threads(self, count):
        if count == self.threads:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "index.nw")
            self.index.save(path)
            self.index = nearwise.load_ivf(path, threads=count)  # mapped: that outlives the name
        self.threads = count

    def search(self, probes, candidates, count=None):
        return self.search_one(self.queries[:count], probes, candidates)

    def search_one(self, row, probes, candidates):
        return self.index.search(row, K, probes=probes, rows=self.base, candidates=candidates).ids

    def codes(self, probes, k):
        return self.index.search(self.queries, k, probes=probes).ids


class Faiss:
    """kind: ivfpq (IndexIVFPQ with codes of 8 bits), fastscan (of 4 bits, as many bytes), rabitq (1 bit per dimension)."""

    def __init__(self, kind, options, data, lists, code_bytes):
        self.queries = data.float_queries
        dim = data.floats.shape[1]
        quantizer = faiss.IndexFlatL2(dim)
        self.index = {"ivfpq": lambda: faiss.IndexIVFPQ(quantizer, dim, lists, code_bytes, 8),
                      "fastscan": lambda: faiss.IndexIVFPQFastScan(quantizer, dim, lists, 2 * code_bytes, 4),
                      "rabitq": lambda: faiss.IndexIVFRaBitQ(quantizer, dim, lists)}[kind]()
        self.quantizer = quantizer  # Faiss does not keep it alive
        self.index.cp.niter = options.iterations
        start = time.perf_counter()
        self.index.train(data.floats)
        middle = time.perf_counter()
        self.index.add(data.floats)
        self.seconds = {"train": middle - start, "add": time.perf_counter() - middle}
        self.flat = faiss.IndexFlatL2(dim)
        self.flat.add(data.floats)
        self.refined = faiss.IndexRefine(self.index, self.flat)

    def use_threads(self, count):
        faiss.omp_set_num_threads(count)

    def search(self, probes, candidates, count=None):
        return self.search_one(self.queries[:count], probes, candidates)

    def search_one(self, row, probes, candidates):
        self.index.nprobe = probes
        self.refined.k_factor = candidates / K
        return self.refined.search(row, K)[1]

    def codes(self, probes, k):
        self.index.nprobe = probes
        return self.index.search(self.queries, k)[1]


class Scann:
    """A tree, asymmetric hashing of 4 bits for every 2 dimensions (its own advice, whatever code_bytes says), reordering."""

    def __init__(self, options, data, lists, code_bytes):
        import scann  # only where it is asked for: it brings a runtime of its own

        del code_bytes
        self.queries = data.float_queries
        product = options.metric == "cosine"
        start = time.perf_counter()
        builder = scann.scann_ops_pybind.builder(data.floats, K, "dot_product" if product else "squared_l2")
        builder.set_n_training_threads(options.threads)
        hashing = {"anisotropic_quantization_threshold": 0.2} if product else {}
        self.searcher = (builder.tree(num_leaves=lists, num_leaves_to_search=1, training_iterations=options.iterations,
                                      training_sample_size=min(len(data.floats), 256 * lists))
                         .score_ah(2, **hashing).reorder(100).build())
        self.seconds = {"train": time.perf_counter() - start, "add": 0.0}
        self.threads = options.threads

    def use_threads(self, count):
        self.threads = count
        self.searcher.set_num_threads(count)

    def search(self, probes, candidates, count=None):
        call = self.searcher.search_batched if self.threads == 1 else self.searcher.search_batched_parallel
        return call(self.queries[:count], final_num_neighbors=K, pre_reorder_num_neighbors=candidates, leaves_to_search=probes)[0]

    def search_one(self, row, probes, candidates):
        return self.searcher.search(row[0], final_num_neighbors=K, pre_reorder_num_neighbors=candidates,
                                    leaves_to_search=probes)[0]


def build(name, options, data, lists, code_bytes):
    if name == "nearwise":
        return Nearwise(options, data, lists, code_bytes)
    if name == "scann":
        return Scann(options, data, lists, code_bytes)
    return Faiss(name, options, data, lists, code_bytes)


RIVALS = ("fastscan", "ivfpq", "rabitq", "scann")
