"""An inverted file: a small index that answers in a fraction of the time, at a measured recall."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
centres = random.standard_normal((100, 64), dtype=np.float32)
rows = centres[random.integers(0, 100, 20_000)] + 0.5 * random.standard_normal((20_000, 64), dtype=np.float32)
queries = rows[:200] + 0.1 * random.standard_normal((200, 64), dtype=np.float32)

# In one step: the numbers of lists and code bytes follow from the vectors, and the probes are calibrated.
index = nearwise.IvfPq.build(rows, seed=1)
assert index.calibration is not None
print(f"recall {index.calibration.recall} with {index.probes} of {index.lists} lists")

# Or step by step: train an empty index, then add vectors in any number of batches.
index = nearwise.IvfPq.train(rows, lists=128, code_bytes=16, seed=1)
index.add(rows[:15_000])
index.add(rows[15_000:])
print(index)

truth = nearwise.knn(queries, rows, k=10)


def recall(found: nearwise.Neighbors) -> float:
    """The share of the ten nearest that was found."""
    return float(np.mean([len(set(true) & set(ids)) / 10 for true, ids in zip(truth.ids, found.ids)]))


# More probes take longer and find more.
for probes in (1, 4, 16):
    print(f"{probes:2} of {index.lists} lists: recall {recall(index.search(queries, k=10, probes=probes)):.3f}")

# Distances to codes are inexact: the best candidates are compared with the vectors, which the index keeps.
codes = index.search(queries, k=10, probes=16, codes_only=True)
reranked = index.search(queries, k=10, probes=16, candidates=200)
print(f"by codes alone: recall {recall(codes):.3f}, re-ranked: {recall(reranked):.3f}")

# A saved index is mapped, not read. The same results, without waiting.
index.probes = 16
index.save("index.nw")
loaded = nearwise.load("index.nw", nearwise.Ivf, threads=1)
same = loaded.search(queries, k=10, candidates=200)
print("the same results from the file:", bool((same.ids == reranked.ids).all()))

# Vectors are found by id, can be removed, and added under ids of your own.
print("vector 7:", 7 in loaded, bool((loaded.get([7]) == rows[7]).all()))
print("removed:", loaded.remove([0, 1, 2]))
loaded.add(rows[:1], ids=[1_000_000])
print("vector 0 now has the id", loaded.search(rows[:1], k=1).ids[0, 0])
