"""One run of tools/prove: builds, data sets, programs, and how a figure is reported.

A figure is a function that takes a Session and returns a Result; the first line of its docstring is its claim.
"""
import datetime
import functools
import json
import os
import platform
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path

from . import processes

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "nearwise")
THREADS = 2  # of every speed comparison


@dataclass
class Result:
    value: object
    bar: str
    holds: bool
    details: dict = field(default_factory=dict)
    figure: str = ""
    error: str = ""

    def fields(self):
        found = {"figure": self.figure, "value": self.value, "bar": self.bar, "holds": self.holds,
                 "details": self.details}
        return found | ({"error": self.error} if self.error else {})


class Session:
    """Options of the run. Builds, data sets and environments are made once, when they are first needed."""

    def __init__(self, quick, scratch, baseline=None):
        self.quick = quick
        self.scratch = scratch  # a temporary folder
        self.baseline = baseline  # build folder of an older checkout, for figures that compare two builds
        self._built = set()

    def build(self, preset, *targets):
        """The build folder of a preset, with these targets (default: all) up to date."""
        if (preset, targets) not in self._built:
            self._run(["cmake", "--preset", preset])
            selection = ["--target", *targets] if targets else []
            self._run(["cmake", "--build", "--preset", preset, "--parallel", str(os.cpu_count()), *selection])
            self._built.add((preset, targets))
        return ROOT / "build" / preset

    def nearwise(self):
        """The command line program of the release build."""
        return self.build("release", "nearwise_cli") / "cli" / "nearwise"

    def program(self, name):
        """A program of bench/end_to_end or bench/ops."""
        return next(path for path in (self.build("release", name) / "bench").glob(f"*/{name}") if path.is_file())

    def bench(self, name, *arguments, env=None):
        """The JSON lines that a program of bench/end_to_end or bench/ops prints."""
        return json_lines(processes.run([self.program(name), *arguments], env=env).output)

    def rival(self, script, *arguments):
        """The JSON lines of a script of bench/rivals. Faiss gets MKL, several times as fast as the BLAS in its wheel."""
        environment = self.rival_environment()
        mkl = [str(path) for path in sorted((environment / "lib").glob("libmkl_rt.so*"))[:1]]
        variables = {"LD_PRELOAD": os.pathsep.join(mkl), "OMP_NUM_THREADS": str(THREADS),
                     "PYTHONPATH": str(self.build("release", "nearwise_python") / "python")}
        command = [environment / "bin" / "python", ROOT / "bench" / "rivals" / script, "--threads", THREADS]
        return json_lines(processes.run([*command, *arguments], env=os.environ | variables).output)

    def tests(self, program, pattern, preset="release", env=None):
        """A processes.TestRun of the tests of a GoogleTest program whose names match."""
        folder = self.build(preset, program) / "tests"
        found = next(path for path in folder.rglob(program) if path.is_file())
        return processes.run_tests(found, pattern, self.scratch, env)

    def test_result(self, program, pattern, **options):
        """A figure that is a set of tests: how many pass."""
        run = self.tests(program, pattern, **options)
        return Result(run.tests - len(run.failed), "every test passes", run.passed, run.details())

    def generated_cases(self, program, pattern, least, counter="generated_cases", **options):
        """A figure that is a number of generated cases, counted by the tests, which all pass."""
        run = self.tests(program, pattern, **options)
        cases = run.properties.get(counter, 0)
        return Result(cases, f">= {least}, none wrong", run.passed and cases >= least, run.details())

    def data(self, name, *arguments):
        """The folder of a data set, made if it is missing by `bench/data/make_data ARGUMENTS`."""
        self._run([str(ROOT / "bench" / "data" / "make_data"), *arguments])
        return Path(os.environ.get("NEARWISE_DATA") or CACHE / "data").expanduser() / name

    @functools.cache
    def data_set(self, name):
        """A standard data set; under --quick its small form."""
        if self.quick:
            return self.data(f"{name}-small", "--set", name, "--small")
        return self.data(name, "--set", name)

    def sift(self, part="base"):
        return self.data_set("sift") / f"{part}.u8bin"

    def text(self, part="base"):
        return self.data_set("text") / f"{part}.fbin"

    def images(self, part="base"):
        return self.data_set("images") / f"{part}.u8bin"

    @functools.cache
    def rival_environment(self):
        """The folder of the virtual environment with the libraries that nearwise is compared with."""
        self._run([str(ROOT / "bench" / "rivals" / "setup")])
        return CACHE / "rivals-env"

    @functools.cache
    def battery_environment(self):
        """The folder of the virtual environment with the libraries whose reliability is compared (tests/battery)."""
        self._run([str(ROOT / "bench" / "rivals" / "setup"), "--battery"])
        return CACHE / "battery-env"

    def speed(self, value, bar, holds, details):
        """The result of a speed comparison. Small data says nothing about speed: under --quick it is not judged."""
        if self.quick:
            return Result(value, f"none under --quick ({bar})", True, details | {"judged": False})
        return Result(value, bar, holds, details)

    def run_tool(self, name, *arguments):
        """Runs a script of tools/."""
        self._run([str(ROOT / "tools" / name), *arguments])

    def _run(self, command):
        completed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if completed.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{completed.stdout[-4000:]}")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


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
    """What a reader needs to judge a figure: machine, date and versions."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    changed = output_of("git", "status", "--porcelain") not in ("", "unknown")
    commit = output_of("git", "rev-parse", "--short=12", "HEAD") + (" with changes" if changed else "")
    return {
        "machine": f"{cpu_model()}, {len(os.sched_getaffinity(0))} CPUs, {memory_bytes / 2**30:.1f} GiB, load "
                   f"{os.getloadavg()[0]:.1f} before",
        "date": datetime.date.today().isoformat(),
        "versions": {"nearwise": commit, "compiler": output_of("c++", "--version").split("\n")[0],
                     "kernel": platform.release()},
    }


def measure(chosen, quick, baseline=None):
    """Measures figures one after the other and prints each; an error ends only its own figure."""
    print(json.dumps(circumstances() | {"quick": quick}), flush=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="nearwise-prove-", dir=os.environ.get("TMPDIR")) as scratch:
        session = Session(quick, Path(scratch), baseline)
        for figure in chosen:
            print(f"prove: {figure.__name__}: {claim(figure)}", file=sys.stderr, flush=True)
            try:
                result = figure(session)
            except Exception as error:  # whatever stops one figure must not hide the others
                traceback.print_exc()
                result = Result(None, "", False, error=f"{type(error).__name__}: {error}")
            result.figure = figure.__name__
            results.append(result)
            print(json.dumps(result.fields()), flush=True)
    return results


def claim(figure):
    return figure.__doc__.splitlines()[0]
