#include "backend/ops.h"
#include "core/check.h"

namespace nearwise {

void refuse_row(RowsRole role, std::size_t row) {
  fail(ErrorCode::invalid_argument,
       "exact search: every element must be finite, {} row {} holds NaN or infinity",
       role == RowsRole::queries ? "query" : "base", row);
}

}  // namespace nearwise
