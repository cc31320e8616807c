#!/usr/bin/env python3
"""Seconds of graph builds over files against their rows, both as logarithms: draws what tools/prove has measured.

    tools/prove scale --only scale_growth > growth.jsonl
    python bench/plots/scale_growth.py growth.jsonl --output docs/pictures/scale_growth.svg

Every figure and way of building becomes a line, with its exponent. Needs nothing but Python's own library.
"""
import argparse
import json
import math
from pathlib import Path

COLORS = ("#c02030", "#3070c0", "#d08000", "#888888")
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 420, 280, 60, 20, 50, 20


def reports_of(path):
    """{what was measured: [(rows, seconds)]}"""
    found = {}
    for line in Path(path).read_text().splitlines():
        fields = json.loads(line)
        details = fields.get("details", {})
        for way, exponent in details.get("exponents", {}).items():
            name = f"{fields['figure']}, {way}: n^{exponent:.2f}"
            found[name] = sorted((report["rows"], report["seconds"]) for report in details["reports"][way])
    return found


def short(number):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{letter}"
    return f"{number:g}"


def text(x, y, words, anchor="middle", color="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def drawing(series):
    every = [point for points in series.values() for point in points]
    low_x, high_x = (math.log10(pick(rows for rows, _ in every)) for pick in (min, max))
    low_y = math.floor(math.log10(min(seconds for _, seconds in every)))
    high_y = math.ceil(math.log10(max(seconds for _, seconds in every)))
    low_x, high_x = low_x - 0.1, high_x + 0.1

    def place(rows, seconds):
        return (LEFT + WIDTH * (math.log10(rows) - low_x) / (high_x - low_x),
                TOP + HEIGHT * (1 - (math.log10(seconds) - low_y) / (high_y - low_y)))

    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM + 16 * len(series)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
             ' font-family="sans-serif" font-size="11">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>']
    for power in range(low_y, high_y + 1):
        _, y = place(every[0][0], 10.0 ** power)
        parts += [f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#eee"/>', text(LEFT - 4, y + 4, f"{10.0 ** power:g} s", "end")]
    for rows in sorted({rows for rows, _ in every}):
        x, _ = place(rows, 1)
        parts += [f'<path d="M{x:.1f} {TOP}v{HEIGHT}" stroke="#eee"/>', text(x, TOP + HEIGHT + 14, short(rows))]
    parts.append(text(LEFT + WIDTH / 2, TOP + HEIGHT + 30, "rows"))
    for i, ((name, points), color) in enumerate(zip(series.items(), COLORS)):
        line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        for rows, seconds in points:
            x, y = place(rows, seconds)
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>', text(x - 6, y - 6, f"{seconds:g}", "end")]
        parts.append(text(LEFT, TOP + HEIGHT + 50 + 16 * i, f"&#9632; {name}", "start", color))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", help="output of tools/prove scale")
    parser.add_argument("--output", required=True, help="the picture, .svg")
    options = parser.parse_args()
    series = {}
    for path in options.results:
        series |= reports_of(path)
    if not series:
        parser.error("no reports of builds in " + ", ".join(options.results))
    Path(options.output).write_text(drawing(series))
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
