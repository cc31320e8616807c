"""The claims of the CUDA backend that can be proved without a GPU: what its kernels compile to, and what they compute on
the emulated device."""
import re
import subprocess
import sys

from .figures import ROOT, Result

sys.path.insert(0, str(ROOT / "tools"))

import kernel_report  # noqa: E402  (found through the line above)

ARCHITECTURES = {75, 80, 90, 100, 120}


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
    instructions = {}
    for kernel in kernels(session):
        match = re.search(r"select_rows<.*::(\w+), (\d+)>", kernel.name)
        if match is None:
            continue
        capacity = int(match[2])
        loads = 8 if capacity <= 256 else 4  # tuning/selection.h: values_per_lane
        length = kernel_report.shortest_round(kernel, loads)
        instructions.setdefault(f"{match[1]} {capacity}", {})[f"sm_{kernel.architecture}"] = (
            None if length is None else round(length / loads, 2))
    judged = [by.get("sm_90") for name, by in instructions.items() if int(name.split()[1]) <= 128]
    known = bool(judged) and None not in judged
    worst = max(judged) if known else None
    return Result(worst, "<= 8", known and worst <= 8, {"instructions_per_32_elements": instructions})


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


def selection_shapes(session):
    """select_k on the emulated device gives the CPU's answer, to the bit, for 640 generated shapes."""
    passed, failed = tests(session, "emulated", "-R", "Generated")
    shapes = 20 * len(passed)  # of a test, tests/backend/cuda/select_k_test.cu
    return Result(shapes, ">= 500, none wrong", shapes >= 500 and not failed, {"failed": failed})


def exact_search_shapes(session):
    """knn on the emulated device gives the CPU's answer, to the bit, for 240 generated shapes."""
    passed, failed = tests(session, "emulated", "-R", "SixtyShapes")
    shapes = 60 * len(passed)  # of a test, tests/backend/cuda/knn_test.cu
    return Result(shapes, ">= 200, none wrong", shapes >= 200 and not failed, {"failed": failed})


def several_devices(session):
    """Sharded and replicated over 1, 2, 3 and 8 devices, exact search still gives the CPU's answer: 200 shapes."""
    passed, failed = tests(session, "emulated", "-R", "FiftyShapes")
    shapes = 50 * len(passed)  # of a test, tests/backend/cuda/sharded_test.cu
    return Result(shapes, ">= 200, none wrong", shapes >= 200 and not failed, {"failed": failed})


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


FIGURES = (kernel_resources, selection_fast_path, selection_shapes, exact_search_shapes, several_devices,
           checked_schedules)
