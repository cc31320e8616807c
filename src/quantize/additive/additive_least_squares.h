// The codewords that make the squared distances of rows from the sums of their codewords least, given the
// codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "quantize/linear_algebra/strip_matrix.h"

namespace nearwise::quantize {

// Normal equations: element (a, b) of the matrix counts the rows whose codes name both codewords a and b, and
// the right sides add up the rows whose codes name a. All sums are in the order of the rows, whatever the
// threads. Made once: the matrix takes (256 * codebooks)^2 doubles.
class AdditiveLeastSquares {
 public:
  AdditiveLeastSquares(const Context& context, std::size_t codebooks, std::size_t dim);
  static std::uint64_t bytes(std::size_t codebooks, std::size_t dim);

  // words: [codebooks, 256, dim] out. A codeword that no code names becomes zero.
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
