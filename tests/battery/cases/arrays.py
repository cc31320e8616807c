"""Queries of other element types and in other layouts: the answer of plain float32, or an error."""

import numpy as np
from outcomes import right_if, wrong
from vectors import DIM, QUERIES, K

from cases.registry import Cases

CASES = Cases()


def compared(adapter, queries, plain):
    """Finds out whether queries are answered as the same numbers in a contiguous array of float32."""
    index = adapter.built()
    found, expected = (np.asarray(adapter.search(index, array, K)[0]) for array in (queries, plain))
    agreement = float((found == expected).mean()) if found.shape == expected.shape else 0
    return right_if(agreement > 0.99, f"{agreement:.3f} of the ids are equal")


@CASES.add()
def float64(adapter):
    """float64"""
    return compared(adapter, QUERIES[:50].astype(np.float64), QUERIES[:50])


@CASES.add()
def float16(adapter):
    """float16"""
    halves = QUERIES[:50].astype(np.float16)
    return compared(adapter, halves, halves.astype(np.float32))


@CASES.add()
def int64(adapter):
    """int64"""
    whole = (QUERIES[:50] * 10).astype(np.int64)
    return compared(adapter, whole, whole.astype(np.float32))


@CASES.add()
def uint8(adapter):
    """uint8"""
    small = (np.abs(QUERIES[:50]) * 50).clip(0, 255).astype(np.uint8)
    return compared(adapter, small, small.astype(np.float32))


@CASES.add()
def complex_numbers(adapter):
    """complex numbers"""
    adapter.search(adapter.built(), (QUERIES[:3] + 1j * QUERIES[3:6]).astype(np.complex64), K)
    return wrong("accepted, the imaginary parts are dropped")


@CASES.add()
def strings(adapter):
    """strings"""
    adapter.search(adapter.built(), np.array([["a"] * DIM], dtype=object), K)
    return wrong("accepted")


@CASES.add()
def every_third_row(adapter):
    """rows with gaps"""
    return compared(adapter, QUERIES[::3], np.ascontiguousarray(QUERIES[::3]))


@CASES.add()
def every_second_column(adapter):
    """columns with gaps"""
    return compared(adapter, np.repeat(QUERIES, 2, axis=1)[:, ::2], QUERIES)


@CASES.add()
def reversed_rows(adapter):
    """negative strides"""
    return compared(adapter, QUERIES[::-1], np.ascontiguousarray(QUERIES[::-1]))


@CASES.add()
def fortran_order(adapter):
    """Fortran order"""
    return compared(adapter, np.asfortranarray(QUERIES), QUERIES)


@CASES.add()
def big_endian(adapter):
    """big-endian numbers"""
    return compared(adapter, QUERIES.astype(">f4"), QUERIES)


@CASES.add()
def unaligned(adapter):
    """numbers at odd addresses"""
    memory = bytearray(QUERIES.nbytes + 1)
    odd = np.frombuffer(memory, np.float32, QUERIES.size, offset=1).reshape(QUERIES.shape)
    odd[:] = QUERIES
    return compared(adapter, odd, QUERIES)


@CASES.add()
def read_only(adapter):
    """a read-only array"""
    fixed = QUERIES.copy()
    fixed.flags.writeable = False
    return compared(adapter, fixed, QUERIES)
