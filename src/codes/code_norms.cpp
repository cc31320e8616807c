#include "codes/code_norms.h"

#include <algorithm>
#include <cmath>

#include "core/distance.h"

namespace nearwise {

CodeNorms::CodeNorms(MemoryBudget& budget, const ListCodec& codec, const CodewordTables& codewords,
                     Metric metric, std::span<const float> centre)
    : codec_(codec),
      codewords_(codewords),
      metric_(metric),
      centre_(centre),
      additive_(codec.encoding == ListEncoding::lsq),
      tables_(budget, additive_ ? 0 : codec.parts() << codec.bits),
      centroid_(budget, additive_ ? codec.dim : 0),
      sum_(budget, additive_ ? codec.dim : 0) {}

// Product codes: |c' + r|^2 / 2 = |c'|^2 / 2 + sum over parts of <r, c' + r / 2>. Codewords of additive codes
// are not orthogonal: there the sum is decoded.
void CodeNorms::begin_list(std::size_t list) {
  if (additive_) {
    for (std::size_t i = 0; i < codec_.dim; ++i)
      centroid_[i] = static_cast<double>(codec_.centroids(list, i)) -
                     (centre_.empty() ? 0.0 : static_cast<double>(centre_[i]));
    return;
  }
  const std::size_t codewords = std::size_t{1} << codec_.bits;
  std::ranges::fill(tables_.span(), 0.0);
  start_ = 0;
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    double* const table = tables_.data() + part * codewords;
    for (std::size_t i = codec_.part_begins[part]; i < codec_.part_begins[part + 1]; ++i) {
      const double given = codec_.centroids(list, i);
      const double centroid = centre_.empty() ? given : given - centre_[i];
      start_ += centroid * centroid / 2;
      const float* const column = codewords_.columns().data() + i * codewords;
      for (std::size_t codeword = 0; codeword < codewords; ++codeword) {
        const double value = column[codeword];
        table[codeword] += value * (centroid + value / 2);
      }
    }
  }
}

template <unsigned bits>
double CodeNorms::half_norm_of_product(const std::byte* code) const {
  double sums[2] = {start_, 0};
  for (std::size_t part = 0; part < codec_.parts(); ++part)
    sums[part % 2] += tables_[(part << bits) + codeword_of<bits>(code, part)];
  return std::max(0.0, sums[0] + sums[1]);
}

double CodeNorms::half_norm_of_sum(const std::byte* code) {
  std::ranges::copy(centroid_.span(), sum_.data());
  for (std::size_t part = 0; part < codec_.parts(); ++part) {
    const float* const codeword = codec_.codewords_of(part).data() + codeword_of<8>(code, part) * codec_.dim;
    for (std::size_t i = 0; i < codec_.dim; ++i) sum_[i] += static_cast<double>(codeword[i]);
  }
  double squares = 0;
  for (const double element : sum_.span()) squares += element * element;
  return squares / 2;
}

void CodeNorms::fill(const std::byte* codes, std::size_t rows, float* out) {
  const auto fill_all = [&](const auto& half_norm) {
    for (std::size_t row = 0; row < rows; ++row) {
      const double half = half_norm(codes + row * codec_.code_bytes);
      out[row] = static_cast<float>(is_euclidean(metric_) ? half : std::sqrt(2 * half));
    }
  };
  if (additive_)
    fill_all([&](const std::byte* code) { return half_norm_of_sum(code); });
  else if (codec_.bits == 8)
    fill_all([&](const std::byte* code) { return half_norm_of_product<8>(code); });
  else
    fill_all([&](const std::byte* code) { return half_norm_of_product<4>(code); });
}

}  // namespace nearwise
