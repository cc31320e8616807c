// Refuses rows with NaN or infinity, or with elements too large for an operation, naming the lowest.
#pragma once

#include <cstddef>

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

// The lowest row with NaN or infinity; the number of rows if there is none. On the host.
std::size_t first_not_finite(const Context& context, const RowsView& rows);

// first_row: row number of rows[0], what: word for a row, in the message. Rows on a device are checked by its
// backend.
void check_finite(const char* operation, const Context& context, const RowsView& rows,
                  std::size_t first_row = 0, const char* what = "row");

// Largest magnitude of elements that quantizers with a rotation or sums of codewords are trained on and
// encode: neither a rotation of up to 2^20 dimensions nor 32 codebooks make it overflow.
inline constexpr float max_coded_value = 1e34F;
// The same for inverted files, whose residuals may be twice as large.
inline constexpr float max_indexed_value = 1e33F;

// check_finite(), then refuses elements beyond the limit.
void check_coded_range(const char* operation, const Context& context, const RowsView& rows,
                       float limit = max_coded_value);

}  // namespace nearwise
