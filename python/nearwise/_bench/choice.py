"""Which method to take for which queries: words from results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Fields = dict[str, Any]


def candidates(methods: Sequence[Fields], target: float) -> Iterator[tuple[Fields, Fields]]:
    """Every method with each of its measurements that reaches the target."""
    for method in methods:
        for measured in method["measurements"]:
            if measured["recall"] >= target:
                yield method, measured


def fastest(methods: Sequence[Fields], target: float, queries: str) -> tuple[Fields, Fields] | None:
    """The method and its measurement with most queries/s ("batch") or the lowest median ("single"), at this recall."""
    found = list(candidates(methods, target))
    if not found:
        return None
    if queries == "batch":
        return max(found, key=lambda pair: float(pair[1]["queries_per_second"]))
    return min(found, key=lambda pair: float(pair[1]["single_p50_us"]))


def shown(setting: Fields) -> str:
    """A setting as a call has it.

    >>> shown({"probes": 12, "candidates": 40.0})
    'probes=12, candidates=40'
    """
    return ", ".join(f"{name}={value:g}" for name, value in setting.items())


def _speed(measured: Fields, queries: str) -> str:
    if queries == "batch":
        return f"{measured['queries_per_second']:,.0f} queries/s"
    return f"{measured['single_p50_us']:,.0f} us (p99 {measured['single_p99_us']:,.0f} us)"


def recommend(methods: Sequence[Fields], targets: Sequence[float], batch: int) -> list[Fields]:
    """One recommendation for batches and one for single queries, at every target."""
    found = []
    for queries in ("batch", "single"):
        for target in targets:
            what = f"For batches of {batch:,}" if queries == "batch" else "For single queries"
            best = fastest(methods, target, queries)
            if best is None:
                text = f"{what} at recall {target:g}: nothing that was measured reaches it."
                found.append({"queries": queries, "target_recall": target, "method": None, "text": text})
                continue
            method, measured = best
            text = f"{what} at recall {target:g}: {method['label']}, {_speed(measured, queries)}"
            if measured["setting"]:
                text += f", with {shown(measured['setting'])}"
            other = _other(methods, method, target, queries)
            if other is not None:
                whose = "nearwise" if method["library"] != "nearwise" else "the other libraries"
                text += f"; the fastest of {whose} is {other[0]['label']}, {_speed(other[1], queries)}"
            found.append(
                {
                    "queries": queries,
                    "target_recall": target,
                    "method": method["name"],
                    "library": method["library"],
                    "label": method["label"],
                    **{key: value for key, value in measured.items() if key != "batch_seconds"},
                    "text": text + ".",
                }
            )
    return found


def _other(methods: Sequence[Fields], best: Fields, target: float, queries: str) -> tuple[Fields, Fields] | None:
    """The fastest on the other side: of other libraries, or of nearwise."""
    is_own = best["library"] == "nearwise"
    return fastest([each for each in methods if (each["library"] == "nearwise") != is_own], target, queries)
