#!/usr/bin/env python3
"""Checks who includes whom: the layers of docs/architecture.md, section 3, and where hardware may show.

Every `#include` of a C++ or CUDA file is resolved as the build would, the two files are placed in the layers,
and the pair is judged. Conditional compilation on a backend or an instruction set is refused outside the
few places that exist for it.
"""
import argparse
import re
import sys
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import repository

SUFFIXES = {".h", ".c", ".cpp", ".cu", ".cuh"}

# The folders of src/, lowest first. A file includes its own layer or a lower one.
LAYERS = {"core": 0, "io": 1, "codes": 1, "backend": 2, "ops": 3, "index": 4, "cluster": 4, "duplicates": 4, "quantize": 4, "ivf": 5,
          "graph": 5, "graph_index": 6, "choose": 7, "shard": 7, "plan": 8, "c_api": 9}
# Folders of one layer that may include one another: (including, included).
ALLOWED_SIBLINGS = {("quantize", "cluster")}

# Inside a folder: its subfolders, lowest first, those of one level side by side. A file includes its own
# subfolder and lower ones. Headers at the top of the folder are for all of it; sources there may include any
# subfolder. Subfolders of one level do not include each other, except those that are one unit.
SUBLAYERS = {
    "src/backend/cpu": (("kernels", "x86"), ("rows",), ("exact", "lists", "graph", "cluster", "codes", "select")),
    "src/backend/cuda": (("tuning",), ("device",), ("kernels", "block", "warp"), ("rows",),
                         ("exact", "lists", "graph", "cluster", "codes", "select")),
    "src/io": (("files",), ("container", "vectors")),
    "src/quantize": (("linear_algebra",), ("rotation",), ("product", "additive")),
    "src/ops": (("filter",),),
    "src/ivf": (("storage",), ("filter",)),
    "src/graph": (("partition",), ("build",), ("change", "use")),
    "src/graph_index": (("edges",), ("update", "export")),
    "src/plan": (("engine",), ("tasks",), ("partition",), ("pairs",), ("graph", "ivf", "graph_index", "join")),
    "cli": (("shared",), ("index", "graph", "quantizer", "duplicates", "files")),
}
# Levels whose folders may include each other: what runs in the innermost loops of one device.
UNITS = {("kernels", "x86"), ("kernels", "block", "warp")}

# A public header has the layer of its implementation.
PUBLIC_HEADERS = {name: folder for folder, names in {
    "core": "types error export filter matrix neighbors progress recall_estimate",
    "io": "vector_file storage",
    "backend": "context cuda_device machine",
    "ops": "exact merge_neighbors searchable select_k threshold_join device_memory",
    "cluster": "kmeans kmeans_parts",
    "duplicates": "dedup",
    "quantize": "additive_quantizer encoding optimized_product_quantizer product_quantizer rotation",
    "ivf": "ivf",
    "graph": "knn_graph graph_export graph_structure smoothest_path",
    "graph_index": "graph_index graph_index_export",
    "choose": "choose_index",
    "shard": "sharded",
    "plan": "plan plan_join",
    "c_api": "nearwise_c",
}.items() for name in names.split()}
# Headers for C, and what they may include.
C_HEADERS = PurePosixPath("include/nearwise/c")
C_STANDARD_HEADERS = {"stddef.h", "stdint.h"}
UMBRELLA = PurePosixPath("include/nearwise/nearwise.h")

# What the folder of one backend sees of src/backend.
BACKEND_SEAM = {PurePosixPath("src/backend/backend.h"), PurePosixPath("src/backend/cuda_backend.h"), PurePosixPath("src/backend/ops.h")}
BACKENDS = (PurePosixPath("src/backend/cpu"), PurePosixPath("src/backend/cuda"))

# Leaves use the library as anyone does; each sees the public headers and its own folder.
LEAVES = ("cli", "python", "examples")
# Tests and benchmarks look into the library; nobody looks into them.
OBSERVERS = ("tests", "bench")
# The emulated device stands in for CUDA: one header of the CUDA backend includes it, and its tests use that
# header.
EMULATION = PurePosixPath("cuda_emulation")
EMULATED_CUDA = PurePosixPath("src/backend/cuda/device/gpu.h")


class Restriction(NamedTuple):
    """Headers of one library, and the only places that may include them."""

    pattern: re.Pattern
    places: tuple[str, ...]


RESTRICTED = (
    Restriction(re.compile(r"hwy/"), ("src/backend/cpu/kernels/", "src/backend/cpu/x86/")),
    Restriction(re.compile(r"(\w*intrin|arm_neon|arm_sve|cpuid)\.h$"), ("src/backend/cpu/x86/", "tests/support/float_modes.h")),
    Restriction(re.compile(r"(cuda|cublas|curand|nccl|cub/|thrust/|cooperative_groups)"),
                ("src/backend/cuda/", "cuda_emulation/")),
    Restriction(re.compile(r"(cblas|lapacke?|openblas)"), ("bench/",)),
)

STANDARD_HEADERS = set("""
    algorithm any array atomic barrier bit bitset cassert cctype cerrno cfenv cfloat charconv chrono cinttypes climits
    clocale cmath compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef cstdint cstdio
    cstdlib cstring ctime cuchar cwchar cwctype deque exception execution filesystem forward_list fstream functional
    future initializer_list iomanip ios iosfwd iostream istream iterator latch limits list locale map memory
    memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex scoped_allocator
    semaphore set shared_mutex span sstream stack stdexcept stop_token streambuf string string_view syncstream
    system_error thread tuple type_traits typeindex typeinfo unordered_map unordered_set utility valarray variant
    vector version""".split())

INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]", re.MULTILINE)
CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
HARDWARE = re.compile(
    r"\b(__(AVX|SSE|SSSE|AMX|FMA|F16C|BMI|ARM|NVCC|CUDA|aarch64|x86_64|amd64|i386)\w*"
    r"|_M_(X64|IX86|ARM)\w*|HWY_\w+|CUDA\w*"
    r"|NEARWISE_(\w*_)?(CPU|CUDA|GPU|AVX|SSE|NEON|SVE|AMX|TBB|HWY|SIMD|ISA|THREADS)\w*)")
# Highway's re-inclusion needs its own boilerplate; one header hides real CUDA from the emulated device.
HARDWARE_ALLOWED = {"src/backend/cpu/kernels/": re.compile(r"(HWY_\w+|NEARWISE_\w+_(H_?|TOGGLE))$"),
                    "src/backend/cuda/device/gpu.h": re.compile(""),
                    # Flushes denormals in a test's thread; no portable call does.
                    "tests/support/float_modes.h": re.compile("__SSE2__")}


def layer_folder(path):
    """The folder of src/ to which a file of src/ or include/nearwise belongs, or None."""
    if path.parts[0] == "src" and len(path.parts) > 2:
        return path.parts[1]
    if path.parts[:2] == ("include", "nearwise"):
        return PUBLIC_HEADERS.get(path.stem)
    return None


def is_within(path, folder):
    return folder in path.parents


def is_public(path):
    return path.parts[:2] == ("include", "nearwise")


def resolve(including, name, known):
    """The repository's file that `name` means in `including`, or None if it is not ours."""
    roots = [including.parent, *map(PurePosixPath, ("include", "src", including.parts[0], "."))]
    if including.parts[0] in OBSERVERS:
        roots.append(PurePosixPath("tests"))
    for root in roots:
        parts = []
        for part in (root / name).parts:
            if part == "..":
                parts = parts[:-1]
            else:
                parts.append(part)
        if (candidate := PurePosixPath(*parts)) in known:
            return candidate
    return None


def judge_layers(user, used):
    user_folder, used_folder = layer_folder(user), layer_folder(used)
    if user_folder not in LAYERS or used_folder not in LAYERS:
        return None  # an unknown folder or header is reported once, by itself
    user_layer, used_layer = LAYERS[user_folder], LAYERS[used_folder]
    if used_layer > user_layer:
        return f"{user_folder} (layer {user_layer}) includes {used_folder} (layer {used_layer})"
    if used_layer == user_layer and user_folder != used_folder and (user_folder, used_folder) not in ALLOWED_SIBLINGS:
        return f"{user_folder} and {used_folder} share a layer and may not meet"
    return None


def judge_backend(user, used):
    for backend in BACKENDS:
        if is_within(used, backend) and not is_within(user, backend):
            return f"{backend} is private to its folder"
        if is_within(user, backend) and not is_within(used, backend):
            # It may implement a public header of its layer (machine.h).
            of_this_layer = is_public(used) and layer_folder(used) == "backend"
            if used not in BACKEND_SEAM and not of_this_layer and layer_folder(used) not in ("core", "codes"):
                return f"{backend} sees core, codes and the headers of the seam, nothing else"
    return None


def judge_sublayers(user, used):
    """Why one subfolder of a folder may not include another of the same folder, or None."""
    for folder, levels in SUBLAYERS.items():
        base = PurePosixPath(folder)
        if not (is_within(user, base) and is_within(used, base)):
            continue
        inner, used_inner = (path.relative_to(base).parts for path in (user, used))
        if len(inner) == 1 or len(used_inner) == 1 or inner[0] == used_inner[0]:
            return None
        level_of = {name: number for number, names in enumerate(levels) for name in names}
        unknown = [name for name in (inner[0], used_inner[0]) if name not in level_of]
        if unknown:
            return f"{folder}/{unknown[0]} has no level in tools/check_layers.py"
        level, used_level = level_of[inner[0]], level_of[used_inner[0]]
        if used_level > level:
            return f"{folder}/{inner[0]} includes {used_inner[0]}, which is above it"
        if used_level == level and levels[level] not in UNITS:
            return f"{folder}/{inner[0]} and {used_inner[0]} share a level and may not include each other"
    return None


def judge_own(user, used):
    """Why `user` may not include our file `used`, or None."""
    area, used_area = user.parts[0], used.parts[0]
    if area in OBSERVERS:
        return "a leaf is no library" if used_area in LEAVES else None
    if is_within(user, EMULATION):
        if is_within(used, EMULATION) or used == EMULATED_CUDA or is_public(used):
            return None
        return f"{EMULATION} includes its own files, {EMULATED_CUDA.name} and public headers only"
    if user == EMULATED_CUDA and is_within(used, EMULATION):
        return None
    if is_within(user, C_HEADERS) and not is_within(used, C_HEADERS) and used.name != "export.h":
        return "a header for C includes one for C++"
    if user.suffix == ".c" and is_public(used) and not is_within(used, C_HEADERS):
        return "a program in C includes a header for C++"
    if area in LEAVES:
        own = PurePosixPath(*user.parts[:2]) if area == "examples" else PurePosixPath(area)
        if is_public(used):
            return None
        if is_within(used, own):
            return judge_sublayers(user, used)
        return f"{area} may include include/nearwise and its own files only"
    if used_area not in ("src", "include"):
        return f"the library includes {used_area}/"
    if is_public(user) and not is_public(used):
        return "a public header includes a private one"
    if user == UMBRELLA:
        return None
    if used == UMBRELLA:
        return "nearwise.h is for users; include what is needed"
    return judge_backend(user, used) or judge_layers(user, used) or judge_sublayers(user, used)


def judge_foreign(user, name):
    """Why `user` may not include the foreign header `name`, or None."""
    if is_within(user, C_HEADERS):
        return None if name in C_STANDARD_HEADERS else f"a header for C includes something other than {sorted(C_STANDARD_HEADERS)}"
    if is_public(user) and name not in STANDARD_HEADERS:
        return "a public header includes something other than the standard library and nearwise"
    for pattern, places in RESTRICTED:
        if pattern.match(name) and not any(str(user).startswith(place) for place in places):
            return f"only {' and '.join(places)} may include it"
    return None


def judge_condition(path, condition):
    """Why the condition of an #if in `path` is refused, or None."""
    words = [match.group(0) for match in HARDWARE.finditer(condition)]
    for place, allowed in HARDWARE_ALLOWED.items():
        if str(path).startswith(place):
            words = [word for word in words if not allowed.match(word)]
    return f"the build selects files, not macros: #if on {', '.join(words)}" if words else None


def check_file(path, text, known):
    """Findings of one file: its path, its text, and the set of all paths."""
    text = BLOCK_COMMENT.sub(lambda match: "\n" * match.group(0).count("\n"), text)
    findings = []

    def report(match, message):
        findings.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {message}")

    if path.parts[0] == "src" and len(path.parts) > 2 and path.parts[1] not in LAYERS:
        findings.append(f"{path}:1: src/{path.parts[1]} has no layer in tools/check_layers.py")
    if is_public(path) and path != UMBRELLA and path.stem not in PUBLIC_HEADERS:
        findings.append(f"{path}:1: this public header has no layer in tools/check_layers.py")
    for match in INCLUDE.finditer(text):
        name = match.group(2)
        used = resolve(path, name, known)
        reason = judge_own(path, used) if used else judge_foreign(path, name)
        if reason:
            report(match, f"includes {name}: {reason}")
    for match in CONDITION.finditer(text):
        if reason := judge_condition(path, match.group(1)):
            report(match, reason)
    return findings


def check(root):
    paths = [PurePosixPath(path) for path in repository.files(root) if path.suffix in SUFFIXES]
    known = set(paths)
    return [finding for path in paths
            for finding in check_file(path, (root / path).read_text(encoding="utf-8"), known)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=repository.ROOT)
    return repository.conclude("check_layers", check(parser.parse_args().root))


if __name__ == "__main__":
    sys.exit(main())
