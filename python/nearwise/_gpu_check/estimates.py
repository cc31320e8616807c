"""Estimates of kernels, which timings are compared with. No GPU has measured them.

They are those of docs/notes/gpu-estimates.md, which `tools/gpu_estimate.py` computes: a test compares
(tests/tools/gpu_estimate_test.py). Only the standard library is imported here, so that it can.
"""

from __future__ import annotations

import re

# Data sheets: the model in the name that the driver gives, and terabytes per second.
GPUS = {
    "T4": (r"\bT4\b", 0.32),
    "A100 SXM": (r"\bA100-SXM\d?-80GB", 2.04),
    "RTX 4090": (r"\bRTX 4090\b(?! (D|Laptop))", 1.01),
    "H100 SXM": (r"\bH100\b(?!.*(PCIe|NVL))", 3.35),
    "B200": (r"\bB200\b", 8.0),
}

# WarpSelect on rows of 128,000 values: share of the memory bandwidth, by k.
SELECTION = {
    "T4": {10: 1.0, 100: 1.0, 1000: 1.0},
    "A100 SXM": {10: 1.0, 100: 1.0, 1000: 0.71},
    "RTX 4090": {10: 1.0, 100: 1.0, 1000: 1.0},
    "H100 SXM": {10: 1.0, 100: 1.0, 1000: 0.63},
    "B200": {10: 1.0, 100: 1.0, 1000: 0.35},
}
SELECTION_COLUMNS = 128_000

# Scan of product codes of 8 bits: 10^9 vectors per second, by codes of a vector.
LIST_SCAN = {
    "T4": {16: 11, 32: 7, 64: 4},
    "A100 SXM": {16: 73, 32: 45, 64: 22},
    "RTX 4090": {16: 36, 32: 23, 64: 13},
    "H100 SXM": {16: 120, 32: 66, 64: 33},
    "B200": {16: 165, 32: 83, 64: 41},
}

# Additive codes of vectors of 128 elements, 16 iterations: microseconds per vector, by codebooks.
ADDITIVE = {
    "A100 SXM": {7: 0.20, 15: 0.78},
    "RTX 4090": {7: 0.19, 15: 0.78},
    "H100 SXM": {7: 0.19, 15: 0.78},
}

# Products of all pairs in the partitions of a million SIFT vectors: seconds. Nothing else of a build.
GRAPH_PRODUCTS = {"T4": 0.25, "A100 SXM": 0.11, "H100 SXM": 0.07, "B200": 0.06}


def gpu_of(name: str) -> str | None:
    """Which of GPUS has this name.

    >>> gpu_of("NVIDIA H100 80GB HBM3"), gpu_of("NVIDIA H100 PCIe"), gpu_of("Tesla T4"), gpu_of("NVIDIA L40S")
    ('H100 SXM', None, 'T4', None)
    """
    return next((gpu for gpu, (pattern, _) in GPUS.items() if re.search(pattern, name)), None)


def selection(gpu: str | None, k: int) -> float | None:
    """GB/s."""
    return None if gpu is None else SELECTION[gpu][k] * GPUS[gpu][1] * 1000


def list_scan(gpu: str | None, codes: int) -> float | None:
    """10^9 vectors per second."""
    return None if gpu is None else LIST_SCAN[gpu][codes]


def additive(gpu: str | None, codebooks: int) -> float | None:
    """Microseconds per vector."""
    return ADDITIVE[gpu][codebooks] if gpu in ADDITIVE else None


def graph_products(gpu: str | None) -> float | None:
    """Seconds."""
    return GRAPH_PRODUCTS.get(gpu) if gpu is not None else None
