"""CUDA backend without a GPU: compiled kernels, and their answers on the emulated device."""
import functools
import json
import os
import re
import subprocess
import sys

from harness import processes
from harness.session import ROOT, Result

import gpu_estimate
import kernel_report

ARCHITECTURES = {75, 80, 90, 100, 120}


@functools.cache  # a minute of disassembly
def kernels(session):
    objects = session.build("cuda", "nearwise_cuda") / "src" / "CMakeFiles" / "nearwise_cuda.dir" / "backend" / "cuda"
    return kernel_report.collect(sorted(objects.glob("**/*.cu.o")))


def emulated_tests(session):
    return next((session.build("emulated", "cuda_backend_tests") / "tests").rglob("cuda_backend_tests"))


def kernel_resources(session):
    """Kernels with a stack frame, spills or local memory, on five architectures"""
    found = kernels(session)
    missing = ARCHITECTURES - {kernel.architecture for kernel in found}
    refused = [f"{kernel.name} sm_{kernel.architecture}" for kernel in found if kernel.uses_local_memory()]
    return Result(len(refused), f"0 of {len(found)}", bool(found) and not refused and not missing,
                  {"refused": refused, "missing_architectures": sorted(missing)})


def selection_fast_path(session):
    """WarpSelect, k <= 128, sm_90: instructions per 32 rejected values, the worst kind of key"""
    loads = gpu_estimate.values_per_lane()
    instructions = {}
    for kernel in kernels(session):
        if match := re.search(r"select_rows<.*::(\w+), (\d+)>", kernel.name):
            path = gpu_estimate.shortest_round(kernel, loads)
            instructions.setdefault(f"{match[1]} {match[2]}", {})[f"sm_{kernel.architecture}"] = (
                None if path is None else round(len(path) / loads, 2))
    judged = [by.get("sm_90") for name, by in instructions.items() if int(name.split()[1]) <= 128]
    known = bool(judged) and None not in judged
    worst = max(judged) if known else None
    return Result(worst, "<= 8", known and worst <= 8, {"instructions_per_32_values": instructions})


@functools.cache
def selection_evidence(session):
    return gpu_estimate.SelectionEvidence(kernels(session), emulated_tests(session))


def selection_estimate(session, k, bar, holds):
    evidence = selection_evidence(session)
    found = evidence.estimate(gpu_estimate.H100, k)
    return Result(round(found.share(), 2), bar, holds(found.share()), {
        "columns": gpu_estimate.LONG_ROW, "instructions_per_row": round(found.instructions), "limit": found.limit(),
        "cycles_of_memory": round(found.memory_cycles), "cycles": {unit: round(each) for unit, each in found.cycles.items()},
        "other_gpus": {gpu.name: round(evidence.estimate(gpu, k).share(), 2) for gpu in gpu_estimate.GPUS}})


def selection_estimate_k100(session):
    """Estimated, not measured: share of an H100's memory bandwidth, WarpSelect at k = 100 on rows of 128,000"""
    return selection_estimate(session, 100, "1", lambda share: share == 1)


def selection_estimate_k1000(session):
    """Estimated, not measured: share of an H100's memory bandwidth, WarpSelect at k = 1000 on rows of 128,000"""
    return selection_estimate(session, 1000, "> 0.6", lambda share: share > 0.6)


def emulated_shapes(session, pattern, least):
    return session.generated_cases("cuda_backend_tests", pattern, least, preset="emulated",
                                   env=os.environ | {"CUDA_EMULATION_DEVICES": "8"})


def selection_shapes(session):
    """Generated shapes of select_k on the emulated device, identical to the CPU"""
    return emulated_shapes(session, "*SelectKGenerated*", 500)


def exact_search_shapes(session):
    """Generated shapes of knn on the emulated device, identical to the CPU"""
    return emulated_shapes(session, "*SixtyShapes*", 200)


def list_search_shapes(session):
    """Generated shapes of searches in inverted lists on the emulated device, identical to the definition"""
    return emulated_shapes(session, "*CudaListSearch.GeneratedShapes*", 200)


def several_devices(session):
    """Generated shapes of knn, sharded and replicated over 1, 2, 3 and 8 emulated devices, identical to the CPU"""
    return emulated_shapes(session, "*FiftyShapes*", 200)


def list_scan_loads(session):
    """Scan of product codes: bytes loaded per byte of codes, on five architectures"""
    loops = gpu_estimate.ListEvidence(kernels(session)).loops
    loaded = {f"{bits} bits, sm_{architecture}": loop.loaded_bytes() / loop.code_bytes()
              for (bits, architecture), loop in loops.items()}
    complete = {architecture for _, architecture in loops} == ARCHITECTURES and len(loops) == 2 * len(ARCHITECTURES)
    worst = max(loaded.values(), default=None)
    rates = {gpu.name: round(loops[8, gpu.architecture].estimate(gpu, 16)[0] / 1e9) for gpu in gpu_estimate.GPUS
             if complete}
    return Result(worst, "1", complete and worst == 1, {"loaded": loaded, "estimated_10^9_vectors_per_second": rates})


@functools.cache
def call_counts(session, operation, *arguments):
    """What the second call of an operation asks of CUDA."""
    folder = session.build("emulated", "cuda_call_counts") / "tests"
    program = next(path for path in folder.rglob("cuda_call_counts") if path.is_file())
    return json.loads(processes.run([program, operation, *arguments]).output)


def single_query_counts(session, threads):
    return call_counts(session, "exact", 100_000 if session.quick else 1_000_000, 8, 1, threads)


def single_query_waits(session):
    """Waits of the host for the device in the second Exact.search of one query in 10^6 vectors"""
    counts = single_query_counts(session, 1)
    return Result(counts["synchronisations"], "<= 4", counts["synchronisations"] <= 4, counts)


def single_query_launches(session):
    """Kernels and products in the second Exact.search of one query in 10^6 vectors"""
    counts = single_query_counts(session, 1)
    return Result(counts["launches"], "<= 12", counts["launches"] <= 12, counts)


def repeated_creations(session):
    """Streams, handles, events and pinned memory made, and growth of the pool, in the second Exact.search of one query"""
    counts = single_query_counts(session, 1)
    made = {name: counts[name] for name in ("streams", "handles", "pinned_allocations", "pool_growths")}
    made["events"] = counts["calls"].get("cudaEventCreateWithFlags", 0)
    return Result(sum(made.values()), "0", sum(made.values()) == 0, made)


def calls_by_threads(session):
    """Counts of the second Exact.search of one query that differ between 1 and 64 CPU threads"""
    one, many = single_query_counts(session, 1), single_query_counts(session, 64)
    differing = sorted(name for name in one if one[name] != many[name])
    return Result(len(differing), "0", not differing, {"differing": differing})


def additive_search_bytes(session):
    """Bytes to the host of the second AdditiveQuantizer.search of 8 queries, k = 10, in 10^6 codes"""
    rows = 100_000 if session.quick else 1_000_000
    copied = {}
    for count in (rows // 10, rows):
        counts = call_counts(session, "additive", count, 8, 8, 10)
        copied[count] = counts["device_to_pinned"] + counts["device_to_pageable"]
    answers = 8 * 10 * (8 + 4)  # an id and a distance each
    return Result(copied[rows], f"{answers:,}: the answers", set(copied.values()) == {answers}, {"bytes_by_codes": copied})


def late_copies(session):
    """Failed tests when copies read pageable memory as late as they may; seeded mistakes must be found"""
    environment = os.environ | {"CUDA_EMULATION_DEVICES": "8", "CUDA_EMULATION_LATE_COPIES": "1"}
    pattern = "Cuda*:-*Shapes*" if session.quick else "*"
    suite = session.tests("cuda_backend_tests", pattern, preset="emulated", env=environment)
    build = session.build("emulated", "cuda_emulation_tests")
    mistakes = processes.run_tests(build / "cuda_emulation" / "cuda_emulation_tests", "*LateCopyMistakes*", session.scratch)
    uses = processes.run_tests(build / "cuda_emulation" / "cuda_emulation_tests", "*LateCopyUses*", session.scratch)
    found = mistakes.tests - len(mistakes.failed)
    failed = [*suite.failed, *mistakes.failed, *uses.failed]
    return Result(len(failed), "0; >= 5 seeded mistakes found", not failed and found >= 5 and suite.tests > 0,
                  {"tests": suite.tests, "seeded_mistakes": found, "failed": failed})


def gpu_check(session):
    """Operations for which `nearwise gpu-check --quick` finds the CPU's bytes on the emulated device, of all it has"""
    package = session.build("emulated", "nearwise_python") / "python"
    report = session.scratch / "gpu-check.json"
    command = [sys.executable, "-m", "nearwise._gpu_check.command", "--quick", "--report", report]
    completed = subprocess.run(command, cwd=session.scratch, capture_output=True, text=True,
                               env=os.environ | {"PYTHONPATH": str(package)})
    if not report.exists():
        raise RuntimeError(completed.stderr)
    found = json.loads(report.read_text())
    rows = found["operations"]
    equal = [row["operation"] for row in rows if row["outcome"] == "equal"]
    others = {case["name"]: case["outcome"] for case in found["cases"] if case["outcome"] != "equal"}
    return Result(len(equal), f"{len(rows)}, exit code 0", completed.returncode == 0 and len(equal) == len(rows) > 30,
                  {"exit_code": completed.returncode, "cases": len(found["cases"]), "not_equal": others,
                   "seconds": round(sum(case.get("seconds", 0) for case in found["cases"]), 1)})


def outcomes(output):
    """The names of the tests that passed and of those that failed, from ctest's output."""
    lines = re.findall(r"Test +#\d+: (.+?) [.]*(Passed|[*]+\w+| +Passed)", output)
    passed = [name for name, outcome in lines if outcome.endswith("Passed")]
    failed = [name for name, outcome in lines if not outcome.endswith(("Passed", "Skipped"))]
    return passed, failed


def checked_schedules(session):
    """Failures of the check build under five schedules; it must also find every seeded bug"""
    build = session.build("emulated-check", "cuda_emulation_tests", "cuda_backend_tests", "cuda_seeded_bugs")
    command = ["ctest", "--test-dir", build, "-j", "2", "-R", r"^(cuda|emulation)\."]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    passed, failed = outcomes(output)
    seeds = {match[1] for name in passed if (match := re.search(r"\.seed(\d)\.", name))}
    reported = re.compile(r"emulation\.seed\d\.All/SeededBugs\.AreReported/(.+)")
    in_emulator = {match[1] for name in passed if (match := reported.match(name))}
    # "none" and "none_in_knn" are controls: unchanged kernels, in which nothing may be found.
    in_product = {name for name in passed if re.match(r"cuda\.seeded_bug\.(?!none)", name)}
    holds = not failed and len(seeds) == 5 and len(in_emulator) >= 19 and len(in_product) >= 10
    return Result(len(failed), "0 under 5 schedules; >= 19 + 10 seeded bugs found", holds,
                  {"failed": failed, "passed": len(passed), "seeds": sorted(seeds),
                   "seeded_bugs_in_emulator": len(in_emulator), "seeded_bugs_in_product": len(in_product)})


FIGURES = (kernel_resources, selection_fast_path, selection_estimate_k100, selection_estimate_k1000, selection_shapes,
           exact_search_shapes, list_search_shapes, list_scan_loads, several_devices, single_query_waits,
           single_query_launches, repeated_creations, calls_by_threads, additive_search_bytes,
           late_copies, gpu_check, checked_schedules)
