"""The subjects of tools/prove: each module here that has FIGURES."""
from pathlib import Path

SHARED = {"__init__", "figures", "processes", "big_ann", "sgemm", "scale_ray"}


def subjects():
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in SHARED)
