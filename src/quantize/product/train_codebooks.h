// Training of product quantizers: k-means on each part. Arguments have been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

struct CodebookTraining {
  Codebooks shape;                 // dim, parts and bits, without codewords
  std::size_t iterations = 1;      // at most
  std::span<const float> initial;  // codebooks to start from; empty: seeded by k-means
};

// As cluster::training_cost().
double training_cost(const RowsView& rows, const CodebookTraining& training);

// Lower bound of the memory charged to the budget.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, const CodebookTraining& training);

// Part after part, each [2^bits, dimensions of the part].
std::vector<float> train_codebooks(const Context& context, const RowsView& rows,
                                   const CodebookTraining& training);

}  // namespace nearwise::quantize
