"""The claims of the CUDA backend that can be proved without a GPU: what its kernels compile to, and what they compute on
the emulated device."""
import functools
import os
import re
import subprocess
import sys

from . import processes
from .figures import ROOT, Result

sys.path.insert(0, str(ROOT / "tools"))

import gpu_estimate  # noqa: E402  (found through the line above)
import kernel_paths  # noqa: E402
import kernel_report  # noqa: E402
import list_scan_estimate  # noqa: E402

ARCHITECTURES = {75, 80, 90, 100, 120}


@functools.cache  # a minute of disassembly
def kernels(session):
    objects = session.build("cuda", "nearwise_cuda") / "src" / "CMakeFiles" / "nearwise_cuda.dir" / "backend" / "cuda"
    return kernel_report.collect(sorted(objects.glob("**/*.o")))


def kernel_resources(session):
    """No kernel has a stack frame, spills or uses local memory, on any of the five architectures."""
    found = kernels(session)
    missing = ARCHITECTURES - {kernel.architecture for kernel in found}
    refused = [f"{kernel.name} sm_{kernel.architecture}" for kernel in found if kernel.uses_local_memory()]
    registers = {}
    for kernel in found:
        registers.setdefault(kernel.name, {})[f"sm_{kernel.architecture}"] = kernel.registers
    return Result(len(refused), f"0 of {len(found)}", bool(found) and not refused and not missing,
                  {"refused": refused, "missing_architectures": sorted(missing), "registers": registers})


def selection_fast_path(session):
    """WarpSelect at k <= 128 spends at most 8 instructions per 32 elements on sm_90 where nothing is chosen."""
    loads = gpu_estimate.values_per_lane()
    instructions = {}
    for kernel in kernels(session):
        match = re.search(r"select_rows<.*::(\w+), (\d+)>", kernel.name)
        if match is None:
            continue
        way = kernel_paths.shortest_round(kernel, loads)
        instructions.setdefault(f"{match[1]} {match[2]}", {})[f"sm_{kernel.architecture}"] = (
            None if way is None else round(len(way) / loads, 2))
    judged = [by.get("sm_90") for name, by in instructions.items() if int(name.split()[1]) <= 128]
    known = bool(judged) and None not in judged
    worst = max(judged) if known else None
    return Result(worst, "<= 8", known and worst <= 8, {"instructions_per_32_elements": instructions})


def emulated_tests(session):
    return session.build("emulated", "cuda_backend_tests") / "tests" / "backend" / "cuda" / "cuda_backend_tests"


@functools.cache
def evidence_of_selection(session):
    return gpu_estimate.Evidence(kernels(session), gpu_estimate.count_paths(emulated_tests(session)))


def selection_estimate(session, k, bar, holds):
    evidence = evidence_of_selection(session)
    found = evidence.estimate(gpu_estimate.H100, k)
    return Result(round(found.share(), 2), bar, holds(found.share()), {
        "an_estimate": "nobody has measured it",
        "columns": gpu_estimate.LONG_ROW, "instructions_per_row": round(found.instructions),
        "cycles_of_memory": round(found.memory_cycles),
        "cycles": {unit: round(cycles) for unit, cycles in found.cycles.items()},
        "limit": found.limit(),
        "other_gpus": {gpu.name: round(evidence.estimate(gpu, k).share(), 2) for gpu in gpu_estimate.GPUS}})


def selection_estimate_k100(session):
    """By the estimate WarpSelect at k = 100 waits for memory on an H100: its share of the bandwidth is 1."""
    return selection_estimate(session, 100, "1: memory-bound", lambda share: share == 1)


def selection_estimate_k1000(session):
    """By the estimate WarpSelect at k = 1000 has more than 60 % of the memory bandwidth of an H100."""
    return selection_estimate(session, 1000, "> 0.6", lambda share: share > 0.6)


def tests(session, preset, *options):
    """Runs a preset's tests; the names of those that passed and of those that did not."""
    session.build(preset)
    # Its status says no more than the lines: tests that fail are a result here, not an accident.
    output = subprocess.run(["ctest", "--preset", preset, *options], cwd=ROOT, capture_output=True, text=True).stdout
    return outcomes(output)


def outcomes(output):
    """The names of the tests that passed and of those that did not, from ctest's output."""
    lines = re.findall(r"Test +#\d+: (.+?) [.]*(Passed|[*]+\w+| +Passed)", output)
    passed = [name for name, outcome in lines if outcome.endswith("Passed")]
    failed = [name for name, outcome in lines if not outcome.endswith(("Passed", "Skipped"))]
    return passed, failed


def generated_shapes(session, pattern, least):
    """Runs tests that compare generated shapes with the CPU, and adds up how many they say there were."""
    run = processes.run_tests(emulated_tests(session), pattern, session.scratch,
                              {**os.environ, "CUDA_EMULATION_DEVICES": "8"})
    shapes = run.properties.get("generated_cases", 0)
    return Result(shapes, f">= {least}, none wrong", run.passed and shapes >= least, {"failed": run.failed})


def selection_shapes(session):
    """select_k on the emulated device gives the CPU's answer, to the bit, for generated shapes."""
    return generated_shapes(session, "*SelectKGenerated*", 500)


def exact_search_shapes(session):
    """knn on the emulated device gives the CPU's answer, to the bit, for generated shapes."""
    return generated_shapes(session, "*SixtyShapes*", 200)


def list_search_shapes(session):
    """Searches in inverted lists on the emulated device give their definition's answer, to the bit, for generated shapes."""
    return generated_shapes(session, "*CudaListSearch.GeneratedShapes*", 200)


def list_scan_loads(session):
    """The scan of product codes loads every byte of codes once: 128 bytes of a warp at a time, on all architectures."""
    loops = list_scan_estimate.scan_loops(kernels(session))
    loaded = {f"{bits} bits, sm_{architecture}": loop.loaded_bytes() / loop.code_bytes()
              for (bits, architecture), loop in loops.items()}
    complete = {architecture for _, architecture in loops} == ARCHITECTURES and len(loops) == 2 * len(ARCHITECTURES)
    worst = max(loaded.values(), default=None)
    rows = {gpu.name: round(list_scan_estimate.estimate(gpu, loops[8, gpu.architecture], 16).rows_per_second / 1e9)
            for gpu in gpu_estimate.GPUS if complete}
    return Result(worst, "1 byte per byte of codes", complete and worst == 1,
                  {"loaded": loaded, "an_estimate_of_10^9_rows_a_second": rows})


def several_devices(session):
    """Sharded and replicated over 1, 2, 3 and 8 devices, exact search still gives the CPU's answer."""
    return generated_shapes(session, "*FiftyShapes*", 200)


def checked_schedules(session):
    """The check build finds nothing in our kernels under five schedules, and every seeded bug."""
    passed, failed = tests(session, "emulated-check")
    seeds = {match[1] for name in passed if (match := re.search(r"\.seed(\d)\.", name))}
    reported = re.compile(r"emulation\.seed\d\.All/SeededBugs\.AreReported/(.+)")
    of_emulator = {match[1] for name in passed if (match := reported.match(name))}
    # "none" and "none_in_knn" are the controls: the kernels as they are, in which nothing may be found.
    of_product = {name for name in passed if re.match(r"cuda\.seeded_bug\.(?!none)", name)}
    holds = not failed and len(seeds) == 5 and len(of_emulator) >= 19 and len(of_product) >= 10
    return Result(len(failed), "0 failures over 5 seeds, >= 19 + 10 seeded bugs found", holds,
                  {"failed": failed, "passed": len(passed), "seeds": sorted(seeds),
                   "seeded_bugs_of_emulator": len(of_emulator), "seeded_bugs_of_product": len(of_product)})


FIGURES = (kernel_resources, selection_fast_path, selection_estimate_k100, selection_estimate_k1000, selection_shapes,
           exact_search_shapes, list_search_shapes, list_scan_loads, several_devices, checked_schedules)
