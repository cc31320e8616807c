#include "backend/cpu/rows/finite_rows.h"

#include <cmath>

#include "core/convert.h"

namespace nearwise::cpu {

bool is_finite_row(const RowsView& rows, std::size_t index) {
  return visit_element_type(rows.type(), [&](auto tag) {
    for (std::size_t i = 0; i < rows.dim(); ++i)
      if (!std::isfinite(element<decltype(tag)>(rows.row(index), i))) return false;
    return true;
  });
}

}  // namespace nearwise::cpu
