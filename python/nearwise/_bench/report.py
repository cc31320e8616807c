"""What a benchmark found: as a page, as JSON, and in words."""

from __future__ import annotations

import dataclasses
import html
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nearwise._bench import choice, style
from nearwise._error import ArgumentError, Error

Fields = dict[str, Any]


def require_matplotlib() -> None:
    if importlib.util.find_spec("matplotlib") is None:
        raise Error("bench: the page needs matplotlib: pip install nearwise[bench]", "unsupported")


@dataclasses.dataclass(frozen=True, repr=False)
class BenchReport:
    """What `nearwise.bench` found.

    Attributes
    ----------
    fields : dict
        Everything, as it is in the JSON file: `methods` with their `measurements`, `recommendations`, `machine`, ...
    """

    fields: Fields

    @property
    def recommendations(self) -> list[str]:
        """Which index to take for batches and for single queries, at every target recall."""
        return [each["text"] for each in self.fields["recommendations"]]

    @property
    def remarks(self) -> list[str]:
        """What was left out, and why."""
        return [f"{each['library']}: {each['reason']}" for each in self.fields["left_out"]]

    def html(self) -> str:
        """One page that refers to nothing outside of it. Needs matplotlib."""
        require_matplotlib()
        return page(self.fields)

    def json(self) -> str:
        return json.dumps(self.fields, indent=1) + "\n"

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page, and the fields next to it as .json, whose path it returns."""
        given, beside = files_of(path)
        _write(given, self.html())
        _write(beside, self.json())
        return beside

    def __repr__(self) -> str:
        methods, data = self.fields["methods"], self.fields["data"]
        return f"<nearwise.BenchReport: {len(methods)} indexes of {data['rows']} vectors of {data['dim']} elements>"


def files_of(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The page, and the file of its numbers."""
    given = Path(os.fspath(path))
    if given.suffix not in (".html", ".htm"):
        raise ArgumentError(f"output: expected the name of an .html file, got {str(given)!r}")
    return given, given.with_suffix(".json")


def _write(path: Path, text: str) -> None:
    """Under its name only when it is complete."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                file.write(text)
            except BaseException:
                os.unlink(file.name)
                raise
        os.chmod(file.name, 0o666 & ~_umask())
        os.replace(file.name, path)
    except OSError as error:
        raise Error(f"{path}: {error.strerror}", "cannot_create") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _cells(values: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<td class="{kind}">{html.escape(value)}</td>' for value, kind in values)


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value / 1e6:,.1f}"


def _best(methods: Sequence[Fields], method: Fields, target: float) -> list[tuple[str, str]]:
    """Queries/s, p50 and p99 of one method; the best of all are marked."""
    found = []
    for queries, keys in (("batch", ("queries_per_second",)), ("single", ("single_p50_us", "single_p99_us"))):
        own = choice.fastest([method], target, queries)
        best = choice.fastest(methods, target, queries)
        is_best = own is not None and best is not None and own[0] is best[0]
        found += [("-" if own is None else f"{own[1][key]:,.0f}", "best" if is_best else "") for key in keys]
    return found


def _table(fields: Fields) -> str:
    targets, methods = fields["target_recalls"], fields["methods"]
    groups = "".join(f'<th colspan="3">recall {target:g}</th>' for target in targets)
    names = "<th>queries/s</th><th>p50, us</th><th>p99, us</th>" * len(targets)
    rows = []
    for method in methods:
        costs = [
            (f"{method['build_seconds']:,.2f}", ""),
            (_megabytes(method["memory_bytes"]), ""),
            (_megabytes(method["disk_bytes"]), ""),
        ]
        speeds = [cell for target in targets for cell in _best(methods, method, target)]
        kind = ' class="own"' if method["library"] == "nearwise" else ""
        rows.append(f'<tr{kind}><th scope="row">{html.escape(method["label"])}</th>{_cells(costs + speeds)}</tr>')
    return (
        f'<div class="wide"><table><thead><tr><th rowspan="2">index</th><th colspan="3">cost</th>{groups}</tr>'
        f"<tr><th>build, s</th><th>memory, MB</th><th>disk, MB</th>{names}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _all_measurements(methods: Sequence[Fields]) -> str:
    rows = []
    for method in methods:
        for each in method["measurements"]:
            values = [
                (choice.shown(each["setting"]) or "-", "text"),
                (f"{each['recall']:.4f}", ""),
                *((f"{each[key]:,.0f}", "") for key in ("queries_per_second", "single_p50_us", "single_p99_us")),
            ]
            rows.append(f'<tr><th scope="row">{html.escape(method["label"])}</th>{_cells(values)}</tr>')
    names = "".join(f"<th>{name}</th>" for name in ("index", "setting", "recall", "queries/s", "p50, us", "p99, us"))
    return (
        '<details><summary>Every setting that was measured</summary><div class="wide"><table>'
        f"<thead><tr>{names}</tr></thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _facts(fields: Fields) -> str:
    data, machine = fields["data"], fields["machine"]
    of = f" of {data['of_rows']:,}, a random sample" if data["rows"] + data["queries"] < data["of_rows"] else ""
    where = "a random sample of the vectors, taken out of the base" if data["held_out"] else "given"
    memory = "" if machine["memory_bytes"] is None else f", {machine['memory_bytes'] / 2**30:.0f} GiB"
    limit = f", {fields['memory_limit']:,} bytes for each index" if fields["memory_limit"] else ""
    lines = {
        "Vectors": f"{data['rows']:,}{of}; {data['dim']} elements ({data['type']}); {fields['metric']}",
        "Queries": f"{data['queries']:,}: {where}; the {fields['k']} nearest",
        "Machine": f"{machine['cpu']}, {machine['cpus']} CPUs{memory}; {machine['system']}; "
        f"load before: {machine['load_before']}",
        "Threads": f"{fields['threads']} to build and for batches, one for single queries{limit}",
        "Versions": ", ".join(f"{name} {version}" for name, version in fields["versions"].items()),
        "Run": f"{fields['date']}, {fields['seconds']:,.0f} s, {fields['repeat']} turns of each setting",
    }
    if fields["left_out"]:
        lines["Left out"] = "; ".join(f"{each['library']}: {each['reason']}" for each in fields["left_out"])
    rows = "".join(f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in lines.items())
    return f"<dl>{rows}</dl>"


_METHOD = """\
Recall is the share of the nearest vectors by exact search that an index finds; a vector as near as the last of them
counts. Every index has a process of its own and is searched with many settings once. Then the cheapest settings for
each target recall, and others along the curve, take turns, so that a disturbance of the machine meets all of them:
of batches the median turn is shown, of each single query the best, and of these the median (p50) and the 99th
percentile (p99). Vectors are converted to what a library takes before its clock starts. Memory is that of the index
in its process, with the vectors that its searches read. Numbers in bold are the best of a column."""


def page(fields: Fields) -> str:
    """The HTML of the report."""
    from nearwise._bench import plots  # needs matplotlib

    methods, data = fields["methods"], fields["data"]
    pictures = plots.all_plots(methods, data["queries"], fields["threads"], fields["k"]) if methods else []
    advice = "".join(f"<li>{html.escape(each['text'])}</li>" for each in fields["recommendations"])
    title = f"nearwise bench: {data['rows']:,} vectors of {data['dim']} elements"
    name = f'<p class="note">{html.escape(data["title"])}</p>' if data["title"] else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style.CSS}</style></head>\n<body><h1>{html.escape(title)}</h1>{name}\n"
        f'<section class="advice"><h2>Recommendation</h2><ul>{advice}</ul></section>\n'
        f'<section class="plots">{"".join(f"<figure>{each}</figure>" for each in pictures)}</section>\n'
        f"<section><h2>Indexes</h2>{_table(fields)}{_all_measurements(methods)}</section>\n"
        f'<section><h2>Conditions</h2>{_facts(fields)}<p class="note">{_METHOD}</p></section>\n'
        "</body></html>\n"
    )
