// Nearest of at most 256 centroids for short vectors, as in k-means of a product quantizer's parts.
// Low-precision scores decide few of them: hundreds of centroids in a few dimensions are close to each other.
#pragma once

#include <cstdint>

#include "backend/cpu/stream.h"
#include "backend/ops.h"

namespace nearwise::cpu {

// Whether assign_short supports these vectors, if there are at most 256 centroids.
bool may_be_short(std::size_t dim, Metric metric, ElementType base_type);

// Budgeted bytes.
std::uint64_t assign_short_bytes(std::size_t dim);

// Same result as `assign`; returns false without doing anything if unsupported.
bool assign_short(CpuStream& cpu, const AssignArgs& args);

}  // namespace nearwise::cpu
