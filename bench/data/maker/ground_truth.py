"""Exact nearest neighbours of the queries of a set."""
import faiss
import numpy as np

from .file_formats import open_vectors, write_ground_truth

NEIGHBOURS = 100
# Candidates kept beyond the answer: float32 errors and ties may reorder that many at the last rank.
SPARE = 28
BASE_BLOCK_ROWS = 1 << 18
QUERY_BLOCK_ROWS = 250  # re-scoring holds QUERY_BLOCK_ROWS * (NEIGHBOURS + SPARE) rows in float64


def find_candidates(base, queries, count):
    """The ids [queries, count] of the nearest base rows by float32 distance; the base is streamed."""
    best_distances = np.empty((len(queries), 0), np.float32)
    best_ids = np.empty((len(queries), 0), np.int64)
    for start in range(0, len(base), BASE_BLOCK_ROWS):
        block = np.ascontiguousarray(base[start:start + BASE_BLOCK_ROWS], dtype=np.float32)
        distances, ids = faiss.knn(queries, block, min(count, len(block)))
        distances = np.hstack([best_distances, distances])
        ids = np.hstack([best_ids, ids.astype(np.int64) + start])
        order = np.argsort(distances, axis=1, kind="stable")[:, :count]
        best_distances = np.take_along_axis(distances, order, 1)
        best_ids = np.take_along_axis(ids, order, 1)
    return best_ids


def score_exactly(base, queries, candidates):
    """Squared distances in float64 and their ids, ordered by (distance, id)."""
    # Rows are fetched in file order, each position then finds its row again.
    flat = candidates.ravel()
    rows = base[np.sort(flat)].astype(np.float64)
    position = np.argsort(np.argsort(flat, kind="stable"), kind="stable").reshape(candidates.shape)
    distances = ((rows[position] - queries[:, None].astype(np.float64)) ** 2).sum(2)
    order = np.lexsort((candidates, distances), axis=1)
    return np.take_along_axis(distances, order, 1), np.take_along_axis(candidates, order, 1)


def make_ground_truth(folder, suffix, threads):
    """Write the exact top NEIGHBOURS by squared L2."""
    faiss.omp_set_num_threads(threads)
    base = open_vectors(folder / f"base{suffix}")
    queries = np.ascontiguousarray(open_vectors(folder / f"query{suffix}"), dtype=np.float32)
    answer = min(NEIGHBOURS, len(base))
    candidates = find_candidates(base, queries, min(NEIGHBOURS + SPARE, len(base)))
    all_ids = np.empty((len(queries), answer), np.int32)
    all_distances = np.empty((len(queries), answer), np.float32)
    ambiguous = 0
    for start in range(0, len(queries), QUERY_BLOCK_ROWS):
        block = slice(start, start + QUERY_BLOCK_ROWS)
        distances, ids = score_exactly(base, queries[block], candidates[block])
        if ids.shape[1] > answer:
            ambiguous += int((distances[:, answer - 1] == distances[:, -1]).sum())
        all_ids[block], all_distances[block] = ids[:, :answer], distances[:, :answer]
    write_ground_truth(folder, all_ids, all_distances)
    if ambiguous:
        print(f"  note: {ambiguous} queries have over {SPARE} ties at rank {answer}")
