"""nearwise for ann-benchmarks: belongs into ann_benchmarks/algorithms/nearwise/ of its checkout (README.md)."""
import nearwise
import numpy as np

from ..base.module import BaseANN

# Settings of a search, in the order in which config.yml names them.
SETTINGS = {"exact": (), "ivf_flat": ("probes",), "ivf_pq": ("probes", "candidates"), "graph": ("beam",)}
BUILD = {"ivf_flat": nearwise.IvfFlat.build, "ivf_pq": nearwise.IvfPq.build, "graph": nearwise.GraphIndex.build}

ONE_THREAD = nearwise.Context(threads=1)
ALL_THREADS = nearwise.Context()


class Nearwise(BaseANN):
    """One kind of index. `options` are those of its `build`."""

    def __init__(self, metric, kind, options=None):
        self._metric = {"angular": "cosine", "euclidean": "euclidean"}[metric]
        self._kind = kind
        self._options = options or {}
        self._setting = {}
        self.name = f"nearwise {kind} {self._options}"

    def fit(self, X):
        rows = np.ascontiguousarray(X, np.float32)
        if self._kind == "exact":
            self._index = nearwise.Exact(rows, metric=self._metric)
        else:
            self._index = BUILD[self._kind](rows, metric=self._metric, **self._options)

    def set_query_arguments(self, *values):
        self._setting = dict(zip(SETTINGS[self._kind], values, strict=True))
        self.name = f"nearwise {self._kind} {self._options} {self._setting}"

    def _found(self, queries, n, context):
        # Settings are for all data sets: small ones have fewer lists, and runs may ask for more neighbors.
        setting = {key: min(value, self._index.lists) if key == "probes" else max(value, n)
                   for key, value in self._setting.items()}
        return self._index.search(queries, n, context=context, **setting).ids

    def query(self, v, n):
        # ann-benchmarks gives single queries one CPU.
        found = self._found(np.asarray(v, np.float32), n, ONE_THREAD)
        return found if found[-1] >= 0 else found[found >= 0]

    def batch_query(self, X, n):
        self.res = self._found(np.ascontiguousarray(X, np.float32), n, ALL_THREADS)

    def get_batch_results(self):
        return [found[found >= 0] for found in self.res]
