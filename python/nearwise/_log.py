"""The package's logger, `logging.getLogger("nearwise")`; docs/reference/python.md says what it gets."""

from __future__ import annotations

import logging
import warnings

logger = logging.getLogger("nearwise")
# Without a handler of the application nothing is shown, not even warnings.
logger.addHandler(logging.NullHandler())


def warn(message: str, category: type[Warning], stacklevel: int) -> None:
    """A warning of Python, which may be shown once only, and a record of the logger each time."""
    logger.warning("%s", message)
    warnings.warn(message, category, stacklevel=stacklevel + 1)
