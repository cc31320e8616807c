"""What a reader needs to know about the machine. No names of hosts or users."""

from __future__ import annotations

import functools
import os
import platform
from pathlib import Path
from typing import Any


@functools.cache
def _cpu_info() -> dict[str, str]:
    """Of the first CPU, by the names of Linux."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in fields}


def cpu_flags() -> frozenset[str]:
    return frozenset(_cpu_info().get("flags", "").split())


def cpus() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def describe() -> dict[str, Any]:
    """Before the measurement: the load is that of others."""
    return {
        "cpu": _cpu_info().get("model name") or platform.processor() or platform.machine(),
        "cpus": cpus(),
        "memory_bytes": _memory_bytes(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 1),
    }
