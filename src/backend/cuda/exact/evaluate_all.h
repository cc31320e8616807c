// Queries for whom scores prove too little: every row of the base is evaluated, and the k best are kept.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cuda/device/stream.h"
#include "backend/cuda/rows/top_k.h"
#include "backend/ops.h"

namespace nearwise::gpu {

// At the least.
std::uint64_t evaluating_bytes(const KnnCostsArgs& args);

void evaluate_all(const CudaStream& stream, const FinishTopKArgs& args, const TopK& found,
                  std::span<const std::uint32_t> queries);

}  // namespace nearwise::gpu
