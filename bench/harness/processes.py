"""Runs programs and watches their memory; runs GoogleTest programs and reads their reports."""
import json
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Run:
    seconds: float
    output: str
    errors: str
    peak_anonymous_bytes: int = 0  # RssAnon, sampled: without pages of mapped files
    peak_resident_bytes: int = 0  # VmHWM, kept by the kernel: with pages of mapped files
    samples: int = 0


def memory_status(process_id):
    """(RssAnon, VmHWM) in bytes, or None once the process has ended."""
    try:
        text = Path(f"/proc/{process_id}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    if "RssAnon" not in fields:  # a zombie
        return None
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "VmHWM"))


def run(command, sample_seconds=None, **options):
    """Runs to the end, with `sample_seconds` sampling the memory. A failure raises an exception with the output."""
    start = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, **options)
    result = Run(0, "", "")
    done = threading.Event()

    def watch():
        while not done.is_set():
            status = memory_status(process.pid)
            if status is None:
                return
            result.peak_anonymous_bytes = max(result.peak_anonymous_bytes, status[0])
            result.peak_resident_bytes = max(result.peak_resident_bytes, status[1])
            result.samples += 1
            done.wait(sample_seconds)

    watcher = threading.Thread(target=watch) if sample_seconds else None
    if watcher:
        watcher.start()
    try:
        result.output, result.errors = process.communicate()
    finally:
        done.set()
        if watcher:
            watcher.join()
    result.seconds = time.monotonic() - start
    if process.returncode != 0:
        raise RuntimeError(f"exit status {process.returncode}: {' '.join(map(str, command))}\n"
                           f"{result.output[-2000:]}\n{result.errors[-2000:]}")
    return result


@dataclass
class TestRun:
    tests: int
    failed: list
    skipped: list
    seconds: float
    properties: dict  # sums of the numbers recorded by the tests

    @property
    def passed(self):
        return self.tests > 0 and not self.failed and not self.skipped

    def details(self):
        return {"tests": self.tests, "failed": self.failed, "skipped": self.skipped, "seconds": round(self.seconds, 1)}


def run_tests(program, pattern, scratch, environment=None):
    """Runs a GoogleTest program; failed tests are in the result, a crash is an exception."""
    report = scratch / f"{program.name}.json"
    report.unlink(missing_ok=True)
    start = time.monotonic()
    completed = subprocess.run([str(program), f"--gtest_filter={pattern}", f"--gtest_output=json:{report}"],
                               capture_output=True, text=True, env=environment)
    seconds = time.monotonic() - start
    if not report.exists():  # a crash, or a sanitizer's abort
        raise RuntimeError(f"{program.name} ended with {completed.returncode}:\n{completed.stdout[-1000:]}\n"
                           f"{completed.stderr[-3000:]}")
    known = {"name", "value_param", "type_param", "file", "line", "status", "result", "timestamp", "time",
             "classname", "failures"}
    tests, failed, skipped, properties = 0, [], [], {}
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            if test["status"] != "RUN":
                continue
            tests += 1
            name = f"{suite['name']}.{test['name']}"
            if test.get("failures"):
                failed.append(name)
            elif test["result"] == "SKIPPED":
                skipped.append(name)
            for key in test.keys() - known:
                if str(test[key]).isdigit():
                    properties[key] = properties.get(key, 0) + int(test[key])
    return TestRun(tests, failed, skipped, seconds, properties)
