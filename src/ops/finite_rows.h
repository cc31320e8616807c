// Refuses rows with NaN or infinity, naming the lowest.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

// first_row: row number of rows[0], what: word for a row, in the message. Rows on a device are checked by its
// backend.
void check_finite(const char* operation, const Context& context, const RowsView& rows,
                  std::size_t first_row = 0, const char* what = "row");

}  // namespace nearwise
