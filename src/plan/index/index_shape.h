// Sizes that keep the tasks of an index within the memory limit, the same whatever the machine and its threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/plan.h"

namespace nearwise::plan {

// What sizes and costs depend on, for any codec.
struct IndexShape {
  Metric metric;
  std::size_t lists;
  std::size_t code_bytes;
  std::size_t bits;  // of a product code; 0: another
  bool is_additive = false;
};

// Gives the options their numbers: lists, code bytes, rows to train on. Throws Error(invalid_argument | out_of_memory) in the
// name of plan_index.
IndexShape settle(const Context& context, const RowsView& rows, IndexPlanOptions& options);

// Throws Error(out_of_memory) where the limit is too small for any block.
std::size_t block_rows(const Context& context, const RowsView& rows, const IndexShape& shape);

}  // namespace nearwise::plan
