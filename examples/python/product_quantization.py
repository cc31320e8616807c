"""Rows in 8 bytes each: a search over their codes finds candidates, the rows themselves decide among them."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
hidden = random.standard_normal((20_000, 12), dtype=np.float32)
base = hidden @ random.standard_normal((12, 32), dtype=np.float32)
queries = base[:5] + 0.1 * random.standard_normal((5, 32), dtype=np.float32)

for kind in (nearwise.ProductQuantizer, nearwise.OptimizedProductQuantizer):
    quantizer = kind.train(base, parts=8, rows_per_centroid=20, iterations=5)
    print(quantizer, f"error {quantizer.error(base):.1f}")

codes = quantizer.encode(base)
print(f"{base.nbytes} bytes of rows, {codes.nbytes} bytes of codes")

# The distance of a query from a decoded row is the sum of the entries that its code names.
tables = quantizer.tables(queries)
estimates = sum(np.take(tables[:, part], codes[:, part], axis=1) for part in range(quantizer.parts))
candidates = nearwise.select_k(estimates, k=50).ids
for number, query in enumerate(queries):
    ids, _ = nearwise.knn(query[None], base[candidates[number]], k=3)
    print(f"question {number}: rows {candidates[number][ids[0]].tolist()}")
print("exact answers:", nearwise.knn(queries, base, k=3).ids.tolist())
