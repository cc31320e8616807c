"""Recorded results: bench/results/SUBJECT.jsonl, one line per figure, from which docs/numbers.md is written."""
import importlib
import json

from . import charts, kinds, reliability, session
from .markdown import table

RESULTS = session.ROOT / "bench" / "results"
DOCS = session.ROOT / "docs"
# In the order of the page. Other subjects (`house`) are not recorded.
SUBJECTS = ("exact", "cpu", "ivf", "index", "graph", "graph_search", "dedup", "lsq", "scale", "cluster", "foundation", "trust",
            "cuda", "face")
HIGHLIGHTS = ("sift_u8", "text_cosine", "kmeans_vs_faiss", "ivf_pq_speed", "ivf_latency", "graph_vs_others", "lsq_vs_faiss",
              "scale_memory", "scale_kill", "ray_search")
INTRODUCTION = """# Numbers

Every number here was printed by `tools/prove`, which compares it with a bar. Speeds depend on the machine: rerun the
command before you rely on one.

```bash title="not run: takes minutes"
tools/prove exact --list             # the figures of a subject
tools/prove exact --only sift_u8     # builds and downloads what is missing, then measures
tools/prove exact --record           # measures all, stores the results in bench/results, rewrites this page
```

What limits these numbers, and what was tried: [measurements](notes/measurements.md).
"""


def load(subject, folder=None):
    """{figure: record}, empty where nothing was recorded."""
    path = (folder or RESULTS) / f"{subject}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {record["figure"]: record for record in map(json.loads, lines)}


def record(subject, results, command, folder=None):
    """Replaces the records of the measured figures; those that could not be measured stay as they are."""
    known, facts = load(subject, folder), session.circumstances()
    for result in results:
        if not result.error:
            known[result.figure] = result.fields() | facts | {"command": f"{command} --only {result.figure}"}
    order = [figure.__name__ for figure in figures_of(subject)]
    lines = [json.dumps(known[name]) for name in order if name in known]
    ((folder or RESULTS) / f"{subject}.jsonl").write_text("\n".join(lines) + "\n")


def figures_of(subject):
    return importlib.import_module(f"figures.{subject}").FIGURES


def shown(value):
    """A value as text: 12.1 (k=10), 9 (k=100)."""
    if isinstance(value, dict):
        if any(isinstance(each, dict) for each in value.values()):
            return "; ".join(f"{key}: {shown(each)}" for key, each in value.items())
        return ", ".join(f"{shown(each)} ({key})" for key, each in value.items())
    if isinstance(value, list):
        return " / ".join(map(shown, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def section(subject):
    """A table of the recorded figures of a subject, and the machines that measured them."""
    title, context = importlib.import_module(f"figures.{subject}").__doc__.splitlines()[0].split(": ", 1)
    records, rows, machines = load(subject), [], {}
    for figure in figures_of(subject):
        if found := records.get(figure.__name__):
            rows.append([f"`{figure.__name__}`", session.claim(figure), shown(found["value"]), found["bar"],
                         shown(found["holds"]), found["details"].get("note", ""), found["date"]])
            versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
            machines.setdefault(f"{found['machine']}; {versions}", []).append(f"`{figure.__name__}`")
    lines = [f"## {title}", "", f"`tools/prove {subject}`. {context[0].upper()}{context[1:]}", "",
             *table(["figure", "what is measured", "value", "bar", "holds", "note", "date"], rows), ""]
    if len(machines) == 1:
        lines.append(f"Measured on {next(iter(machines))}.")
    else:
        lines += [f"- {', '.join(names)}: {machine}." for machine, names in machines.items()]
    return "\n".join(lines) + "\n"


def highlights():
    rows = []
    for subject in SUBJECTS:
        for figure in figures_of(subject):
            if (name := figure.__name__) in HIGHLIGHTS and name in (records := load(subject)):
                rows.append([session.claim(figure), shown(records[name]["value"]), f"`{records[name]['command']}`"])
    return "\n".join(["## At a glance", "", *table(["what", "value", "command"], rows)]) + "\n"


def documents():
    """{path below docs/: content} of everything that is written from the results."""
    filtered = load("index").get("filtered_speed")
    pictures = {"pictures/selectivities.svg": charts.selectivities(filtered)} if filtered else {}
    sections = [section(subject) for subject in SUBJECTS if load(subject)]
    return pictures | {
        "numbers.md": "\n".join([INTRODUCTION, highlights(), *sections]),
        "reliability.md": reliability.page((DOCS / "reliability.md").read_text(), load("trust").get("comparison")),
        kinds.PAGE: kinds.page((DOCS / kinds.PAGE).read_text(), load("face")),
        "pictures/at_equal_recall.svg": charts.at_equal_recall(load("ivf")["ivf_pq_speed"], load("graph_search").get("latency_text")),
        "pictures/scale_growth.svg": charts.growth(load("scale")),
        "pictures/code_sizes.svg": charts.code_sizes(load("lsq")["code_sizes"])}


def write_docs():
    for path, content in documents().items():
        (DOCS / path).write_text(content)
        print(f"wrote docs/{path}")
    return 0
