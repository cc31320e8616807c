// CUDA's qualifiers and built-in variables for a host compiler. The types (dim3, float4, cudaStream_t) are the toolkit's.
#pragma once

#include <cuda_runtime.h>

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
// libstdc++ writes __attribute__((__noinline__)).
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
// All static shared variables lie in one section: poisoned when a block starts, exchanged when another one runs.
// g++ 12 cannot place variables of templates in a section (its bug 41091), hence clang.
#define __shared__ static __attribute__((section("cuda_emulation_shared")))

// Calls that may report a mistake know where they were made.
#define CUDA_EMULATION_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Those of the CUDA thread that runs now.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;
