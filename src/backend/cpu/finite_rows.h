// Rows with NaN or infinity are refused by their number.
#pragma once

#include <cstddef>

#include "backend/ops.h"

namespace nearwise::cpu {

bool is_finite_row(const RowsView& rows, std::size_t index);

[[noreturn]] void refuse_row(RowsRole role, std::size_t row);

}  // namespace nearwise::cpu
