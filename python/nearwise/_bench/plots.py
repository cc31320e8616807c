"""The plots of the page: SVG whose colors are CSS variables, so that one picture serves light and dark pages."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from nearwise._bench.measure import frontier, nines

Fields = dict[str, Any]

# Stand-ins that become CSS variables: colors that matplotlib would not write itself.
_INK, _GRID = "#010203", "#040506"
SERIES = 13
_MARKERS = "osD^vPX<>phd*"
_TICKS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9999)


def _stand_in(series: int) -> str:
    return f"#0a0b{series % SERIES:02x}"


def families(methods: Sequence[Fields]) -> list[str]:
    """In the order in which they were measured; the number of a family is that of its color and marker."""
    return list(dict.fromkeys(method["family"] for method in methods))


def _points(methods: Sequence[Fields], family: str, cost: Callable[[Fields], float]) -> list[Fields]:
    """The measurements of all variants of a family that no other of it beats."""
    measured = [each for method in methods if method["family"] == family for each in method["measurements"]]
    return frontier([{"recall": each["recall"], "seconds": cost(each), "measured": each} for each in measured])


def _plain(axis: Any) -> None:
    """A logarithmic axis with numbers that are read at once: 2,000 instead of 2 x 10^3."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _figure(title: str, y_label: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    figure.patch.set_alpha(0)
    axes.patch.set_alpha(0)
    axes.set_title(title, color=_INK, loc="left", fontsize=11)
    axes.set_ylabel(y_label, color=_INK)
    axes.set_yscale("log")
    _plain(axes.yaxis)
    axes.grid(True, which="major", color=_GRID, linewidth=0.6)
    axes.tick_params(which="both", colors=_INK)
    for spine in axes.spines.values():
        spine.set_color(_GRID)
    return figure, axes


def _styled(family: str, number: int) -> Fields:
    is_own = family.startswith("nearwise")
    return {
        "color": _stand_in(number),
        "marker": _MARKERS[number % len(_MARKERS)],
        "linewidth": 2.2 if is_own else 1.4,
        "linestyle": "-" if is_own else "--",
        "markersize": 5.5,
        "label": family,
    }


def _svg(figure: Any, name: str) -> str:
    from matplotlib import rc_context

    written = io.StringIO()
    # Text stays text. The salt keeps the ids of two pictures of one page apart, and the same in every run.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = text.replace(_INK, "var(--ink)").replace(_GRID, "var(--grid)")
    for series in range(SERIES):
        text = text.replace(_stand_in(series), f"var(--series-{series})")
    # The width is that of the page.
    text = re.sub(r'<svg ([^>]*?)height="[^"]*"', r"<svg \1", text, count=1)
    return re.sub(r'<svg ([^>]*?)width="[^"]*"', r'<svg \1role="img"', text, count=1)


def _curves(methods: Sequence[Fields], title: str, y_label: str, key: str, invert: bool, k: int) -> str:
    figure, axes = _figure(title, y_label)
    lowest, highest = 1.0, 0.0
    for number, family in enumerate(families(methods)):
        points = _points(methods, family, (lambda each: 1 / each[key]) if invert else (lambda each: each[key]))
        if not points:
            continue
        recalls = [point["recall"] for point in points]
        lowest, highest = min(lowest, *recalls), max(highest, *recalls)
        values = [point["measured"][key] for point in points]
        axes.plot([nines(each) for each in recalls], values, **_styled(family, number))
    ticks = [tick for tick in _TICKS if min(lowest, 0.9) <= tick <= 0.9999]
    axes.set_xticks([nines(tick) for tick in ticks], [f"{tick:g}" if tick < 0.9999 else "1" for tick in ticks])
    axes.set_xlabel(f"recall of the {k} nearest", color=_INK)
    axes.legend(fontsize=8, labelcolor=_INK, framealpha=0, ncols=2, loc="best")
    return _svg(figure, title)


def _costs(methods: Sequence[Fields]) -> str:
    figure, axes = _figure("Memory and time to build", "memory, MB")
    axes.set_xscale("log")
    _plain(axes.xaxis)
    axes.set_xlabel("seconds to build", color=_INK)
    for number, family in enumerate(families(methods)):
        chosen = [each for each in methods if each["family"] == family and each["memory_bytes"]]
        if chosen:
            style = _styled(family, number) | {"linestyle": "none", "markersize": 8}
            # Below a hundredth of a second a clock says little, and a logarithm much.
            seconds = [max(each["build_seconds"], 0.01) for each in chosen]
            axes.plot(seconds, [each["memory_bytes"] / 1e6 for each in chosen], **style)
    axes.legend(fontsize=8, labelcolor=_INK, framealpha=0, ncols=2, loc="best")
    return _svg(figure, "costs")


def all_plots(methods: Sequence[Fields], batch: int, threads: int, k: int) -> list[str]:
    """SVG elements: batches, single queries, and what indexes cost."""
    on = f"{threads} thread{'s' if threads > 1 else ''}"
    plots = [
        _curves(methods, f"Batches of {batch:,} on {on}: higher is better", "queries/s", "queries_per_second", True, k),
        _curves(methods, "Single queries on one thread: lower is better", "median, us", "single_p50_us", False, k),
    ]
    if any(each["memory_bytes"] for each in methods):
        plots.append(_costs(methods))
    return plots
