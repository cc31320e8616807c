// Argument checks shared by all operations on vectors.
#pragma once

#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise {

// Names of two sets of vectors in messages.
struct RowsNames {
  const char* queries = "queries";
  const char* base = "base";
};

// Throws Error(invalid_argument) in the name of `operation` unless the two can be compared.
void check_rows(const char* operation, const Context& context, const RowsView& queries, const RowsView& base,
                const RowsNames& names = {});

}  // namespace nearwise
