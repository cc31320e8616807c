// Argument checks shared by all operations on vectors.
#pragma once

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

// Throws Error(invalid_argument) in the name of `operation` unless the two can be compared.
void check_rows(const char* operation, const Context& context, const RowsView& queries, const RowsView& base);

}  // namespace nearwise
