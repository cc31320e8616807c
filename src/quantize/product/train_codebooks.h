// k-means on every part of rows that have been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "core/progress.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::quantize {

// dim, parts and bits of the codebooks that are to be trained; they have no words yet.
struct CodebookTraining {
  Codebooks shape;
  std::size_t iterations = 1;      // at most
  std::span<const float> initial;  // codebooks to start from; empty: seeded by k-means
};

// Pairs that the progress of a training counts, at the most.
std::uint64_t training_pairs(const RowsView& rows, const CodebookTraining& training);

// Bytes on the budget, at the least.
std::uint64_t training_bytes(const Context& context, const RowsView& rows, const CodebookTraining& training);

// Part after part, each [2^bits, its elements].
std::vector<float> train_codebooks(const Context& context, const RowsView& rows,
                                   const CodebookTraining& training, ProgressMeter& progress);

}  // namespace nearwise::quantize
