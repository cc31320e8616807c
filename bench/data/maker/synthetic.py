"""The `synthetic` set: clusters on random subspaces, of any size, in constant memory.

Cluster sizes follow a power law. Each cluster is a Gaussian on its own random subspace of
a few dimensions, plus a little noise in all of them. Every block of rows draws from its
own counter-based stream, so a shorter set is a prefix of a longer one.
"""
import numpy as np

from .file_formats import write_header

BLOCK_ROWS = 65_536  # part of the recipe: changing it changes every vector
# The shape of the mixture.
MIXTURE = {
    "intrinsic": 16,  # dimensions of each cluster
    "clusters": 1000,
    "spread": 1.0,  # distance of cluster centres, in cluster radii
    "noise": 0.05,  # noise in all dimensions, in cluster radii
    "zipf": 0.5,  # exponent of the cluster sizes
    "seed": 1,
}
# Streams are keyed by what they are for, so that queries never repeat base vectors.
MIXTURE_STREAM, BASE_STREAM, QUERY_STREAM = range(3)


def random_stream(purpose, block):
    return np.random.Generator(np.random.Philox(key=[MIXTURE["seed"], purpose * (1 << 40) + block]))


class Mixture:
    def __init__(self, dimensions):
        clusters, spread, intrinsic = MIXTURE["clusters"], MIXTURE["spread"], MIXTURE["intrinsic"]
        random = random_stream(MIXTURE_STREAM, 0)
        root = dimensions ** 0.5
        self.centres = random.standard_normal((clusters, dimensions), np.float32) * np.float32(spread / root)
        bases = random.standard_normal((clusters, intrinsic, dimensions), np.float32)
        bases /= np.linalg.norm(bases, axis=2, keepdims=True)
        bases /= np.float32(intrinsic ** 0.5)
        self.bases = bases  # [clusters, intrinsic, dimensions]
        weights = 1.0 / np.arange(1, clusters + 1) ** MIXTURE["zipf"]
        self.cumulative_weights = np.cumsum(weights / weights.sum())
        self.noise = np.float32(MIXTURE["noise"] / root)

    def draw_block(self, purpose, block):
        """Always BLOCK_ROWS rows, even if fewer are used: the stream must not depend on the size."""
        clusters, intrinsic, dimensions = self.bases.shape
        random = random_stream(purpose, block)
        cluster = np.searchsorted(self.cumulative_weights, random.random(BLOCK_ROWS))
        cluster = np.minimum(cluster, clusters - 1)
        position = random.standard_normal((BLOCK_ROWS, intrinsic), np.float32)
        vectors = random.standard_normal((BLOCK_ROWS, dimensions), np.float32)
        vectors *= self.noise
        # Rows of one cluster together: one matrix product for each cluster instead of one for each row.
        order = np.argsort(cluster, kind="stable")
        bounds = np.searchsorted(cluster[order], np.arange(clusters + 1))
        for index in np.flatnonzero(np.diff(bounds)):
            rows = order[bounds[index]:bounds[index + 1]]
            vectors[rows] += position[rows] @ self.bases[index] + self.centres[index]
        return vectors


def make(options, _, folder):
    mixture = Mixture(options.dim)
    base_rows = options.n or (50_000 if options.small else 1_000_000)
    query_rows = 1_000 if options.small else 10_000
    for purpose, name, rows in ((BASE_STREAM, "base", base_rows), (QUERY_STREAM, "query", query_rows)):
        with open(folder / f"{name}.fbin", "wb") as file:
            write_header(file, rows, options.dim)
            for block, start in enumerate(range(0, rows, BLOCK_ROWS)):
                mixture.draw_block(purpose, block)[:rows - start].tofile(file)
    return ".fbin"
