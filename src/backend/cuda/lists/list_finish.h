// The end of a search in lists: the rows of the best scores are evaluated as they are reported, and the best of them are the
// candidates - where the scores prove that no other row can be one. For other queries all rows are evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/device/stream.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/lists/list_tiles.h"
#include "backend/cuda/rows/best_lists.h"
#include "backend/cuda/rows/pair_evaluator.h"
#include "backend/ops.h"

namespace nearwise::gpu {

struct FinishShape {
  PairEvaluator::Shape evaluated;
  std::size_t length = 0;  // of the lists of scores
  std::size_t candidates = 0;
  std::size_t taken = 0;  // by a second look
};

// At the least, of both.
std::uint64_t list_finish_bytes(const FinishShape& shape);

void finish_lists(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                  const ListScorer& scorer, const BestLists& scores);

// Queries for whom scores prove too little.
std::uint64_t evaluate_lists_bytes(const FinishShape& shape);
void evaluate_lists(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                    const FinishShape& shape, std::span<const std::uint32_t> queries);

}  // namespace nearwise::gpu
