// Additive quantization, executed: costs, one step of a descent, and all codes there are, in double
// precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

struct AdditiveQuantizer {
  std::size_t dim = 0;
  std::size_t codebooks = 0;
  std::vector<double> codewords;  // [codebooks, 256, dim]

  double codeword(std::size_t book, std::size_t index, std::size_t i) const {
    return codewords[(book * 256 + index) * dim + i];
  }
};

using AdditiveCode = std::vector<std::uint8_t>;  // [codebooks]

// [dim]
inline std::vector<double> sum_of(const AdditiveQuantizer& quantizer, std::span<const std::uint8_t> code) {
  std::vector<double> sum(quantizer.dim, 0.0);
  for (std::size_t book = 0; book < quantizer.codebooks; ++book)
    for (std::size_t i = 0; i < quantizer.dim; ++i) sum[i] += quantizer.codeword(book, code[book], i);
  return sum;
}

inline double cost(const AdditiveQuantizer& quantizer, std::span<const double> row,
                   std::span<const std::uint8_t> code) {
  const std::vector<double> sum = sum_of(quantizer, code);
  double squares = 0;
  for (std::size_t i = 0; i < quantizer.dim; ++i) squares += (row[i] - sum[i]) * (row[i] - sum[i]);
  return squares;
}

// The best codeword of one codebook while the other codes stay.
inline std::uint8_t best_codeword(const AdditiveQuantizer& quantizer, std::span<const double> row,
                                  AdditiveCode code, std::size_t book) {
  std::uint8_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t codeword = 0; codeword < 256; ++codeword) {
    code[book] = static_cast<std::uint8_t>(codeword);
    const double found = cost(quantizer, row, code);
    if (found < least) {
      least = found;
      best = code[book];
    }
  }
  return best;
}

// Each codebook takes the codeword nearest to the residual of those before it.
inline AdditiveCode residual_code(const AdditiveQuantizer& quantizer, std::span<const double> row) {
  AdditiveQuantizer first = quantizer;
  AdditiveCode code;
  for (std::size_t book = 0; book < quantizer.codebooks; ++book) {
    first.codebooks = book + 1;
    code.push_back(0);
    code[book] = best_codeword(first, row, code, book);
  }
  return code;
}

// The least cost of all codes made of the first `words` codewords of every codebook.
inline double least_cost(const AdditiveQuantizer& quantizer, std::span<const double> row,
                         std::size_t codewords) {
  AdditiveCode code(quantizer.codebooks, 0);
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    least = std::min(least, cost(quantizer, row, code));
    std::size_t book = 0;
    while (book < quantizer.codebooks && ++code[book] == codewords) code[book++] = 0;
    if (book == quantizer.codebooks) return least;
  }
}

}  // namespace nearwise::oracle
