// Top-k selection: the k best values of every row of a matrix.
//
// Sorted best first, ties by lower id; -0 and +0 tie; infinities are ordinary values; NaNs come after all
// numbers, ordered by id. Values are returned bit for bit. Results are the same on every instruction set,
// device and number of threads. Data on a CUDA device must be complete before the call (device_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/export.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace NEARWISE_EXPORT nearwise {

struct SelectOptions {
  Order order = Order::smallest;
  ShortRows short_rows = ShortRows::refuse;  // if k exceeds the number of columns
};

// [rows, k], best first.
struct Selection {
  Matrix<Id> ids;
  Matrix<float> values;
};

// Ids are column numbers.
Selection select_k(const Context& context, MatrixView<const float> values, std::size_t k,
                   const SelectOptions& options = {});

// With the caller's ids: `ids` has the shape of `values`, or one row for all. If value and id are both equal,
// the lower column comes first.
Selection select_k(const Context& context, MatrixView<const float> values, MatrixView<const Id> ids,
                   std::size_t k, const SelectOptions& options = {});
Selection select_k(const Context& context, MatrixView<const float> values,
                   MatrixView<const std::uint32_t> ids, std::size_t k, const SelectOptions& options = {});

}  // namespace nearwise
