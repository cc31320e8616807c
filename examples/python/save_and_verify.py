"""Save a result atomically with its origin, and verify it when it is loaded."""

import nearwise
import numpy as np

base = np.random.default_rng(7).standard_normal((2000, 32), dtype=np.float32)
found = nearwise.knn(base, base, k=10, metric="inner_product")
nearwise.save("result.nw", found, metric="inner_product", provenance={"base": "2000 normal vectors, seed 7"})

saved = nearwise.load("result.nw", nearwise.SavedNeighbors)
print("metric:", saved.metric)
print("provenance:", saved.provenance["base"])
print("equal:", bool((saved.neighbors.ids == found.ids).all()))
print("verified:", nearwise.verify("result.nw"))

# A single changed bit is detected.
with open("result.nw", "r+b") as file:
    file.seek(5000)
    byte = file.read(1)[0]
    file.seek(5000)
    file.write(bytes([byte ^ 1]))
try:
    nearwise.load("result.nw")
except nearwise.Error as error:
    print(f"{error.code}: {error}")
