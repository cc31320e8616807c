#include "codes/additive_codewords.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace nearwise {
namespace {

constexpr float largest_entry = 32000;  // leaves room for rounding

}  // namespace

std::size_t AdditiveWords::width_of(std::size_t dim) { return round_up(dim, cost_lanes); }

std::size_t AdditiveWords::pair_entries(std::size_t count) {
  return count * (count - 1) * additive_words * additive_words;
}

std::uint64_t AdditiveWords::bytes(std::size_t dim, std::size_t count) {
  const std::size_t words = count * additive_words;
  return buffer_bytes(dim, sizeof(double)) +
         buffer_bytes(checked_multiply(words, width_of(dim), "additive codes"), sizeof(float)) +
         buffer_bytes(words * dim, sizeof(float)) + buffer_bytes(words, sizeof(float)) +
         buffer_bytes(count, sizeof(float)) + buffer_bytes(count, sizeof(double)) +
         buffer_bytes(count * dim, sizeof(double));
}

AdditiveWords::AdditiveWords(MemoryBudget& budget, std::size_t dim, std::size_t count,
                             std::span<const float> words)
    : dim_(dim),
      count_(count),
      offset_(budget, dim),
      words_(budget, count * additive_words * width_of(dim)),
      columns_(budget, count * additive_words * dim),
      norms_(budget, count * additive_words),
      scales_(budget, count) {
  Buffer<double> means(budget, count * dim);
  Buffer<double> longest(budget, count);
  centre(words, means.span());
  measure(words, means.span(), longest.span());
  fill(words, means.span());
}

// A mean that all codewords of a codebook share says nothing about which to choose, but would fill the range of the entries.
void AdditiveWords::centre(std::span<const float> given, std::span<double> means) {
  std::fill_n(offset_.data(), dim_, 0.0);
  for (std::size_t book = 0; book < count_; ++book) {
    double* const mean = means.data() + book * dim_;
    std::fill_n(mean, dim_, 0.0);
    for (std::size_t word = 0; word < additive_words; ++word)
      for (std::size_t i = 0; i < dim_; ++i)
        mean[i] += static_cast<double>(given[(book * additive_words + word) * dim_ + i]);
    for (std::size_t i = 0; i < dim_; ++i) {
      mean[i] /= additive_words;
      offset_[i] += mean[i];
    }
  }
}

// The unit and the scales. Sums are made room for as large as they get where x, and the sum of the other codewords that is
// taken off it, are each as long as codewords in random directions make it; larger ones saturate, which costs quality and
// never correctness.
void AdditiveWords::measure(std::span<const float> given, std::span<const double> means,
                            std::span<double> longest) {
  double squares = 0;
  for (std::size_t book = 0; book < count_; ++book) {
    longest[book] = 0;
    for (std::size_t word = 0; word < additive_words; ++word) {
      double norm = 0;
      for (std::size_t i = 0; i < dim_; ++i) {
        const double element =
            static_cast<double>(given[(book * additive_words + word) * dim_ + i]) - means[book * dim_ + i];
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

void AdditiveWords::fill(std::span<const float> given, std::span<const double> means) {
  std::fill_n(words_.data(), words_.size(), 0.0F);
  for (std::size_t book = 0; book < count_; ++book)
    for (std::size_t word = 0; word < additive_words; ++word) {
      const std::size_t number = book * additive_words + word;
      double norm = 0;
      for (std::size_t i = 0; i < dim_; ++i) {
        const auto element = static_cast<float>(
            (static_cast<double>(given[number * dim_ + i]) - means[book * dim_ + i]) * unit_);
        words_[number * width() + i] = element;
        columns_[(book * dim_ + i) * additive_words + word] = element;
        norm += static_cast<double>(element) * static_cast<double>(element);
      }
      norms_[number] = static_cast<float>(norm);
    }
}

}  // namespace nearwise
