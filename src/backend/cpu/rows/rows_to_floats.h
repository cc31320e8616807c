// Conversion of any element type to f32, which is exact.
#pragma once

#include <cstddef>

#include "core/convert.h"
#include "nearwise/matrix.h"

namespace nearwise::cpu {

// out: [rows, dim]
inline void rows_to_floats(const RowsView& rows, float* out) {
  visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t row = 0; row < rows.rows(); ++row, out += rows.dim())
      for (std::size_t i = 0; i < rows.dim(); ++i) out[i] = element<decltype(tag)>(rows.row(row), i);
  });
}

}  // namespace nearwise::cpu
