// CUDA's qualifiers and built-in variables for a host compiler. Types such as dim3, float4 and cudaStream_t
// come from the toolkit.
#pragma once

#include <cuda_runtime.h>

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
// libstdc++ uses the word in __attribute__((__noinline__)).
#undef __noinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
// All static shared variables are in one section, which is poisoned when a block starts and swapped when
// another block runs. g++ 12 cannot place variables of templates in a section (GCC bug 41091), hence clang.
#define __shared__ static __attribute__((section("cuda_emulation_shared")))

// Source location of the caller, for calls that may report an error.
#define CUDA_EMULATION_LOCATION const char *file = __builtin_FILE(), int line = __builtin_LINE()

// Values of the CUDA thread that is running.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;
