// Product quantization, executed: every part of every row against every codeword, in double precision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// Codewords of all parts in double precision. Lengths of parts: dim / parts each, and one more for the first
// dim % parts.
struct Quantizer {
  std::size_t dim = 0;
  std::size_t parts = 0;
  unsigned bits = 8;
  std::vector<double> codewords;  // part after part, [2^bits, length]

  std::size_t count() const { return bits == 8 ? 256 : 16; }
  std::size_t length(std::size_t part) const { return dim / parts + (part < dim % parts ? 1 : 0); }
  std::size_t begin(std::size_t part) const {
    std::size_t sum = 0;
    for (std::size_t p = 0; p < part; ++p) sum += length(p);
    return sum;
  }
  std::span<const double> codeword(std::size_t part, std::size_t index) const {
    return std::span(codewords).subspan(begin(part) * count() + index * length(part), length(part));
  }
  std::size_t code_bytes() const { return bits == 8 ? parts : parts / 2 + parts % 2; }
};

// [rows, parts] numbers of codewords, not packed.
inline std::vector<std::size_t> nearest_codewords(const Quantizer& quantizer, RowsView rows) {
  const std::vector<double> values = to_doubles(rows);
  std::vector<std::size_t> nearest;
  for (std::size_t row = 0; row < rows.rows(); ++row)
    for (std::size_t part = 0; part < quantizer.parts; ++part) {
      const auto piece =
          std::span(values).subspan(row * quantizer.dim + quantizer.begin(part), quantizer.length(part));
      std::size_t best = 0;
      for (std::size_t c = 1; c < quantizer.count(); ++c)
        if (reported(Metric::sqeuclidean, piece, quantizer.codeword(part, c)) <
            reported(Metric::sqeuclidean, piece, quantizer.codeword(part, best)))
          best = c;
      nearest.push_back(best);
    }
  return nearest;
}

// As bytes: of 4 bits, the even parts are in the low halves.
inline std::vector<std::uint8_t> pack(const Quantizer& quantizer, const std::vector<std::size_t>& nearest) {
  const std::size_t rows = nearest.size() / quantizer.parts;
  std::vector<std::uint8_t> codes(rows * quantizer.code_bytes(), 0);
  for (std::size_t row = 0; row < rows; ++row)
    for (std::size_t part = 0; part < quantizer.parts; ++part) {
      const std::size_t codeword = nearest[row * quantizer.parts + part];
      if (quantizer.bits == 8) {
        codes[row * quantizer.parts + part] = static_cast<std::uint8_t>(codeword);
      } else {
        std::uint8_t& byte = codes[row * quantizer.code_bytes() + part / 2];
        byte = static_cast<std::uint8_t>(byte + (part % 2 == 0 ? codeword : codeword * 16));
      }
    }
  return codes;
}

// [rows, dim] what numbers of codewords stand for.
inline std::vector<double> reconstruct(const Quantizer& quantizer, const std::vector<std::size_t>& nearest) {
  std::vector<double> rows;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    const auto codeword = quantizer.codeword(i % quantizer.parts, nearest[i]);
    rows.insert(rows.end(), codeword.begin(), codeword.end());
  }
  return rows;
}

// [queries, parts * 2^bits]
inline std::vector<float> tables(const Quantizer& quantizer, RowsView queries, Metric metric) {
  const std::vector<double> values = to_doubles(queries);
  std::vector<float> entries;
  for (std::size_t query = 0; query < queries.rows(); ++query)
    for (std::size_t part = 0; part < quantizer.parts; ++part)
      for (std::size_t c = 0; c < quantizer.count(); ++c)
        entries.push_back(reported(
            metric,
            std::span(values).subspan(query * quantizer.dim + quantizer.begin(part), quantizer.length(part)),
            quantizer.codeword(part, c)));
  return entries;
}

inline double error(const Quantizer& quantizer, RowsView rows) {
  const std::vector<double> values = to_doubles(rows);
  const std::vector<double> decoded = reconstruct(quantizer, nearest_codewords(quantizer, rows));
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += (values[i] - decoded[i]) * (values[i] - decoded[i]);
  return sum / static_cast<double>(rows.rows());
}

}  // namespace nearwise::oracle
