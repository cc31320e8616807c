#include "codes/additive_codewords.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace nearwise {
namespace {

constexpr float largest_entry = 32000;  // leaves room for rounding

}  // namespace

std::size_t AdditiveCodewords::width_of(std::size_t dim) { return round_up(dim, cost_lanes); }

std::size_t AdditiveCodewords::pair_entries(std::size_t count) {
  return count * (count - 1) * additive_codebook_size * additive_codebook_size;
}

std::uint64_t AdditiveCodewords::bytes(std::size_t dim, std::size_t count) {
  const std::size_t codewords = count * additive_codebook_size;
  return buffer_bytes(dim, sizeof(double)) +
         buffer_bytes(checked_multiply(codewords, width_of(dim), "additive codes"), sizeof(float)) +
         buffer_bytes(codewords * dim, sizeof(float)) + buffer_bytes(codewords, sizeof(float)) +
         buffer_bytes(count, sizeof(float)) + buffer_bytes(count, sizeof(double)) +
         buffer_bytes(count * dim, sizeof(double));
}

AdditiveCodewords::AdditiveCodewords(MemoryBudget& budget, std::size_t dim, std::size_t count,
                                     std::span<const float> codewords)
    : dim_(dim),
      count_(count),
      offset_(budget, dim),
      codewords_(budget, count * additive_codebook_size * width_of(dim)),
      columns_(budget, count * additive_codebook_size * dim),
      norms_(budget, count * additive_codebook_size),
      scales_(budget, count) {
  Buffer<double> means(budget, count * dim);
  Buffer<double> longest(budget, count);
  centre(codewords, means.span());
  measure(codewords, means.span(), longest.span());
  fill(codewords, means.span());
}

// A mean that all codewords of a codebook share says nothing about which to choose, but would fill the range
// of the entries.
void AdditiveCodewords::centre(std::span<const float> given, std::span<double> means) {
  std::fill_n(offset_.data(), dim_, 0.0);
  for (std::size_t book = 0; book < count_; ++book) {
    double* const mean = means.data() + book * dim_;
    std::fill_n(mean, dim_, 0.0);
    for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword)
      for (std::size_t i = 0; i < dim_; ++i)
        mean[i] += static_cast<double>(given[(book * additive_codebook_size + codeword) * dim_ + i]);
    for (std::size_t i = 0; i < dim_; ++i) {
      mean[i] /= additive_codebook_size;
      offset_[i] += mean[i];
    }
  }
}

// The unit and the scales. Sums are made room for as large as they get where x, and the sum of the other
// codewords that is taken off it, are each as long as codewords in random directions make it; larger ones
// saturate, which costs quality and never correctness.
void AdditiveCodewords::measure(std::span<const float> given, std::span<const double> means,
                                std::span<double> longest) {
  double squares = 0;
  for (std::size_t book = 0; book < count_; ++book) {
    longest[book] = 0;
    for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword) {
      double norm = 0;
      for (std::size_t i = 0; i < dim_; ++i) {
        const double element =
            static_cast<double>(given[(book * additive_codebook_size + codeword) * dim_ + i]) -
            means[book * dim_ + i];
        norm += element * element;
      }
      longest[book] = std::max(longest[book], norm);
    }
    squares += longest[book];
  }
  if (squares > 0) unit_ = std::ldexp(1.0, -std::ilogb(std::sqrt(squares)));
  longest_ = std::sqrt(2 * squares) * unit_;
  for (std::size_t book = 0; book < count_; ++book) {
    const double length = std::sqrt(longest[book]) * unit_;
    const double most = length * length + 2 * length * longest_;
    // Codewords that lie 10^12 times closer together than others need no range of their own.
    scales_[book] = static_cast<float>(static_cast<double>(largest_entry) / std::max(most, 1e-24));
  }
}

void AdditiveCodewords::fill(std::span<const float> given, std::span<const double> means) {
  std::fill_n(codewords_.data(), codewords_.size(), 0.0F);
  for (std::size_t book = 0; book < count_; ++book)
    for (std::size_t codeword = 0; codeword < additive_codebook_size; ++codeword) {
      const std::size_t number = book * additive_codebook_size + codeword;
      double norm = 0;
      for (std::size_t i = 0; i < dim_; ++i) {
        const auto element = static_cast<float>(
            (static_cast<double>(given[number * dim_ + i]) - means[book * dim_ + i]) * unit_);
        codewords_[number * width() + i] = element;
        columns_[(book * dim_ + i) * additive_codebook_size + codeword] = element;
        norm += static_cast<double>(element) * static_cast<double>(element);
      }
      norms_[number] = static_cast<float>(norm);
    }
}

}  // namespace nearwise
