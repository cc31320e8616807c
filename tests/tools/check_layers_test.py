"""check_layers must fail on what it forbids: a check that cannot fail is worse than none."""
from pathlib import PurePosixPath

import pytest

import check_layers

KNOWN = {PurePosixPath(name) for name in """
    include/nearwise/types.h include/nearwise/error.h include/nearwise/context.h include/nearwise/exact.h
    include/nearwise/vector_file.h include/nearwise/storage.h include/nearwise/nearwise.h
    src/core/check.h src/core/parallel.h src/io/container.h src/backend/backend.h src/backend/ops.h
    src/backend/context_state.h src/backend/cpu/knn.h src/backend/cpu/kernels/tile.h src/backend/cuda/device/gpu.h
    src/ops/exact.h src/cluster/kmeans.h src/quantize/rotation/rotation.h src/ivf/ivf.h src/graph/knn_graph.h
    include/nearwise/export.h include/nearwise/c/nearwise_c.h src/c_api/call.h
    src/shard/sharded.h src/plan/engine/plan.h cli/command.h python/bindings/arrays.h examples/cpp/common.h
    tests/oracle/knn.h bench/timing.h""".split()}


def findings(path, text):
    return check_layers.check_file(PurePosixPath(path), text, KNOWN)


ALLOWED = [
    ("include/nearwise/c/nearwise_c.h", '#include <stdint.h>\n#include "nearwise/export.h"'),
    ("src/c_api/call.cpp", '#include "src/plan/engine/plan.h"\n#include "nearwise/c/nearwise_c.h"'),
    ("examples/c/search.c", "#include <nearwise/c/nearwise_c.h>\n#include <stdio.h>"),
    ("src/core/memory.cpp", '#include "core/check.h"'),
    ("src/core/memory.cpp", '#include "nearwise/error.h"'),
    ("src/io/npy.cpp", '#include "nearwise/vector_file.h"'),
    ("src/backend/context.cpp", '#include "backend/context_state.h"'),
    ("src/backend/cpu/knn.cpp", '#include "backend/ops.h"'),
    ("src/backend/cpu/knn.cpp", '#include "backend/cpu/kernels/tile.h"'),
    ("src/backend/cpu/scan_rates.cpp", '#include "nearwise/context.h"'),
    ("src/backend/cpu/kernels/tile.cpp", "#include <hwy/highway.h>"),
    ("src/backend/cpu/kernels/tile.cpp", "#if HWY_ONCE\n#endif"),
    ("src/backend/cpu/kernels/tile.h",
     "#if defined(NEARWISE_CPU_KERNELS_TILE_H_) == defined(HWY_TARGET_TOGGLE)\n#endif"),
    ("src/backend/cpu/x86/tiles.cpp", "#include <immintrin.h>"),
    ("src/backend/cuda/device/gpu.h", "#ifdef __CUDACC__\n#include <cuda_runtime.h>\n#endif"),
    ("src/ops/exact.cpp", '#include "backend/backend.h"'),
    ("src/quantize/rotation/rotation.cpp", '#include "cluster/kmeans.h"'),
    ("src/plan/engine/plan.cpp", '#include "shard/sharded.h"'),
    ("include/nearwise/exact.h", '#include <vector>\n#include "nearwise/context.h"'),
    ("include/nearwise/nearwise.h", '#include "nearwise/exact.h"'),
    ("cli/main.cpp", '#include <CLI/CLI.hpp>\n#include "command.h"\n#include "nearwise/nearwise.h"'),
    ("python/bindings/exact.cpp", '#include <nanobind/nanobind.h>\n#include "bindings/arrays.h"'),
    ("examples/cpp/knn.cpp", '#include <nearwise/nearwise.h>\n#include "common.h"'),
    ("tests/ops/exact_test.cpp", '#include "oracle/knn.h"\n#include "backend/cpu/knn.h"'),
    ("bench/ops/knn_bench.cpp", '#include "tests/oracle/knn.h"\n#include "ops/exact.h"'),
    ("src/core/memory.cpp", "#ifdef __SANITIZE_ADDRESS__\n#endif"),
    ("src/core/memory.cpp", "/*\n#include <hwy/highway.h>\n*/"),
    ("src/core/memory.cpp", "// #include <hwy/highway.h>"),
]

FORBIDDEN = [
    ("src/core/memory.cpp", '#include "io/container.h"', "layer 1"),
    ("src/core/progress.h", '#include "nearwise/context.h"', "layer 2"),
    ("src/core/memory.cpp", '#include "../ops/exact.h"', "layer 3"),
    ("src/core/memory.cpp", "  #  include <nearwise/exact.h>", "layer 3"),
    ("src/io/npy.cpp", '#include "backend/ops.h"', "layer 2"),
    ("src/io/npy.cpp", '#include "nearwise/context.h"', "layer 2"),
    ("src/backend/context.cpp", '#include "ops/exact.h"', "layer 3"),
    ("src/backend/registry.cpp", '#include "backend/cpu/knn.h"', "private"),
    ("src/ops/exact.cpp", '#include "backend/cpu/knn.h"', "private"),
    ("src/ops/exact.cpp", '#include "backend/cuda/device/gpu.h"', "private"),
    ("src/backend/cuda/knn.cu", '#include "backend/cpu/knn.h"', "private"),
    ("src/backend/cpu/knn.cpp", '#include "backend/context_state.h"', "nothing else"),
    ("src/backend/cpu/knn.cpp", '#include "io/container.h"', "nothing else"),
    ("src/backend/cpu/knn.cpp", '#include "nearwise/vector_file.h"', "nothing else"),
    ("src/backend/cpu/knn.cpp", "#include <hwy/highway.h>", "kernels"),
    ("tests/backend/cpu/kernels/kernels_test.cpp", "#include <hwy/targets.h>", "kernels"),
    ("src/backend/cpu/knn.cpp", "#include <immintrin.h>", "x86"),
    ("src/ops/exact.cpp", "#include <cuda_runtime.h>", "cuda"),
    ("src/cluster/kmeans.cpp", '#include "quantize/rotation/rotation.h"', "may not meet"),
    ("src/ivf/ivf.cpp", '#include "graph/knn_graph.h"', "may not meet"),
    ("src/graph/merge.cpp", '#include "ivf/ivf.h"', "may not meet"),
    ("src/shard/sharded.cpp", '#include "plan/engine/plan.h"', "layer 7"),
    ("src/ops/exact.cpp", '#include "nearwise/nearwise.h"', "include what is needed"),
    ("src/ops/exact.cpp", '#include "../../tests/oracle/knn.h"', "tests"),
    ("src/plan/engine/plan.cpp", '#include "c_api/call.h"', "layer 9"),
    ("src/plan/engine/plan.cpp", '#include "nearwise/c/nearwise_c.h"', "layer 9"),
    ("include/nearwise/c/nearwise_c.h", '#include "nearwise/types.h"', "for C++"),
    ("include/nearwise/c/nearwise_c.h", "#include <cstdint>", "stdint.h"),
    ("examples/c/search.c", "#include <nearwise/exact.h>", "for C++"),
    ("src/misc/strings.cpp", "", "no layer"),
    ("include/nearwise/unheard_of.h", "", "no layer"),
    ("include/nearwise/types.h", '#include "nearwise/context.h"', "layer 2"),
    ("include/nearwise/exact.h", '#include "ops/exact.h"', "private"),
    ("include/nearwise/exact.h", "#include <fmt/format.h>", "standard library"),
    ("include/nearwise/exact.h", "#include <unistd.h>", "standard library"),
    ("cli/main.cpp", '#include "core/check.h"', "include/nearwise"),
    ("cli/main.cpp", '#include "src/core/check.h"', "include/nearwise"),
    ("python/bindings/exact.cpp", '#include "ops/exact.h"', "include/nearwise"),
    ("examples/cpp/knn.cpp", '#include "core/check.h"', "include/nearwise"),
    ("tests/cli/cli_test.cpp", '#include "../../cli/command.h"', "leaf"),
    ("src/ops/exact.cpp", "#ifdef NEARWISE_CUDA\n#endif", "NEARWISE_CUDA"),
    ("src/ops/exact.cpp", "#if defined(A) || \\\n    defined(__AVX2__)\n#endif", "__AVX2__"),
    ("src/ops/exact.cpp", "#if 0\n#elif defined(__x86_64__)\n#endif", "__x86_64__"),
    ("src/backend/cpu/x86/tiles.cpp", "#ifdef __AMX_BF16__\n#endif", "__AMX_BF16__"),
    ("src/backend/cpu/kernels/tile.cpp", "#ifdef __AVX512F__\n#endif", "__AVX512F__"),
    ("src/backend/cuda/knn.cu", "#ifdef __CUDA_ARCH__\n#endif", "__CUDA_ARCH__"),
]


@pytest.mark.parametrize(("path", "text"), ALLOWED)
def test_accepts(path, text):
    assert findings(path, text) == []


@pytest.mark.parametrize(("path", "text", "reason"), FORBIDDEN)
def test_refuses(path, text, reason):
    found = findings(path, text)
    assert len(found) == 1
    assert reason in found[0]


def test_names_the_line_also_after_a_block_comment():
    found = findings("src/core/memory.cpp", '/* one\ntwo */\n\n#include "io/container.h"\n')
    assert found[0].startswith("src/core/memory.cpp:4: ")


def test_program_fails_on_a_violation_and_not_without(make_repository, tool):
    root = make_repository({"src/core/a.h": '#include "io/b.h"\n', "src/io/b.h": "\n"})
    result = tool("check_layers.py", "--root", root)
    assert result.returncode == 1
    assert "src/core/a.h:1" in result.stderr
    (root / "src/core/a.h").write_text("\n")
    assert tool("check_layers.py", "--root", root).returncode == 0


def test_ignored_and_deleted_files_do_not_count(make_repository, tool):
    root = make_repository({".gitignore": "/build/\n", "build/src/core/a.h": '#include "io/b.h"\n', "src/io/b.h": "\n"})
    assert tool("check_layers.py", "--root", root).returncode == 0
