// The nearest of few centroids for short rows: k-means within the parts of a product quantizer. Scores in low precision decide
// little there: a few elements tell hundreds of centroids apart only by their last bits.
#pragma once

#include <cstdint>

#include "backend/cpu/stream.h"
#include "backend/ops.h"

namespace nearwise::cpu {

// Whether assign_short takes such rows, where the base has at most 256.
bool may_be_short(std::size_t dim, Metric metric, ElementType base_type);

// Bytes on the budget.
std::uint64_t assign_short_bytes(std::size_t dim);

// Does what `assign` does, if it takes such rows at all.
bool assign_short(CpuStream& cpu, const AssignArgs& args);

}  // namespace nearwise::cpu
