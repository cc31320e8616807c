// Additive quantizers for tests, and their comparison with the oracle.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "nearwise/additive_quantizer.h"
#include "oracle/additive_quantizer.h"
#include "support/quantizer_cases.h"

namespace nearwise::support {

inline oracle::AdditiveQuantizer as_oracle(const AdditiveQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.codebooks(),
          std::vector<double>(quantizer.words().begin(), quantizer.words().end())};
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
  std::vector<float> words;
  double scale = 1;
  for (std::size_t book = 0; book < codebooks; ++book, scale /= 2) {
    const Values values = generate(kind, 256, dim, seed + book);
    for (std::size_t word = 0; word < 256; ++word)
      for (std::size_t i = 0; i < dim; ++i) words.push_back(static_cast<float>(values(word, i) * scale));
  }
  return AdditiveQuantizer::from_codebooks(dim, words, even_norms(static_cast<float>(dim) * 4));
}

// Codewords of one element and equal lengths: sums of the entries of 16 bits that the search compares leave their range.
inline AdditiveQuantizer saturating_additive(std::size_t codebooks, std::uint64_t seed) {
  const Values values = generate(Kind::uniform, 256 * codebooks, 1, seed);
  std::vector<float> words;
  for (std::size_t word = 0; word < values.rows(); ++word)
    words.push_back(static_cast<float>(values(word, 0) * 2 - 1));
  return AdditiveQuantizer::from_codebooks(1, words, even_norms(4));
}

// The codes without the byte of the length.
inline std::span<const std::uint8_t> words_of_code(const Matrix<std::uint8_t>& codes, std::size_t row) {
  return codes.row(row).first(codes.cols() - 1);
}

inline std::vector<double> costs_of(const AdditiveQuantizer& quantizer, RowsView rows,
                                    const Matrix<std::uint8_t>& codes) {
  const oracle::AdditiveQuantizer reference = as_oracle(quantizer);
  const std::vector<double> values = oracle::to_doubles(rows);
  std::vector<double> costs;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    costs.push_back(oracle::cost(reference, std::span(values).subspan(row * rows.dim(), rows.dim()),
                                 words_of_code(codes, row)));
  return costs;
}

inline std::vector<float> words_of(const AdditiveQuantizer& quantizer) {
  std::vector<float> all(quantizer.words().begin(), quantizer.words().end());
  all.insert(all.end(), quantizer.norms().begin(), quantizer.norms().end());
  return all;
}

}  // namespace nearwise::support
