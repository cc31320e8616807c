// Linear equations with a symmetric positive definite matrix, by Cholesky factorisation.
#pragma once

#include "nearwise/context.h"
#include "quantize/linear_algebra/strip_matrix.h"

namespace nearwise::quantize {

// Solves matrix * x = right for every column of `right`, in place. Only the upper triangle of the matrix is
// read; all of it is overwritten. Padding must be positive on the diagonal and zero elsewhere. The result
// does not depend on threads or the instruction set. Throws Error(internal) if the matrix is not positive
// definite.
void solve_positive(const Context& context, StripMatrix& matrix, StripMatrix& right);

}  // namespace nearwise::quantize
