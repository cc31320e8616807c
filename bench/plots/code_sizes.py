#!/usr/bin/env python3
"""Error and recall against the size of codes, for PQ, OPQ, residual and LSQ codes: measures them, and draws a picture.

    bench/data/make_data --set sift && bench/data/make_data --set text
    cmake --preset release && ninja -C build/release additive_quantizer
    python bench/plots/code_sizes.py --program build/release/bench/end_to_end/additive_quantizer \\
        --results code_sizes.json --output docs/pictures/code_sizes.svg

Each pair of a data set and a size is two runs of the program. What --results has already is not measured again, so that one can
stop and go on; all of it is drawn. Needs nothing but Python's own library.
"""
import argparse
import json
import os
import subprocess
from pathlib import Path

SETS = {"sift": {"base": "base.u8bin", "query": "query.u8bin", "train": "learn.u8bin"},
        "text": {"base": "base.fbin", "query": "query.fbin", "train": "base.fbin"}}
CODECS = {"pq": "#888888", "opq": "#d08000", "residual": "#3070c0", "lsq": "#c02030"}
NAMES = {"pq": "PQ", "opq": "OPQ", "residual": "residual", "lsq": "LSQ"}
PANELS = ("error", "1", "10", "100")
TITLES = {"error": "squared error / variance", "1": "recall@1", "10": "recall@10", "100": "recall@100"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 200, 150, 60, 40, 55


def run(options, name, code_bytes, *more):
    files, folder = SETS[name], Path(options.data) / name
    command = [options.program, "--base", folder / files["base"], "--query-file", folder / files["query"],
               "--train", folder / files["train"], "--rows", options.rows,
               "--queries", options.queries, "--train-rows", options.train_rows, "--codebooks", code_bytes - 1,
               "--k", 100, *more]
    output = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def measured(options, name, code_bytes):
    """{codec: {error, 1, 10, 100}}; the residual quantizer is the start of LSQ's training."""
    full = run(options, name, code_bytes, "--iterations", 32, "--products", "yes")
    start = run(options, name, code_bytes, "--iterations", 1, "--rounds", 0)
    found = {"lsq": full["encodings"][0], "residual": start["encodings"][0], "pq": full["pq"], "opq": full["opq"]}
    return {codec: {"error": each["error"] / full["variance"], **each["found"]} for codec, each in found.items()}


def measure_all(options):
    path = Path(options.results)
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in options.set:
        for code_bytes in options.bytes:
            key = f"{name} {code_bytes}"
            if key in results:
                continue
            results[key] = measured(options, name, code_bytes)
            print(key, json.dumps(results[key]), flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n")
    return results


def text(x, y, words, anchor="middle", color="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def panel(results, name, sizes, what, x0, y0):
    """One diagram: sizes from left to right, each twice the one before; values from 0 to the largest, or to 1."""
    top = max(results[f"{name} {size}"][codec][what] for size in sizes for codec in CODECS) if what == "error" else 1
    parts = [text(x0 + WIDTH / 2, y0 - 8, f"{name}: {TITLES[what]}"),
             f'<rect x="{x0}" y="{y0}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>']
    place = {size: x0 + WIDTH * (i + 0.5) / len(sizes) for i, size in enumerate(sizes)}
    for share in (0, 0.5, 1):
        y = y0 + HEIGHT * (1 - share)
        parts += [f'<path d="M{x0} {y:.1f}h{WIDTH}" stroke="#eee"/>', text(x0 - 4, y + 4, f"{share * top:.2g}", "end")]
    parts += [text(place[size], y0 + HEIGHT + 14, f"{size} bytes") for size in sizes]
    for codec, color in CODECS.items():
        points = [(place[size], y0 + HEIGHT * (1 - results[f"{name} {size}"][codec][what] / top)) for size in sizes]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
    return parts


def drawing(results):
    """A line of diagrams for each set that there are results of."""
    names = [name for name in SETS if any(key.startswith(name + " ") for key in results)]
    width = LEFT + len(PANELS) * (WIDTH + GAP)
    height = TOP + len(names) * (HEIGHT + GAP) + 10
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"',
             ' font-family="sans-serif" font-size="11">', f'<rect width="{width}" height="{height}" fill="white"/>']
    for row, name in enumerate(names):
        sizes = sorted(int(key.split()[1]) for key in results if key.startswith(name + " "))
        for column, what in enumerate(PANELS):
            parts += panel(results, name, sizes, what, LEFT + column * (WIDTH + GAP), TOP + row * (HEIGHT + GAP))
    for i, (codec, color) in enumerate(CODECS.items()):
        parts.append(text(LEFT + 90 * i, height - 10, f"&#9632; {NAMES[codec]}", "start", color))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--data", default=os.environ.get("NEARWISE_DATA", Path.home() / ".cache/nearwise/data"))
    parser.add_argument("--results", required=True, help="measured values, read and written")
    parser.add_argument("--output", required=True, help="the picture, .svg")
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--bytes", nargs="+", type=int, default=[4, 8, 16])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--train-rows", type=int, default=30_000)
    options = parser.parse_args()
    results = measure_all(options)
    Path(options.output).write_text(drawing(results))
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
