// Instruction sets that kernels are compiled for. Include before any Highway header.
//
// Excluded: SSSE3 (CPUs with it have SSE4) and SVE (tiles need a register size known at compile time). On x86
// this leaves AVX-512, AVX2, SSE4 and Highway's plain C++ fallback, named "portable"; on ARM64, NEON alone.
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
