// Least-squares codewords for fixed codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/linear_algebra/strip_matrix.h"

namespace nearwise::quantize {

// Normal equations: element (a, b) of the matrix counts the rows coded with both codewords a and b; right
// side a is the sum of the rows coded with a. Sums are in row order at any number of threads. Reused across
// rounds, since the matrix takes (256 * codebooks)^2 doubles.
class AdditiveLeastSquares {
 public:
  AdditiveLeastSquares(const Context& context, std::size_t codebooks, std::size_t dim);
  static std::uint64_t bytes(std::size_t codebooks, std::size_t dim);

  // codewords: [codebooks, 256, dim] out; unused ones become zero.
  void fit(const MatrixView<const float>& rows, const MatrixView<const std::uint8_t>& codes,
           std::span<float> codewords);

 private:
  void count_pairs(const MatrixView<const std::uint8_t>& codes);
  void add_rows(const MatrixView<const float>& rows, const MatrixView<const std::uint8_t>& codes);

  const Context& context_;
  const std::size_t codebooks_;
  const std::size_t dim_;
  StripMatrix matrix_;  // [256 * codebooks, 256 * codebooks]
  StripMatrix sums_;    // [256 * codebooks, dim] and the solution
};

}  // namespace nearwise::quantize
