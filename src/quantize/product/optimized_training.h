// Alternating training of rotation and codewords. The caller has checked the rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/product/train_codebooks.h"

namespace nearwise::quantize {

struct OptimizedTraining {
  const char* operation = "";
  CodebookTraining codebooks;  // before and after the rounds
  std::size_t rounds = 0;      // at most
};

// A rotation and codewords of the rotated rows.
struct OptimizedCodebooks {
  std::vector<float> matrix;  // [dim, dim]
  std::vector<float> codewords;
  double error = 0;  // sum over the rows
};

// Minimum budget in bytes.
std::uint64_t optimized_training_bytes(const Context& context, const RowsView& rows,
                                       const OptimizedTraining& training);

OptimizedCodebooks train_optimized_codebooks(const Context& context, const RowsView& rows,
                                             const OptimizedTraining& training);

// Eigenvalue allocation: the principal axis of each rotated dimension, [dim]. Axes are dealt by descending
// variance, each to the part with the smallest product of variances that has room.
std::vector<std::size_t> deal_axes(const Codebooks& shape, const std::vector<double>& variances);

}  // namespace nearwise::quantize
