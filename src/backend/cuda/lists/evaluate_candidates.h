// Last step of a list search: evaluates the rows of the best scores and keeps the best as candidates if the
// scores certify that no other row can be one. For the other queries all probed rows are evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/device/stream.h"
#include "backend/cuda/lists/list_scorer.h"
#include "backend/cuda/lists/list_tiles.h"
#include "backend/cuda/rows/pair_evaluator.h"
#include "backend/cuda/rows/running_top_k.h"
#include "backend/ops.h"

namespace nearwise::gpu {

struct EvaluationShape {
  PairEvaluator::Shape evaluated;
  std::size_t length = 0;  // of the score lists
  std::size_t candidates = 0;
  std::size_t taken = 0;  // by re-ranking
};

// Minimum working memory of both functions.
std::uint64_t evaluate_candidates_bytes(const EvaluationShape& shape);

void evaluate_candidates(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                         const ListScorer& scorer, const RunningTopK& scores);

// For queries that scores cannot certify.
std::uint64_t exhaustive_lists_bytes(const EvaluationShape& shape);
void search_lists_exhaustively(const CudaStream& stream, const ListSearchArgs& args, const ListTiles& tiles,
                               const EvaluationShape& shape, std::span<const std::uint32_t> queries);

}  // namespace nearwise::gpu
