// Quantizers for tests, and their comparison with the oracle.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "nearwise/quantize/product_quantizer.h"
#include "oracle/product_quantizer.h"
#include "support/knn_cases.h"

namespace nearwise::support {

inline oracle::Quantizer as_oracle(const ProductQuantizer& quantizer) {
  return {quantizer.dim(), quantizer.parts(), quantizer.bits(),
          std::vector<double>(quantizer.codebooks().begin(), quantizer.codebooks().end())};
}

// A quantizer that nobody trained: its codewords are rows of the same kind of data.
inline ProductQuantizer untrained(Kind kind, std::size_t dim, std::size_t parts, unsigned bits,
                                  std::uint64_t seed) {
  const std::size_t count = bits == 8 ? 256 : 16;
  const Values values = generate(kind, count, dim, seed);
  const oracle::Quantizer shape{dim, parts, bits, {}};
  std::vector<float> codewords;
  for (std::size_t part = 0; part < parts; ++part)
    for (std::size_t c = 0; c < count; ++c)
      for (std::size_t i = 0; i < shape.length(part); ++i)
        codewords.push_back(static_cast<float>(values(c, shape.begin(part) + i)));
  return ProductQuantizer::from_codebooks(dim, parts, bits, codewords);
}

template <typename T>
::testing::AssertionResult same(const std::vector<T>& expected, const Matrix<T>& given) {
  if (given.rows() * given.cols() != expected.size())
    return ::testing::AssertionFailure() << fmt::format("shape: {} elements expected, got [{}, {}]",
                                                        expected.size(), given.rows(), given.cols());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (std::memcmp(&expected[i], given.data() + i, sizeof(T)) != 0)
      return ::testing::AssertionFailure()
             << fmt::format("row {} column {}: expected {}, got {}", i / given.cols(), i % given.cols(),
                            expected[i], given.data()[i]);
  return ::testing::AssertionSuccess();
}

template <typename T>
std::vector<T> to_vector(const Matrix<T>& matrix) {
  return {matrix.data(), matrix.data() + matrix.rows() * matrix.cols()};
}

inline std::vector<float> codewords_of(const ProductQuantizer& quantizer) {
  return {quantizer.codebooks().begin(), quantizer.codebooks().end()};
}

}  // namespace nearwise::support
