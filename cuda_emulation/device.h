// What a kernel file sees instead of CUDA: qualifiers, built-in variables, collectives, atomics, intrinsics, launches.
//
// Included by src/backend/cuda/device/gpu.h for every compiler but nvcc. README.md has the rules for kernels.
#pragma once

#include "cuda_emulation/device/atomics.h"
#include "cuda_emulation/device/collectives.h"
#include "cuda_emulation/device/cooperative_groups.h"
#include "cuda_emulation/device/intrinsics.h"
#include "cuda_emulation/device/launch.h"
#include "cuda_emulation/device/qualifiers.h"
