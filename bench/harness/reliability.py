"""The tables of docs/reliability.md, from a report of tests/battery/run.py."""
from collections import Counter

from .markdown import table

BEGIN, END = "<!-- begin: written by tools/prove --write-docs -->", "<!-- end -->"
FAULTS = ("crash", "hang", "wrong", "lost", "ignored", "undocumented error", "no message")
OUTCOMES = (*FAULTS, "marked", "refused", "right")
NOT_APPLICABLE = "-"
# Columns of several kinds.
GROUPS = {"nearwise knn": "nearwise, exact search", "nearwise Exact": "nearwise, exact search",
          "nearwise IvfFlat": "nearwise, inverted files", "nearwise IvfPq": "nearwise, inverted files",
          "nearwise IvfLsq": "nearwise, inverted files", "nearwise KnnGraph": "nearwise, graph",
          "nearwise GraphIndex": "nearwise, graph index",
          "nearwise ProductQuantizer": "nearwise, quantizers",
          "nearwise OptimizedProductQuantizer": "nearwise, quantizers",
          "nearwise AdditiveQuantizer": "nearwise, quantizers"}


def summary(kinds):
    """The report of a run without the notes on what went well: {kind: {version, outcomes, notes}}"""
    return {kind: {"version": report["version"],
                   "outcomes": {case: outcome for case, (outcome, _, _) in report["cases"].items()},
                   "notes": {case: report["cases"][case][1] for case in report["faults"]}}
            for kind, report in kinds.items()}


def applied(kind):
    """The number of cases that apply to a kind of a summary."""
    return sum(outcome != NOT_APPLICABLE for outcome in kind["outcomes"].values())


def counts(kinds):
    return {name: dict(Counter(kind["outcomes"].values())) for name, kind in kinds.items()}


def shown(outcomes):
    """What several kinds did, the worst first."""
    found = [outcome for outcome in OUTCOMES if outcome in outcomes]
    return ", ".join(f"**{outcome}**" if outcome in FAULTS else outcome for outcome in found) or NOT_APPLICABLE


def totals_table(kinds):
    rows = []
    for name, kind in kinds.items():
        found = Counter(kind["outcomes"].values())
        rows.append([name, kind["version"], str(applied(kind)), *(str(found[outcome] or "") for outcome in OUTCOMES)])
    return table(["kind", "version", "cases", *OUTCOMES], rows)


def cases_table(claims, kinds):
    columns = {}
    for name, kind in kinds.items():
        columns.setdefault(GROUPS.get(name, name), []).append(kind["outcomes"])
    rows = [[claim, *(shown({outcomes[case] for outcomes in column}) for column in columns.values())]
            for case, claim in claims.items()]
    return table(["case", *columns], rows)


def tables(record):
    """The text between the marks, from the recorded figure `comparison`."""
    details = record["details"]
    return "\n".join([BEGIN, "", f"Measured on {record['machine']}, {record['date']}, nearwise "
                      f"{record['versions']['nearwise']}: `{record['command']} --record`.", "",
                      *totals_table(details["kinds"]), "",
                      *cases_table(details["claims"], details["kinds"]), "", END])


def page(text, record):
    """The page with the tables of a record in the place of the earlier ones; without a record it stays as it is."""
    if record is None:
        return text
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + tables(record) + after
