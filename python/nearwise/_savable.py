"""Objects that a .nw file holds: their bytes, copies and pickles."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any

from nearwise._context import Context, operation
from nearwise._vector_file import Path


class Savable:
    """Copies (`copy.copy`, `copy.deepcopy`, pickling) are made of the file's bytes, and remember the context."""

    _context: Context

    def save(self, path: Path) -> None:
        raise NotImplementedError

    @operation
    def to_bytes(self) -> bytes:
        """The bytes that `save` writes; `nearwise.from_bytes` makes an object of them. Pickling uses them."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "bytes.nw")
            self.save(path)
            with open(path, "rb") as file:
                return file.read()

    def __reduce__(self) -> Any:
        from nearwise._storage import from_bytes  # which imports the classes of saved objects

        return functools.partial(from_bytes, context=self._context), (self.to_bytes(),)
