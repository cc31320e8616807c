// A symmetric matrix reduced to a tridiagonal one by Householder reflections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "nearwise/context.h"
#include "quantize/linear_algebra/strip_matrix.h"

namespace nearwise::quantize {

struct Tridiagonal {
  std::vector<double> diagonal;      // [n]
  std::vector<double> off_diagonal;  // [n] element i is at (i, i + 1) and (i + 1, i); the last one is 0
  std::vector<double> scales;        // [n] of the reflections I - scale v v'; 0: none
};

// matrix: [n, n], elements at most 1 in magnitude. Vector v of reflection k is left in elements k + 1 ... of
// row k.
Tridiagonal reduce_to_tridiagonal(const Context& context, std::span<double> matrix, std::size_t n);

// axes: [n, n] out, the transposed product Q' of the reflections: matrix = Q * tridiagonal * Q'.
void expand_reflections(const Context& context, std::span<const double> matrix, const Tridiagonal& reduced,
                        StripMatrix& axes);

}  // namespace nearwise::quantize
