// Looks for rows with NaN or infinity, which are refused.
#pragma once

#include <cstddef>

#include "backend/ops.h"

namespace nearwise::cpu {

bool is_finite_row(const RowsView& rows, std::size_t index);

}  // namespace nearwise::cpu
