"""First use: the documentation site, its snippets, and the kinds of indexes on one page."""
import json
import os
import re
import subprocess
import sys
import time

from harness import processes
from harness.session import CACHE, ROOT, THREADS, Result

from . import index

DOCS_ENV = CACHE / "docs-env"


def site(session):
    """Warnings of the documentation site, built with the references of Python, C++ and the command line"""
    variables = os.environ | {"NEARWISE_BIN": str(session.nearwise())}
    run = subprocess.run([ROOT / "tools" / "build_docs"], env=variables, capture_output=True, text=True)
    warnings = re.findall(r"^(?:WARNING|ERROR).*", run.stdout + run.stderr, re.M)
    pages = len(list((ROOT / "build" / "site").rglob("*.html")))
    return Result(len(warnings), "0", run.returncode == 0 and not warnings, {"pages": pages, "warnings": warnings[:20]})


def run_snippets(session, environment):
    variables = os.environ | {"NEARWISE_BIN": str(session.nearwise()),
                              "PYTHONPATH": str(session.build("release", "nearwise_python") / "python")}
    report = processes.run([environment / "bin" / "python", ROOT / "tests" / "docs" / "snippets.py"], env=variables).output
    return {page: (int(ran), without.split(", ") if without else [])
            for page, ran, without in re.findall(r"^(\S+\.md): (\d+) run(?:; without (.*))?$", report, re.M)}


def snippets(session):
    """Blocks of Python, shell and C++ in README.md and docs/ that run, and those of a page that run nowhere

    Where a block needs another library, the environments of the benchmarks and of the data sets have it.
    """
    session.text()  # whose encoder a page uses
    reports = [run_snippets(session, environment)
               for environment in (CACHE / "env", session.rival_environment(), CACHE / "data-env")]
    most = {page: max(report[page][0] for report in reports) for page in reports[0]}
    missing = {page: sorted(set.intersection(*(set(report[page][1]) for report in reports))) for page in reports[0]}
    missing = {page: modules for page, modules in missing.items() if modules}
    return Result(sum(most.values()), "every one that is not marked", True, {"pages": len(most), "installed_nowhere": missing})


def bench_ten_minutes(session):
    """Minutes from a new Python environment to the page of nearwise bench: SIFT 100k x 128 u8, against Faiss and hnswlib

    Installs the wheel with its extra and both libraries, runs a first search, then the command.
    """
    session.run_tool("build_wheel")
    wheel = next((ROOT / "dist").glob("nearwise-*.whl"))
    base = session.sift()
    environment, page = session.scratch / "first-use", session.scratch / "bench.html"
    python = environment / "bin" / "python"
    rows = 5_000 if session.quick else 100_000
    search = "import nearwise; print(nearwise.knn([[0.0]], [[3.0], [1.0]], k=1).ids)"
    steps = {
        "environment": [sys.executable, "-m", "venv", environment],
        "install": [python, "-m", "pip", "install", "--quiet", f"{wheel}[bench]", "faiss-cpu", "hnswlib"],
        "first_search": [python, "-c", search],
        "bench": [environment / "bin" / "nearwise", "bench", base, "--against", "faiss,hnswlib", "--rows", rows, "--quiet",
                  "--threads", THREADS, "-o", page],
    }
    minutes = {}
    for name, command in steps.items():
        start = time.perf_counter()
        processes.run(command, env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"})
        minutes[name] = round((time.perf_counter() - start) / 60, 2)
    fields = json.loads(page.with_suffix(".json").read_text())
    details = {"minutes": minutes, "indexes": [method["label"] for method in fields["methods"]], "left_out": fields["left_out"],
               "recommendations": [each["text"] for each in fields["recommendations"]]}
    total = round(sum(minutes.values()), 2)
    return session.speed(total, "< 10", total < 10 and not fields["left_out"], details)


def index_kinds(session, files, metric):
    reports = index.python_reports(session, "index_kinds.py", "--base", files(), "--queries", files("query"), "--metric", metric)
    # Codes alone have the recall that their size permits.
    lowest = min(report["recall"] for report in reports if "none" not in report["kind"])
    return Result(lowest, ">= 0.945", lowest >= 0.945, {"reports": reports})


def index_kinds_sift(session):
    """Every kind of index at a target recall of 0.95, SIFT 1M x 128 u8: the lowest recall of unseen queries"""
    return index_kinds(session, session.sift, "sqeuclidean")


def index_kinds_text(session):
    """Every kind of index at a target recall of 0.95, text 100k x 384 f32, cosine: the lowest recall of unseen queries"""
    return index_kinds(session, session.text, "cosine")


FIGURES = (site, snippets, bench_ten_minutes, index_kinds_sift, index_kinds_text)
