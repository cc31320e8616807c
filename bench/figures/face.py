"""First use: import, wheels, arrays without a copy, estimators, the documentation site, its snippets, and every kind of index."""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

from harness import processes
from harness.session import CACHE, ROOT, THREADS, Result, json_lines

from . import index

# Modules of which one name in the memory map would mean that a GPU was asked for.
CUDA = re.compile(r"lib(cuda|cudart|cublas)[.\w]*\.so")
IMPORT = """
import time
start, cpu = time.perf_counter(), time.process_time()
import {module}
seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
import json
print(json.dumps([seconds, cpu, open("/proc/self/maps").read()]))
"""


def judge_import(seconds, maps):
    """The median time of `import nearwise`, and whether anything of CUDA was loaded with it."""
    loaded = sorted({match[0] for match in CUDA.finditer(maps)})
    median = round(statistics.median(seconds["nearwise"]), 3)
    details = {"seconds": {module: [round(each, 3) for each in found] for module, found in seconds.items()}, "cuda_loaded": loaded,
               "note": f"NumPy alone {statistics.median(seconds['numpy']):.3f} s"}
    return median, median <= 0.15 and not loaded, details


def import_time(session):
    """Seconds of `import nearwise` in a new process, NumPy included, files in the page cache: median; nothing of CUDA loaded"""
    package = session.build("release", "nearwise_python") / "python"
    environment = os.environ | {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": ""}
    seconds, of_cpu, maps = {"nearwise": [], "numpy": []}, [], ""
    for run in range(6 if session.quick else 21):
        for module, found in seconds.items():
            command = [CACHE / "env" / "bin" / "python", "-c", IMPORT.format(module=module)]
            taken, cpu, mapped = json.loads(processes.run(command, env=environment).output)
            if run == 0:
                continue  # the first one writes compiled modules
            found.append(taken)
            if module == "nearwise":
                of_cpu.append(cpu)
                maps += mapped
    median, holds, details = judge_import(seconds, maps)
    return session.speed(median, "<= 0.15", holds, details | {"cpu_seconds": round(statistics.median(of_cpu), 3)})


def judge_copies(reports):
    """The kinds of arrays that were copied, and those that could not be measured."""
    copied = [each["kind"] for each in reports
              if "missing" not in each and (each["copied_bytes"] != 0 or each["taken_address"] != each["address"])]
    return copied, [each["kind"] for each in reports if "missing" in each]


def zero_copy(session):
    """Arrays that are copied on the way in, by address: NumPy, memory-mapped files, Arrow, pandas, tensors of PyTorch and JAX

    Under --quick with the libraries that are there; otherwise with those that can be installed. The wheel of PyTorch that a package index
    has is too large to be fetched for this.
    """
    environment = CACHE / "env"
    if not session.quick:
        environment = session.scratch / "arrays"
        processes.run([sys.executable, "-m", "venv", environment])
        processes.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", "numpy", "pandas", "pyarrow", "jax"])
    package = session.build("release", "nearwise_python") / "python"
    reports = json_lines(processes.run([environment / "bin" / "python", ROOT / "bench" / "end_to_end" / "zero_copy.py"],
                                       env=os.environ | {"PYTHONPATH": str(package)}).output)
    copied, missing = judge_copies(reports)
    measured = len(reports) - len(missing)
    return Result(len(copied), "0 of at least 5 kinds", not copied and measured >= 5,
                  {"note": f"{measured} kinds; not installed: {', '.join(missing) or 'none'}", "copied": copied, "reports": reports})


def pythons_of_the_stable_abi():
    """Those of this machine that the wheel of the stable ABI is for."""
    run = subprocess.run(["bash", "-c", "source tools/common.sh && source tools/abi3_python.sh && abi3_pythons"], cwd=ROOT,
                         capture_output=True, text=True, check=True)
    return run.stdout.split()


def wheels(session):
    """Megabytes of each wheel; tags, metadata and content as tools/check_wheel.py demands; imported, and searched with

    The wheel of the stable ABI where there is a Python 3.12 or later, that of 64-bit ARM where qemu is; under --quick only that of this
    machine's Python.
    """
    kinds = {"cp311": ((), "")}
    if not session.quick and pythons_of_the_stable_abi():
        kinds["abi3"] = (("--abi3",), "abi3")
    if not session.quick and shutil.which("qemu-aarch64-static"):
        kinds["arm64"] = (("--arm64",), "arm64")
    sizes = {}
    for name, (options, folder) in kinds.items():
        session.run_tool("build_wheel", *options)
        (wheel,) = (ROOT / "dist" / folder).glob("nearwise-*.whl")
        session.run_tool("check_wheel.py", wheel)
        sizes[name] = round(wheel.stat().st_size / 1e6, 2)
    (wheel,) = (ROOT / "dist").glob("nearwise-*.whl")
    environment = session.scratch / "wheel"
    processes.run([sys.executable, "-m", "venv", environment])
    processes.run([environment / "bin" / "python", "-m", "pip", "install", "--quiet", wheel])
    search = "import nearwise; print(nearwise.knn([[0.0]], [[3.0], [1.0]], k=1).ids[0, 0])"
    found = processes.run([environment / "bin" / "python", "-c", search], cwd=session.scratch,
                          env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"}).output.strip()
    left_out = [name for name in ("cp311", "abi3", "arm64") if name not in sizes]
    return Result(sizes, "< 6 each", found == "1" and max(sizes.values()) < 6,
                  {"note": f"without {', '.join(left_out)}" if left_out else "", "pythons": pythons_of_the_stable_abi()})


def judge_estimators(reports):
    """The checks that failed, of all estimators."""
    return [f"{each['estimator']}: {check}" for each in reports for check in each["failed"]]


def estimators(session):
    """Checks of scikit-learn's check_estimator that an estimator of nearwise.sklearn fails"""
    package = session.build("release", "nearwise_python") / "python"
    command = [CACHE / "env" / "bin" / "python", ROOT / "bench" / "end_to_end" / "check_estimators.py"]
    reports = json_lines(processes.run(command, env=os.environ | {"PYTHONPATH": str(package)}).output)
    failed, checks = judge_estimators(reports), sum(each["checks"] for each in reports)
    return Result(len(failed), "0, of 3 estimators", not failed and len(reports) >= 3 and checks > 0,
                  {"note": f"{checks} checks of {len(reports)} estimators", "failed": failed, "reports": reports})


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


FIGURES = (import_time, zero_copy, wheels, estimators, site, snippets, bench_ten_minutes, index_kinds_sift, index_kinds_text)
