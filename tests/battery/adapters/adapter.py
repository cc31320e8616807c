"""What a case asks of a library.

Methods are called in a child process that has called load_library(). What a library does not have is named in
`lacks`, so that cases that need it do not apply:

    k            a number of neighbours
    queries      vectors that are compared with those of the index
    dim          vectors of a fixed dimension
    extend       adding to what has been added
    ids          ids of the caller's own
    remove, get  by id
    save         files
    grow         files that grow with the number of vectors
    map          opening a file without reading it into memory
    cosine       the metric
    bulk         vectors by the hundred thousand in seconds
    declared     a dimension that is given as a number, not by the data
    capacity     a number of vectors that is given beforehand
"""

import importlib
import importlib.metadata
from pathlib import Path

from outcomes import NotApplicable
from vectors import DIM, QUERIES, ROWS, SMALL, K, nearest, recall


class Adapter:
    name = ""
    package = ""  # on the package index
    module = ""
    lacks: frozenset[str] = frozenset()
    least_recall = 0.9  # of the 10 nearest, with the parameters chosen here
    threads: int | None = None  # None: the library's default
    marks_missing = True  # with id -1
    quick = False  # few trials
    suffix = ""  # that names of files must have

    def __init__(self, folder):
        self.folder = Path(folder)  # for files

    @property
    def base_path(self):
        """A saved index of ROWS, once the runner has prepared it."""
        return self.folder / "base"

    @property
    def small_path(self):
        """One of ROWS[:SMALL]."""
        return self.folder / "small"

    def version(self):
        return importlib.metadata.version(self.package)

    def is_documented(self, error):
        """Whether the library documents exceptions of this class as its errors. Most document none."""
        return isinstance(error, Exception)

    def load_library(self):
        self.library = importlib.import_module(self.module)

    def empty(self, dim=DIM, metric="sqeuclidean", capacity=20_000):
        """A new index without vectors, trained if its kind needs it."""
        raise NotImplementedError

    def add(self, index, vectors, ids=None):
        raise NotImplementedError

    def search(self, index, queries, k):
        """(ids, distances), as [queries, k]; id -1 where there is none."""
        raise NotImplementedError

    def size(self, index):
        raise NotImplementedError

    def save(self, index, path):
        raise NotImplementedError

    def load(self, path, dim=DIM):
        raise NotImplementedError

    def map(self, path):
        raise NotImplementedError

    def remove(self, index, ids):
        raise NotImplementedError

    def get(self, index, id):
        raise NotImplementedError

    def long_call(self):
        """A call of many seconds."""
        raise NotImplementedError

    def declared(self, dim):
        """A new index of this dimension, not yet trained."""
        return self.empty(dim)

    def degenerate(self):
        """An index with senseless parameters; with ROWS[:500], if it can be searched."""
        raise NotApplicable("no such parameters")

    def train(self, vectors):
        """Trains a new index on these."""
        raise NotApplicable("is not trained")

    def untrained(self):
        raise NotApplicable("there is no untrained index")

    def with_huge_count(self, content):
        """The bytes of a file whose header claims far more vectors than it holds."""
        raise NotApplicable("the header is covered by a checksum")

    # What follows is made of the above.

    def prepare(self):
        """Writes the files that cases use."""
        if "save" not in self.lacks:
            self.save(self.built(ROWS[:SMALL]), self.small_path)
            self.save(self.built(ROWS), self.base_path)

    def built(self, vectors=None):
        if vectors is None and self.base_path.exists():
            return self.load(self.base_path)
        index = self.empty()
        self.add(index, ROWS if vectors is None else vectors)
        return index

    def answers(self, index):
        """Arrays that depend on everything an index has stored."""
        return self.search(index, QUERIES, K)

    def quality(self, index):
        """The recall of an index of ROWS."""
        return recall(self.search(index, QUERIES, K)[0], nearest(ROWS, QUERIES, K))
