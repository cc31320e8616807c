"""The inverted files that ivf_vs_faiss.py compares, behind one interface.

A library is trained on and filled with the rows (`seconds`), then searched with re-ranking by the rows themselves:
    search(queries, probes, candidates)     ids [queries, K]
    codes(probes, k)                        ids [all queries, k], without re-ranking
    use_threads(count)
`queries` are all queries in the form that the library takes.
"""
import os
import tempfile

import faiss
import numpy
from common import timed

import nearwise

K = 10


class Nearwise:
    def __init__(self, _, options, data, lists, code_bytes):
        self.base, self.queries, self.threads = data.base, numpy.ascontiguousarray(data.queries), options.threads
        self.index, training, _ = timed(lambda: nearwise.IvfPq.train(
            self.base, lists=lists, code_bytes=code_bytes, metric=options.metric, iterations=options.iterations,
            threads=options.threads))
        self.seconds = {"train": training, "add": timed(lambda: self.index.add(self.base))[1]}

    def use_threads(self, count):
        if count != self.threads:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "index.nw")
                self.index.save(path)
                # The mapping outlives the file's name.
                self.index = nearwise.load(path, nearwise.Ivf, threads=count)
            self.threads = count

    def search(self, queries, probes, candidates):
        return self.index.search(queries, K, probes=probes, candidates=candidates).ids

    def codes(self, probes, k):
        return self.index.search(self.queries, k, probes=probes, codes_only=True).ids


class Faiss:
    """ivfpq: IndexIVFPQ with 8-bit codes; fastscan: 4-bit codes of the same size."""

    def __init__(self, name, options, data, lists, code_bytes):
        self.queries = data.float_queries
        dim = data.floats.shape[1]
        self.quantizer = faiss.IndexFlatL2(dim)  # Faiss does not keep it alive
        self.index = (faiss.IndexIVFPQ(self.quantizer, dim, lists, code_bytes, 8) if name == "ivfpq" else
                      faiss.IndexIVFPQFastScan(self.quantizer, dim, lists, 2 * code_bytes, 4))
        self.index.cp.niter = options.iterations
        self.seconds = {"train": timed(lambda: self.index.train(data.floats))[1],
                        "add": timed(lambda: self.index.add(data.floats))[1]}
        self.flat = faiss.IndexFlatL2(dim)
        self.flat.add(data.floats)
        self.refined = faiss.IndexRefine(self.index, self.flat)

    def use_threads(self, count):
        faiss.omp_set_num_threads(count)

    def search(self, queries, probes, candidates):
        self.index.nprobe = probes
        self.refined.k_factor = candidates / K
        return self.refined.search(queries, K)[1]

    def codes(self, probes, k):
        self.index.nprobe = probes
        return self.index.search(self.queries, k)[1]


class Scann:
    """A tree, asymmetric hashing of 2 dimensions in 4 bits as its authors advise (code_bytes is ignored), reordering."""

    def __init__(self, _, options, data, lists, code_bytes):
        import scann  # only here: it brings a runtime of its own

        self.queries, self.threads = data.float_queries, options.threads
        product = options.metric == "cosine"
        builder = scann.scann_ops_pybind.builder(data.floats, K, "dot_product" if product else "squared_l2")
        builder.set_n_training_threads(options.threads)
        hashing = {"anisotropic_quantization_threshold": 0.2} if product else {}
        builder = builder.tree(num_leaves=lists, num_leaves_to_search=1, training_iterations=options.iterations,
                               training_sample_size=min(len(data.floats), 256 * lists))
        self.searcher, training, _ = timed(builder.score_ah(2, **hashing).reorder(100).build)
        self.seconds = {"train": training, "add": 0.0}

    def use_threads(self, count):
        self.threads = count
        self.searcher.set_num_threads(count)

    def search(self, queries, probes, candidates):
        limits = {"final_num_neighbors": K, "pre_reorder_num_neighbors": candidates, "leaves_to_search": probes}
        if len(queries) == 1:
            return self.searcher.search(queries[0], **limits)[0][None]
        batched = self.searcher.search_batched if self.threads == 1 else self.searcher.search_batched_parallel
        return batched(queries, **limits)[0]


RIVALS = {"fastscan": Faiss, "ivfpq": Faiss, "scann": Scann}


def build(name, options, data, lists, code_bytes):
    return (Nearwise if name == "nearwise" else RIVALS[name])(name, options, data, lists, code_bytes)
