// Sizes that keep the tasks of an index within the memory limit, independent of the machine and its threads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/ivf.h"
#include "nearwise/matrix.h"

namespace nearwise::plan {

// Fills in every default of the options, and lowers training_rows to what fits the memory limit. Throws
// Error(invalid_argument | out_of_memory) in the name of plan_index.
IvfOptions settle(const Context& context, const RowsView& rows, const IvfOptions& options);

// A memory limit that settle() accepts, about the smallest.
std::uint64_t least_limit(const Context& context, const RowsView& rows, const IvfOptions& options);

// Bytes that the index keeps of each vector in addition to its code.
std::size_t vector_bytes(const RowsView& rows, const IvfOptions& settled);

// Vectors that one task adds, if settle() has not thrown.
std::size_t block_rows(const Context& context, const RowsView& rows, const IvfOptions& settled);

}  // namespace nearwise::plan
