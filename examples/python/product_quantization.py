"""Vectors in codes of 8 bytes: a search over codes finds candidates, which are re-ranked with the vectors."""

import nearwise
import numpy as np

random = np.random.default_rng(7)
hidden = random.standard_normal((20_000, 12), dtype=np.float32)
base = hidden @ random.standard_normal((12, 32), dtype=np.float32)
queries = base[:5] + 0.1 * random.standard_normal((5, 32), dtype=np.float32)

plain = nearwise.ProductQuantizer.train(base, parts=8, training_rows=5120, iterations=5)
print(plain, f"error {plain.error(base):.1f}")
quantizer = nearwise.OptimizedProductQuantizer.train(base, parts=8, training_rows=5120, iterations=5)
print(quantizer, f"error {quantizer.error(base):.1f}")

codes = quantizer.encode(base)
print(f"{base.nbytes} bytes of vectors, {codes.nbytes} bytes of codes")

# The distance of a query to a reconstruction is the sum of the table entries of its code.
tables = quantizer.tables(queries)
parts = [np.take(tables[:, part], codes[:, part], axis=1) for part in range(quantizer.parts)]
estimates = np.sum(parts, axis=0, dtype=np.float32)
candidates = nearwise.select_k(estimates, k=50).ids
for number, query in enumerate(queries):
    ids, _ = nearwise.knn(query, base[candidates[number]], k=3)
    print(f"query {number}: {candidates[number][ids].tolist()}")
print("exact results:", nearwise.knn(queries, base, k=3).ids.tolist())
