"""Promises under faults: forks, changed inputs, damaged work files."""
import os

from harness import processes
from harness.session import CACHE, ROOT, Result, json_lines


def battery(session, script, *arguments):
    """The report of a program of tests/battery on the package of the release build."""
    environment = os.environ | {"PYTHONPATH": str(session.build("release", "nearwise_python") / "python")}
    command = [CACHE / "env" / "bin" / "python", ROOT / "tests" / "battery" / script, *arguments]
    return json_lines(processes.run(command, env=environment).output)[-1]


def forks(session):
    """Children of a process whose other threads search, build and change indexes: how many answer"""
    children = 100 if session.quick else 1000
    report = battery(session, "forks.py", "--children", children)
    answered = report["outcomes"].get("answers", 0)
    return Result(answered, f"{children} of {children}", answered == children, report)


def interrupts(session):
    """Ctrl-C at random moments of all long calls: milliseconds to KeyboardInterrupt, 99th percentile"""
    report = battery(session, "interrupts.py", *(("--small", "--moments", 50) if session.quick else ("--moments", 500)))
    late = report.pop("p99_ms")
    return session.speed(late, "< 100, no temporary file left", late < 100 and not report["temporary_files_left"], report)


def changed_inputs(session):
    """Vector files changed while a plan rests: tests that the plan finds it and goes on with the original"""
    return session.test_result("plan_tests", "*PlanInput*:*ChangedInput*")


def repaired_work_files(session):
    """Damaged or lost work files and manifests: tests that plans make them again"""
    return session.test_result("plan_tests", "*Repairs*:*Manifest*:*GoesOnWhereItWasStopped*")


def progress(session):
    """Long calls whose progress is complete before the end, falls, or tells a time left wrong by a factor of 2"""
    report = battery(session, "progress.py", "--scale", 0.5 if session.quick else 2)
    wrong = report.pop("wrong")
    return session.speed(len(wrong), "0", not wrong, report | {"wrong": wrong})


def memory_limits(session):
    """Random operations within a limit that a refusal named: runs whose anonymous memory stayed within it and 5 %"""
    runs = 16 if session.quick else 40
    report = battery(session, "memory.py", "--runs", runs)
    return Result(report["held"], f"{runs} of {runs}", report["held"] == runs, report)


FIGURES = (forks, interrupts, progress, memory_limits, changed_inputs, repaired_work_files)
