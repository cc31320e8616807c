// Additive quantizers for tests, and their comparison with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/math/random.h"
#include "nearwise/quantize/additive_quantizer.h"
#include "oracle/additive_quantizer.h"
#include "support/quantizer_cases.h"

namespace nearwise::support {

inline oracle::AdditiveQuantizer as_oracle(const AdditiveQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.codebooks(),
          std::vector<double>(quantizer.codewords().begin(), quantizer.codewords().end())};
}

// 256 lengths around those of `rows`-like sums.
inline std::vector<float> even_norms(float largest) {
  std::vector<float> norms(AdditiveQuantizer::centroids);
  for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = largest * static_cast<float>(i) / 255.0F;
  return norms;
}

// A quantizer that nobody trained: codebooks of rows of that kind, each half as long as the one before.
inline AdditiveQuantizer untrained_additive(Kind kind, std::size_t dim, std::size_t codebooks,
                                            std::uint64_t seed) {
  std::vector<float> codewords;
  double scale = 1;
  for (std::size_t book = 0; book < codebooks; ++book, scale /= 2) {
    const Values values = generate(kind, 256, dim, seed + book);
    for (std::size_t codeword = 0; codeword < 256; ++codeword)
      for (std::size_t i = 0; i < dim; ++i)
        codewords.push_back(static_cast<float>(values(codeword, i) * scale));
  }
  return AdditiveQuantizer::from_codebooks(dim, codewords, even_norms(static_cast<float>(dim) * 4));
}

// Codewords of one element and equal lengths: sums of the entries of 16 bits that the search compares leave
// their range.
inline AdditiveQuantizer saturating_additive(std::size_t codebooks, std::uint64_t seed) {
  const Values values = generate(Kind::uniform, 256 * codebooks, 1, seed);
  std::vector<float> codewords;
  for (std::size_t codeword = 0; codeword < values.rows(); ++codeword)
    codewords.push_back(static_cast<float>(values(codeword, 0) * 2 - 1));
  return AdditiveQuantizer::from_codebooks(1, codewords, even_norms(4));
}

// The codes without the byte of the length.
inline std::span<const std::uint8_t> codewords_of_code(const Matrix<std::uint8_t>& codes, std::size_t row) {
  return codes.row(row).first(codes.cols() - 1);
}

inline std::vector<double> costs_of(const AdditiveQuantizer& quantizer, RowsView rows,
                                    const Matrix<std::uint8_t>& codes) {
  const oracle::AdditiveQuantizer reference = as_oracle(quantizer);
  const std::vector<double> values = oracle::to_doubles(rows);
  std::vector<double> costs;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    costs.push_back(oracle::cost(reference, std::span(values).subspan(row * rows.dim(), rows.dim()),
                                 codewords_of_code(codes, row)));
  return costs;
}

inline std::vector<float> codewords_of(const AdditiveQuantizer& quantizer) {
  std::vector<float> all(quantizer.codewords().begin(), quantizer.codewords().end());
  all.insert(all.end(), quantizer.norms().begin(), quantizer.norms().end());
  return all;
}

}  // namespace nearwise::support
