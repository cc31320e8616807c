// Selection: the k best values of every row of a matrix.
//
// The contract: best first, the lower id wins a tie; -0 and +0 tie; infinities are ordinary values; a NaN is chosen
// only where a row has too few numbers, after all of them, and NaNs among themselves are ordered by id. Values are
// returned as they were given, to the bit. The same on every instruction set, device and number of threads. What lies on
// a CUDA device must be complete before the call: its work is on a stream that waits for no other.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise {

struct SelectOptions {
  Order order = Order::smallest;
  ShortRows short_rows = ShortRows::refuse;  // if k exceeds the number of columns
};

// [rows, k], best first.
struct Selection {
  Matrix<Id> ids;
  Matrix<float> values;
};

// An id is a column's number.
Selection select_k(const Context& context, MatrixView<const float> values, std::size_t k,
                   const SelectOptions& options = {});

// An id is the caller's: `ids` has the shape of `values`, or one row that serves all rows. Any number is an id like
// another; of values and ids that are both equal, the one in the lower column comes first.
Selection select_k(const Context& context, MatrixView<const float> values, MatrixView<const Id> ids,
                   std::size_t k, const SelectOptions& options = {});
Selection select_k(const Context& context, MatrixView<const float> values,
                   MatrixView<const std::uint32_t> ids, std::size_t k, const SelectOptions& options = {});

}  // namespace nearwise
