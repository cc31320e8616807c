"""Parts that are files of indexes."""

from __future__ import annotations

import os
from collections.abc import Sequence

from nearwise._context import Context, operation
from nearwise._vector_file import Path
from nearwise.cluster._replica import Replica
from nearwise.cluster._sharded import Sharded


class ShardedFiles(Sharded):
    """One file for each part."""

    _replica: type[Replica]

    @operation
    def __init__(
        self,
        paths: Sequence[Path],
        *,
        replicas: int | None = 1,
        start_timeout: float | None = 300,
        timeout: float | None = 300,
        context: Context | None = None,
        threads: int | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)) or not len(paths):
            raise ValueError(f"paths: expected one file for each part, got {paths!r}")
        number = (context.threads if context else None) or 1
        parts = [(os.path.abspath(path), number) for path in paths]
        super().__init__(self._replica, parts, replicas, number, start_timeout, timeout)
