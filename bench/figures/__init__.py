"""The figures of tools/prove: one module per subject, each with a tuple FIGURES."""
from pathlib import Path


def subjects():
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")
