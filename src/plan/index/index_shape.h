// Sizes that keep the tasks of an index within the memory limit; they do not depend on the machine or its
// threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/plan.h"

namespace nearwise::plan {

// The parameters of sizes and costs, for any codec.
struct IndexShape {
  Metric metric;
  std::size_t lists;
  std::size_t code_bytes;
  std::size_t bits;  // per PQ code; 0 for other codecs
  bool is_additive = false;
};

// Resolves default list count, code bytes and training rows in `options`. Throws Error(invalid_argument |
// out_of_memory) naming plan_index.
IndexShape settle(const Context& context, const RowsView& rows, IndexPlanOptions& options);

// Throws Error(out_of_memory) if the limit is too small for any block.
std::size_t block_rows(const Context& context, const RowsView& rows, const IndexShape& shape);

}  // namespace nearwise::plan
