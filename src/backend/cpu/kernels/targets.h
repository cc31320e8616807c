// Which instruction sets the kernels are compiled for. Included before anything of Highway.
//
// Left out: SSSE3 (nothing that runs it lacks SSE4) and SVE (our tiles need vectors of a size known when compiling).
// What remains on x86: AVX-512, AVX2, SSE4 and Highway's plain C++ fallback, our "portable".
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
