"""What the comparisons with other libraries share."""
import time

import faiss
import numpy


def read_rows(path, rows=None, dtype=None):
    """The first rows of a .u8bin or .fbin file: mapped, or converted to `dtype` in memory."""
    count, dim = map(int, numpy.fromfile(path, numpy.uint32, 2))
    element = numpy.float32 if path.endswith(".fbin") else numpy.uint8
    mapped = numpy.memmap(path, element, "r", 8, (count, dim))[:rows]
    return mapped if dtype is None else numpy.ascontiguousarray(mapped.astype(dtype))


def unit(rows):
    """Rows scaled to length 1. Rivals have no cosine: inner products and distances of unit rows have its order."""
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def timed(work):
    """(result, seconds, CPU seconds)"""
    start, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - start, time.process_time() - cpu


def faiss_facts():
    return {"faiss": faiss.__version__, "faiss_simd": faiss.SIMDConfig.get_level_name()}
