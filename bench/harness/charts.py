"""The pictures of the documentation, drawn from recorded results as SVG."""
import math

COLORS = ("#c02030", "#3070c0", "#d08000", "#888888")


def text(x, y, words, anchor="middle", color="#333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{words}</text>'


def panel(left, top, width, height, lines, x_marks, y_marks, margin=0.0):
    """One diagram. lines: [[(x, y, label)]]; marks: [(position, label)], the first and last y mark bound the panel."""
    low_x, high_x = x_marks[0][0] - margin, x_marks[-1][0] + margin
    low_y, high_y = y_marks[0][0], y_marks[-1][0]

    def place(x, y):
        return left + width * (x - low_x) / (high_x - low_x), top + height * (1 - (y - low_y) / (high_y - low_y))

    parts = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#bbb"/>']
    for y, label in y_marks:
        y = place(low_x, y)[1]
        parts += [f'<path d="M{left} {y:.1f}h{width}" stroke="#eee"/>', text(left - 4, y + 4, label, "end")]
    for x, label in x_marks:
        x = place(x, low_y)[0]
        parts += [f'<path d="M{x:.1f} {top}v{height}" stroke="#eee"/>', text(x, top + height + 14, label)]
    for points, color in zip(lines, COLORS):
        path = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y, _ in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        for x, y in (place(x, y) for x, y, _ in points):
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
        parts += [text(place(x, y)[0] - 6, place(x, y)[1] - 6, label, "end") for x, y, label in points if label]
    return parts


def picture(width, height, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      'font-family="sans-serif" font-size="11">',
                      f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def rows_label(rows):
    return f"{rows / 1e6:g}M" if rows >= 1e6 else f"{rows / 1e3:g}k"


def growth(records):
    """Seconds of graph builds from files by their rows, both axes logarithmic."""
    lines, names, sizes = [], [], set()
    for figure in ("scale_growth", "scale_pairs", "scale_growth_sift"):
        details = records[figure]["details"]
        for method, exponent in details["exponents"].items():
            points = [(each["rows"], each["seconds"]) for each in details["reports"][method]]
            sizes |= {rows for rows, _ in points}
            lines.append([(math.log10(rows), math.log10(seconds), f"{seconds:g}") for rows, seconds in points])
            names.append(f"{figure}, {method}: n^{exponent:.2f}")
    seconds = [y for points in lines for _, y, _ in points]
    powers = range(math.floor(min(seconds)), math.ceil(max(seconds)) + 1)
    parts = panel(60, 20, 420, 280, lines, [(math.log10(rows), rows_label(rows)) for rows in sorted(sizes)],
                  [(power, f"{10.0 ** power:g} s") for power in powers], margin=0.1)
    parts.append(text(270, 330, "rows"))
    parts += [text(60, 350 + 16 * i, f"&#9632; {name}", "start", color)
              for i, (name, color) in enumerate(zip(names, COLORS))]
    return picture(500, 350 + 16 * len(names), parts)


def selectivities(record):
    """Queries/s under filters by the share of vectors that they allow, both axes logarithmic."""
    lines, names, shares = [], [], set()
    for kind in ("random", "correlated", "anti-correlated"):
        reports = [report for report in record["details"]["reports"] if report["filter"] == kind]
        shares |= {report["selectivity"] for report in reports}
        lines.append([(math.log10(each["selectivity"]), math.log10(each["queries_per_second"]["filtered"]), "") for each in reports])
        names.append(f"{kind} filter")
    reports = [report for report in record["details"]["reports"] if report["filter"] == "random"]
    lines.append([(math.log10(each["selectivity"]), math.log10(each["queries_per_second"]["exact"]), "") for each in reports])
    names.append("exact search of the allowed vectors, packed beforehand")
    rates = [y for points in lines for _, y, _ in points]
    powers = range(math.floor(min(rates)), math.ceil(max(rates)) + 1)
    parts = panel(70, 20, 420, 260, lines, [(math.log10(share), f"{100 * share:g} %") for share in sorted(shares)],
                  [(power, f"{10 ** power:,}/s") for power in powers], margin=0.1)
    parts.append(text(280, 310, "allowed vectors"))
    parts += [text(70, 330 + 16 * i, f"&#9632; {name}", "start", color)
              for i, (name, color) in enumerate(zip(names, COLORS))]
    return picture(510, 330 + 16 * len(names), parts)


def code_sizes(record):
    """Error and recall of codes by their size: a row of diagrams for each data set."""
    titles = {"error": "squared error / variance", "1": "recall@1", "10": "recall@10", "100": "recall@100"}
    sets = {}
    for name, found in record["details"]["points"].items():
        data, size = name.removesuffix(" bytes").split(", ")
        sets.setdefault(data, {})[int(size)] = found
    parts, codecs = [], list(next(iter(record["details"]["points"].values())))
    for row, (data, sizes) in enumerate(sets.items()):
        for column, (what, title) in enumerate(titles.items()):
            top = max(each[what] for found in sizes.values() for each in found.values()) if what == "error" else 1
            left, upper = 60 + 255 * column, 40 + 205 * row
            lines = [[(math.log2(size), found[codec][what], "") for size, found in sizes.items()] for codec in codecs]
            parts += [text(left + 100, upper - 8, f"{data}: {title}")]
            parts += panel(left, upper, 200, 150, lines, [(math.log2(size), f"{size} bytes") for size in sizes],
                           [(share * top, f"{share * top:.2g}") for share in (0, 0.5, 1)], margin=0.5)
    height = 50 + 205 * len(sets)
    parts += [text(60 + 90 * i, height - 10, f"&#9632; {codec}", "start", color)
              for i, (codec, color) in enumerate(zip(codecs, COLORS))]
    return picture(1080, height, parts)


BAR_COLORS = {"nearwise": COLORS[0]}
LIBRARIES = {"nearwise": "nearwise", "fastscan": "Faiss FastScan", "scann": "ScaNN"}


def bars(left, top, title, better, values):
    """Horizontal bars, the best first. values: {name: number}; better: max or min."""
    width, longest = 200, max(values.values())
    parts = [text(left, top - 10, title, "start", "#000")]
    for i, (name, value) in enumerate(sorted(values.items(), key=lambda each: each[1], reverse=better is max)):
        y = top + 20 * i
        color = BAR_COLORS.get(name, "#9aa0a6")
        parts += [text(left + 125, y + 11, name, "end"),
                  f'<rect x="{left + 130}" y="{y}" width="{width * value / longest:.1f}" height="14" fill="{color}"/>',
                  text(left + 134 + width * value / longest, y + 11, f"{value:,.0f}", "start")]
    return parts


def best_latencies(record, target):
    """{library: microseconds}: the best variant of each that reaches the recall."""
    found = {}
    for report in record["details"]["reports"]:
        if report["target"] == target and report["recall"] >= target:
            library = report["library"].split(",")[0].removesuffix(" GraphIndex").removesuffix(" SQ8")
            found[library] = min(found.get(library, math.inf), report["p50_us"])
    return found


def at_equal_recall(batch, single):
    """Batches (ivf_pq_speed) and, where it is recorded, single queries (latency_text) of nearwise and other libraries."""
    rates = batch["details"]["queries_per_second"]
    panels = [(f"Queries/s, batch of 10,000, SIFT 1M, recall {recall}", max,
               {LIBRARIES[name]: rate for name, rate in found.items()}) for recall, found in rates.items()]
    if single:
        panels += [(f"Median latency in us, one query at a time, text 100k x 384, recall {target}", min, best_latencies(single, target))
                   for target in (0.95, 0.99)]
    parts, height = [], 0
    for row in range(0, len(panels), 2):
        top = height + 36
        for column, (title, better, values) in enumerate(panels[row:row + 2]):
            parts += bars(10 + 440 * column, top, title, better, values)
        height = top + 20 * max(len(values) for _, _, values in panels[row:row + 2])
    return picture(890, height + 12, parts)
