"""Promises under faults: bad input, damaged files, kills, a simulated machine, forks, interrupts, changed inputs."""
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from harness import checksums, processes, reliability
from harness.session import CACHE, ROOT, Result, json_lines


def report_of(session, script, *arguments, python=None, flags=()):
    """The report of a program of tests/battery on the package of the release build."""
    environment = os.environ | {"PYTHONPATH": str(session.build("release", "nearwise_python") / "python")}
    command = [python or CACHE / "env" / "bin" / "python", *flags, ROOT / "tests" / "battery" / script, *arguments]
    return json_lines(processes.run(command, env=environment).output)[-1]


def battery(session):
    """Bad input and faults, every kind of nearwise, also under python -O: crashes, hangs, wrong answers, silent errors"""
    options = ["--quick"] if session.quick else []
    session.build("release", "nearwise_python")
    kinds = {}
    with ThreadPoolExecutor() as pool:
        interpreters = {"python": (), "python -O": ("-O",)}
        reports = pool.map(lambda flags: report_of(session, "run.py", *options, flags=flags), interpreters.values())
        for name, report in zip(interpreters, reports):
            kinds |= {f"{name}, {kind}": found for kind, found in reliability.summary(report["kinds"]).items()}
    faults = {f"{kind}, {case}": f"{found['outcomes'][case]}: {note}"
              for kind, found in kinds.items() for case, note in found["notes"].items()}
    applied = sum(map(reliability.applied, kinds.values()))
    return Result(len(faults), "0", not faults and applied > 0,
                  {"note": f"{applied:,} runs of a case", "faults": faults, "outcomes": reliability.counts(kinds)})


def comparison(session):
    """The same on other libraries (docs/reliability.md): cases that end in a fault"""
    if session.quick:
        return Result("not run", "none under --quick", True, {"judged": False})
    python = session.battery_environment() / "bin" / "python"
    report = report_of(session, "run.py", "--kinds", "*", python=python)
    kinds = reliability.summary(report["kinds"])
    return Result({name: len(kind["notes"]) for name, kind in kinds.items()}, "none: a comparison", True,
                  {"claims": report["claims"], "kinds": kinds})


def damage(session, *kinds):
    counts = ("--flips", 30, "--truncations", 8, "--splices", 8) if session.quick else ()
    report = report_of(session, "damage.py", *counts, "--kinds", *kinds)
    return Result(report["faults"], "0", report["faults"] == 0,
                  {"note": f"{report['mutations']:,} mutations of {len(report['kinds'])} kinds of files"} | report)


def damaged_files(session):
    """Bits flipped, files truncated and spliced, every kind: neither an error nor the undamaged answer"""
    return damage(session, "nearwise *")


def damaged_plans(session):
    """The same in work files and in manifests of every plan: runs that do not end with the same bytes"""
    return damage(session, "plan of *")


def kills_during_save(session):
    """SIGKILL at random moments of saves over an existing file: kills after which it was neither the old nor the new one"""
    kills = 24 if session.quick else 1000
    report = report_of(session, "kills.py", "--kills", kills)
    lost, stale = kills - report["old or new file"], report["temporary files after the next save"]
    return Result(lost, "0, and no temporary file after the next save", lost == 0 and stale == 0,
                  {"note": f"{kills:,} kills, {report['left a temporary file']} in the middle of a file"} | report)


def forks(session):
    """Children of a process whose other threads search, build and change indexes: how many answer"""
    children = 100 if session.quick else 1000
    report = report_of(session, "forks.py", "--children", children)
    answered = report["outcomes"].get("answers", 0)
    return Result(answered, f"{children} of {children}", answered == children, report)


def interrupts(session):
    """Ctrl-C at random moments of all long calls: milliseconds to KeyboardInterrupt, 99th percentile"""
    amount = ("--small", "--moments", 110) if session.quick else ("--moments", 500)
    report = report_of(session, "interrupts.py", *amount)
    late = report.pop("p99_ms")
    return session.speed(late, "< 100, no temporary file left", late < 100 and not report["temporary_files_left"], report)


def changed_inputs(session):
    """Vector files changed while a plan rests: tests that the plan finds it and goes on with the original"""
    return session.test_result("plan_tests", "*PlanInput*:*ChangedInput*")


def repaired_work_files(session):
    """Damaged or lost work files and manifests: tests that plans make them again"""
    return session.test_result("plan_tests", "*Repairs*:*Manifest*:*GoesOnWhereItWasStopped*")


def progress(session):
    """Long calls and commands whose progress is complete before the end, falls, or is wrong about the time left"""
    report = report_of(session, "progress.py", "--scale", 0.5 if session.quick else 2, "--program", session.nearwise())
    wrong = report.pop("wrong")
    return session.speed(len(wrong), "0", not wrong, report | {"wrong": wrong})


def memory_limits(session):
    """Every operation, random shapes, within a limit that a refusal named: runs whose memory kept it and 5 %, enforced

    RssAnon as another process reads it, and RLIMIT_DATA, by which the system refuses more (tests/battery/memory.py).
    """
    report = report_of(session, "memory.py", *(["--runs", 16] if session.quick else []))
    runs = report["runs"]
    return Result(report["held"], f"{runs} of {runs}", report["held"] == runs, report)


def exhaustion(session):
    """Operations that the system refuses memory, threads or mappings (RLIMIT_AS): runs that end in a signal or a hang"""
    runs = 32 if session.quick else 500
    report = report_of(session, "exhaustion.py", "--runs", runs)
    refused = runs - report["outcomes"].get("answers", 0)
    return Result(len(report["faults"]), "0", not report["faults"] and refused > 0,
                  {"note": f"{runs} runs, {refused} of them refused memory"} | report)


def simulation(session):
    """Plans on a simulated machine (kills, power losses, torn writes, duplicate attempts): seeds without a violation"""
    seeds = 400 if session.quick else 10_000
    program = session.build("release", "plan_simulation") / "tests" / "plan" / "simulation" / "plan_simulation"
    start = time.monotonic()
    halves = [subprocess.Popen([program, "--seeds", f"{first}..{first + seeds // 2 - 1}"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True) for first in (0, seeds // 2)]
    details = {"failed": []}
    for half in halves:
        output, errors = half.communicate()
        if half.returncode not in (0, 1):
            raise RuntimeError(f"plan_simulation ended with {half.returncode}: {errors[-4000:]}")
        for name, value in json_lines(output)[-1].items():
            details[name] = details[name] + value if name in details else value
        details.setdefault("reports", []).extend(errors.splitlines())
    details["seconds"] = round(time.monotonic() - start, 1)
    passed = seeds - len(details["failed"])
    return Result(passed, f"{seeds} of {seeds}", passed == seeds, details)


RESEALED_KINDS = ("index_flat", "index_pq", "index_lsq", "graph_index", "graph", "product_quantizer",
                  "optimized_product_quantizer", "additive_quantizer", "neighbors", "names", "pairs", "deduplication",
                  "work_files", "manifest")


def resealed_mutations(session):
    """Changed files of every kind with right checksums, loaded and used under AddressSanitizer: files without a finding"""
    runs = 500 if session.quick else 5000
    folder = session.build("fuzz", "fuzz_targets") / "tests" / "fuzz"
    seeds = session.scratch / "seeds"
    processes.run([folder / "fuzz_make_seeds", seeds])
    details = {}
    for kind in RESEALED_KINDS:
        # A crash, a leak, 5 s or 300 MB for one file end the program with an error.
        command = [folder / f"fuzz_{kind}", f"-runs={runs}", "-seed=1", "-timeout=5", "-rss_limit_mb=1024",
                   "-malloc_limit_mb=300", "-max_len=65536", "-verbosity=0", "-print_final_stats=1",
                   f"-artifact_prefix={session.scratch}/", seeds / kind]
        run = processes.run(command)
        executed = re.search(r"number_of_executed_units: (\d+)", run.errors)
        details[kind] = {"files": int(executed[1]), "seconds": round(run.seconds, 1)}
    done = sum(kind["files"] >= runs for kind in details.values())
    return Result(done * runs, f"{len(RESEALED_KINDS)} kinds x {runs}", done == len(RESEALED_KINDS), details)


def truncated_files(session):
    """Mapped files truncated before and during every operation: tests that it is an error and nothing else changes"""
    return session.test_result("plan_tests", "*Truncated*")


def injected_faults(session):
    """Every system call on files and every allocation fails once: tests of a clean error and a next attempt that succeeds"""
    return session.test_result("faults_tests", "*")


def checksum_cost(session):
    """Checksums: their share of the time to load files of 500 MB, interleaved with loads without them, and of builds

    A load is nearwise.load, until the object can be used. The page cache is the worst case: indexes are mapped, and
    without checksums a load reads only what it checks otherwise. From disk is the first load after a restart. A build
    is a run of the command line program on 300,000 x 128 f32.
    """
    kinds = {"flat": 1_000_000, "pq": 3_000_000, "graph": 500_000, "neighbors": 650_000}
    if session.quick:
        kinds = dict.fromkeys(kinds, 10_000)
    loads = checksums.load_costs(session, kinds, 2 if session.quick else 7)
    builds = checksums.build_costs(session, 10_000 if session.quick else 300_000, "96MiB", 1 if session.quick else 3)
    value = {f"load from {name}": {kind: cost[source]["share"] for kind, cost in loads.items()}
             for name, source in (("page cache", "cache"), ("disk", "disk"))}
    holds = all(each <= 0.1 for of_kinds in value.values() for each in of_kinds.values())
    value["build"] = {name: round(cost["share"], 3) for name, cost in builds.items()}
    return session.speed(value, "load <= 0.1, build <= 0.03", holds and max(value["build"].values()) <= 0.03,
                         {"loads": loads, "builds": builds})


FIGURES = (
    battery, comparison, damaged_files, damaged_plans, resealed_mutations, truncated_files, injected_faults,
    kills_during_save, simulation, forks, interrupts, progress, memory_limits, exhaustion, changed_inputs,
    repaired_work_files, checksum_cost,
)
