"""An inverted file: a small index of many rows that answers in a fraction of the time, and how much of the truth it finds."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
centres = random.standard_normal((100, 64), dtype=np.float32)
rows = centres[random.integers(0, 100, 20_000)] + 0.5 * random.standard_normal((20_000, 64), dtype=np.float32)
queries = rows[:200] + 0.1 * random.standard_normal((200, 64), dtype=np.float32)

# In one step, without a number: lists and codes follow from the rows, and how many lists a search must look at is measured.
index = nearwise.IvfPq.build(rows, seed=1)
print(f"{index.measured.recall:.3f} of the nearest found in {index.probes} of {index.lists} lists")

# Or step by step. Training finds the lists and the codes; then rows come in, in as many batches as you like.
index = nearwise.IvfPq.train(rows, lists=128, code_bytes=16, seed=1)
index.add(rows[:15_000])
index.add(rows[15_000:])
print(index)

truth = nearwise.knn(queries, rows, k=10)


def recall(found):
    """The share of the true ten nearest that was found."""
    return np.mean([len(set(true) & set(ids)) / 10 for true, ids in zip(truth.ids, found.ids)])


# More lists cost time and find more.
for probes in (1, 4, 16):
    print(f"{probes:2} of {index.lists} lists: recall {recall(index.search(queries, k=10, probes=probes)):.3f}")

# Codes blur distances. A second look at the best candidates, in the rows themselves, makes them true.
looked_again = index.search(queries, k=10, probes=16, rows=rows, candidates=200)
print(f"with a second look: recall {recall(looked_again):.3f}")

# What is saved is mapped when it comes back: the same answers, at once.
index.probes = 16
index.save("index.nw")
loaded = nearwise.load_ivf("index.nw")
same = loaded.search(queries, k=10, rows=rows, candidates=200)
print("the same answers from the file:", bool((same.ids == looked_again.ids).all()))

# Rows may go, and come under ids of your own.
print("removed:", loaded.remove([0, 1, 2]))
loaded.add(rows[:1], ids=[1_000_000])
print("row 0 is now", loaded.search(rows[:1], k=1).ids[0, 0])
