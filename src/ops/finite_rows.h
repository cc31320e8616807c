// Rows with NaN or infinity are refused, the lowest by its number.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

// first_row: the number of the first of `rows`, and what: the word for them, for the message. Rows of a device are left to its backend.
void check_finite(const char* operation, const Context& context, const RowsView& rows,
                  std::size_t first_row = 0, const char* what = "row");

}  // namespace nearwise
