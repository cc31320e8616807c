// The alternation of rotation and codewords, over rows that have been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/product/train_codebooks.h"

namespace nearwise::quantize {

struct OptimizedTraining {
  const char* operation = "";
  CodebookTraining codebooks;  // of the starts, and of the end
  std::size_t rounds = 0;      // at most
};

// A rotation and codewords of the rotated rows.
struct OptimizedCodebooks {
  std::vector<float> matrix;  // [dim, dim]
  std::vector<float> codewords;
  double error = 0;  // sum over the rows
};

// Pairs that the progress counts, at the most.
std::uint64_t optimized_training_pairs(const RowsView& rows, const OptimizedTraining& training);

// Bytes on the budget, at the least.
std::uint64_t optimized_training_bytes(const Context& context, const RowsView& rows,
                                       const OptimizedTraining& training);

OptimizedCodebooks train_optimized_codebooks(const Context& context, const RowsView& rows,
                                             const OptimizedTraining& training, ProgressMeter& progress);

// Which principal axis each dimension of the rotated rows gets, [dim]: axes are dealt by falling variance,
// each to the part with the least product of variances that has room.
std::vector<std::size_t> deal_axes(const Codebooks& shape, const std::vector<double>& variances);

}  // namespace nearwise::quantize
