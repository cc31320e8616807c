"""The definition of an answer, slow and obvious, in double precision.

A distance is summed in float64, element i into lane i mod 8, the eight lanes combined in a fixed order, and rounded
once to float32; neighbours are ordered by (distance, id). So answers can be compared bit for bit.
"""

import numpy as np

METRICS = ("sqeuclidean", "euclidean", "inner_product", "cosine")


def _sum_in_lanes(terms):
    """[queries, rows, dim] -> [queries, rows]"""
    lanes = np.zeros(terms.shape[:2] + (8,))
    for element in range(terms.shape[2]):
        lanes[:, :, element % 8] += terms[:, :, element]
    lane = np.moveaxis(lanes, 2, 0)
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))


def distances(queries, base, metric):
    """float32 [queries, rows]"""
    q = np.asarray(queries).astype(np.float64)[:, None, :]
    b = np.asarray(base).astype(np.float64)[None, :, :]
    if metric in ("sqeuclidean", "euclidean"):
        total = _sum_in_lanes((q - b) * (q - b))
        return (np.sqrt(total) if metric == "euclidean" else total).astype(np.float32)
    total = _sum_in_lanes(q * b)
    if metric == "inner_product":
        return total.astype(np.float32)
    norms = _sum_in_lanes(q * q) * _sum_in_lanes(b * b)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.clip(1 - total / np.sqrt(norms), 0, 2)
    return np.where(norms == 0, 1, cosine).astype(np.float32)


def knn(queries, base, k, metric="sqeuclidean"):
    """ids and distances [queries, k], padded with -1 where the base is short"""
    found = distances(queries, base, metric)
    key = -found if metric == "inner_product" else found
    order = np.argsort(key, axis=1, kind="stable")[:, :k]
    ids = np.full((len(found), k), -1, np.int64)
    values = np.full((len(found), k), -np.inf if metric == "inner_product" else np.inf, np.float32)
    ids[:, : order.shape[1]] = order
    values[:, : order.shape[1]] = np.take_along_axis(found, order, axis=1)
    return ids, values


def range_search(queries, base, radius, metric="sqeuclidean"):
    """offsets, ids and distances"""
    found = distances(queries, base, metric)
    key = -found if metric == "inner_product" else found
    ids, values = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for row, order in zip(found, np.argsort(key, axis=1, kind="stable")):
        inside = row[order] >= radius if metric == "inner_product" else row[order] <= radius
        ids.append(order[inside])
        values.append(row[order][inside])
    offsets = np.cumsum([len(part) for part in ids])
    return offsets, np.concatenate(ids), np.concatenate(values)


def knn_graph(base, k, metric="sqeuclidean"):
    """As knn of all rows, but no row finds itself."""
    ids, values = knn(base, base, len(base) + k, metric)
    others = ids != np.arange(len(base))[:, None]
    first = np.argsort(~others, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(ids, first, axis=1), np.take_along_axis(values, first, axis=1)


def _unit(values):
    """Rows of length 1; a zero row stays zero."""
    length = np.sqrt(_sum_in_lanes((values * values)[:, None, :]))
    return np.divide(values, length, out=values.copy(), where=length != 0)


def lloyd(rows, initial, iterations, metric="sqeuclidean"):
    """centroids, sizes [iterations, clusters] and errors of Lloyd's iterations; a cluster without rows keeps its centroid"""
    values = np.asarray(rows).astype(np.float64)
    centroids = np.asarray(initial).astype(np.float64)
    if metric == "cosine":
        values = _unit(values)
    if metric != "sqeuclidean":
        centroids = _unit(centroids)
    centroids = centroids.astype(np.float32)
    sizes, errors = [], []
    for _ in range(iterations):
        nearest = knn(rows, centroids, 1, metric)[0][:, 0]
        errors.append(((values - centroids[nearest].astype(np.float64)) ** 2).sum())
        sums = np.zeros(centroids.shape)
        np.add.at(sums, nearest, values)  # one row after the other
        sizes.append(np.bincount(nearest, minlength=len(centroids)))
        means = sums / np.maximum(sizes[-1], 1)[:, None] if metric == "sqeuclidean" else _unit(sums)
        keep = (sizes[-1] == 0) if metric == "sqeuclidean" else ~sums.any(axis=1)
        centroids = np.where(keep[:, None], centroids, means.astype(np.float32))
    return centroids, np.array(sizes), np.array(errors)


def _check_fields(found, expected):
    for left, right in zip(found, expected):
        np.testing.assert_array_equal(left, right)


def check_graph(found, base, k, metric="sqeuclidean"):
    _check_fields(found, knn_graph(base, k, metric))


def check_range(found, queries, base, radius, metric="sqeuclidean"):
    _check_fields(found, range_search(queries, base, radius, metric))


def check(found, queries, base, k, metric="sqeuclidean"):
    _check_fields(found, knn(queries, base, k, metric))
