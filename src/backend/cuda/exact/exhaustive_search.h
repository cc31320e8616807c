// Exhaustive search for queries that scores cannot certify: evaluates every base row and keeps the k best.
#pragma once

#include <cstdint>
#include <span>

#include "backend/cuda/device/stream.h"
#include "backend/cuda/rows/top_k_collector.h"
#include "backend/ops.h"

namespace nearwise::gpu {

// Minimum working memory.
std::uint64_t exhaustive_search_bytes(const KnnCostsArgs& args);

void search_exhaustively(const CudaStream& stream, const FinishTopKArgs& args, const TopKCollector& top_k,
                         std::span<const std::uint32_t> queries);

}  // namespace nearwise::gpu
