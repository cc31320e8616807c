"""What every proof needs: builds, data, the machine's description, and how a figure is reported.

A figure is a function of a Session that returns a Result and whose docstring says what it claims.
"""
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = ROOT / "docs" / "numbers.md"


@dataclass
class Result:
    value: object
    bar: str
    holds: bool
    details: dict = field(default_factory=dict)
    figure: str = ""
    error: str = ""

    def line(self):
        fields = {"figure": self.figure, "value": self.value, "bar": self.bar, "holds": self.holds,
                  "details": self.details}
        return json.dumps(fields | ({"error": self.error} if self.error else {}))


class Session:
    """One run: what was asked for, and the builds and data made so far."""

    def __init__(self, quick, scratch):
        self.quick = quick
        self.scratch = scratch  # a folder that goes away
        self._built = set()

    def build(self, preset, *targets):
        """The folder of a preset's build, brought up to date first."""
        if (preset, targets) not in self._built:
            self._run(["cmake", "--preset", preset])
            selection = ["--target", *targets] if targets else []
            self._run(["cmake", "--build", "--preset", preset, "--parallel", str(os.cpu_count()), *selection])
            self._built.add((preset, targets))
        return ROOT / "build" / preset

    def data(self, name, *arguments):
        """The folder of a data set, made if it is not there. `arguments` are those of bench/data/make_data."""
        home = os.environ.get("NEARWISE_DATA") or Path(
            os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nearwise", "data")
        self._run([str(ROOT / "bench" / "data" / "make_data"), *arguments])
        return Path(home).expanduser() / name

    def environment_of_rivals(self):
        """The folder of the libraries we compare with, made if it is not there."""
        self._run([str(ROOT / "bench" / "rivals" / "setup")])
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nearwise", "rivals-env")

    def _run(self, command):
        completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if completed.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{completed.stdout[-4000:]}")


def output_of(*command):
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def circumstances():
    """What a reader needs to judge a figure: machine, versions, date."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    changed = output_of("git", "status", "--porcelain") not in ("", "unknown")
    return {
        "date": datetime.date.today().isoformat(),
        "commit": output_of("git", "rev-parse", "--short=12", "HEAD") + (" with changes" if changed else ""),
        "cpu": cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "kernel": platform.release(),
        "compiler": output_of("c++", "--version").split("\n")[0],
        "load_before": round(os.getloadavg()[0], 1),
    }


def measure(chosen, quick):
    """Measure figures one after the other, printing each as it comes; a failure to measure ends only its own."""
    print(json.dumps({"circumstances": circumstances() | {"quick": quick}}), flush=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="nearwise-prove-", dir=os.environ.get("TMPDIR")) as scratch:
        session = Session(quick, Path(scratch))
        for figure in chosen:
            print(f"prove: {figure.__name__}: {figure.__doc__.splitlines()[0]}", file=sys.stderr, flush=True)
            try:
                result = figure(session)
            except Exception as error:  # whatever stops one figure must not hide the others
                traceback.print_exc()
                result = Result(None, "", False, error=f"{type(error).__name__}: {error}")
            result.figure = figure.__name__
            results.append(result)
            print(result.line(), flush=True)
    return results


def write_docs(subject, results):
    """Append a dated table to docs/numbers.md."""
    facts = circumstances()
    lines = ["", f"## {subject}, {facts['date']}", "",
             f"`tools/prove {subject}` at {facts['commit']}, on {facts['cpu']} ({facts['cpus']} CPUs, "
             f"{facts['memory_gib']} GiB), {facts['compiler']}.", "",
             "| figure | value | bar | holds |", "| --- | --- | --- | --- |"]
    lines += [f"| {result.figure} | {result.value} | {result.bar} | {'yes' if result.holds else 'no'} |"
              for result in results]
    if not NUMBERS.exists():
        NUMBERS.write_text("# Numbers\n\nEvery table here was written by `tools/prove SUBJECT --write-docs`.\n")
    with NUMBERS.open("a") as file:
        file.write("\n".join(lines) + "\n")
