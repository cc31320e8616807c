// Detects vectors with NaN or infinite elements, which are rejected.
#pragma once

#include <cstddef>

#include "backend/ops.h"

namespace nearwise::cpu {

bool is_finite_row(const RowsView& rows, std::size_t index);

}  // namespace nearwise::cpu
