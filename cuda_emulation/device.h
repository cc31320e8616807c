// CUDA device code for a host compiler: qualifiers, built-in variables, collectives, atomics, intrinsics,
// launches.
//
// A project's kernel header includes this file for every compiler but nvcc (here
// src/backend/cuda/device/gpu.h). README.md has the rules for kernels.
#pragma once

#include "cuda_emulation/device/atomics.h"
#include "cuda_emulation/device/collectives.h"
#include "cuda_emulation/device/cooperative_groups.h"
#include "cuda_emulation/device/intrinsics.h"
#include "cuda_emulation/device/launch.h"
#include "cuda_emulation/device/qualifiers.h"
