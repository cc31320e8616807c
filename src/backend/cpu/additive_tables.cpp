#include "backend/cpu/additive_tables.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace nearwise::cpu {
namespace {

constexpr float largest_entry = 32000;  // leaves room for rounding
static_assert(AdditiveCodebooks::words_each == additive_words);

std::size_t pair_entries(const AdditiveCodebooks& codebooks) {
  return codebooks.count * (codebooks.count - 1) * additive_words * additive_words;
}

}  // namespace

std::size_t AdditiveTables::width_of(std::size_t dim) { return round_up(dim, cost_lanes); }

std::uint64_t AdditiveTables::bytes(const AdditiveCodebooks& codebooks) {
  const std::size_t words = codebooks.count * additive_words;
  return buffer_bytes(codebooks.dim, sizeof(double)) +
         buffer_bytes(checked_multiply(words, width_of(codebooks.dim), "additive codes"), sizeof(float)) +
         buffer_bytes(words * codebooks.dim, sizeof(float)) + buffer_bytes(words, sizeof(float)) +
         buffer_bytes(codebooks.count, sizeof(float)) + buffer_bytes(codebooks.count, sizeof(double)) +
         buffer_bytes(codebooks.count * codebooks.dim, sizeof(double)) +
         buffer_bytes(pair_entries(codebooks), sizeof(std::int16_t));
}

AdditiveTables::AdditiveTables(CpuStream& cpu, const AdditiveCodebooks& codebooks)
    : codebooks_(codebooks),
      offset_(cpu.budget(), codebooks.dim),
      words_(cpu.budget(), codebooks.count * additive_words * width_of(codebooks.dim)),
      columns_(cpu.budget(), codebooks.count * additive_words * codebooks.dim),
      norms_(cpu.budget(), codebooks.count * additive_words),
      scales_(cpu.budget(), codebooks.count),
      pairs_(cpu.budget(), pair_entries(codebooks)) {
  {
    Buffer<double> means(cpu.budget(), codebooks.count * codebooks.dim);
    Buffer<double> longest(cpu.budget(), codebooks.count);
    centre(means.span());
    measure(means.span(), longest.span());
    fill_words(means.span());
  }
  const AdditiveKernels& kernels = additive_kernels(cpu.set);
  static constexpr float zeros[additive_words] = {};
  cpu.threads().for_each(codebooks.count * (codebooks.count - 1), [&](std::size_t slot) {
    cpu.context.cancel.check();
    const std::size_t book = slot / (codebooks.count - 1);
    const std::size_t rest = slot % (codebooks.count - 1);
    const std::size_t other = rest < book ? rest : rest + 1;
    kernels.scaled_products({.rows = words_.data() + other * additive_words * width(),
                             .stride = width(),
                             .count = additive_words,
                             .dim = codebooks_.dim,
                             .columns = columns(book),
                             .start = zeros,
                             .factor = 2,
                             .scale = scales_[book],
                             .out = pairs_.data() + slot * additive_words * additive_words});
  });
}

// A mean that all codewords of a codebook share says nothing about which to choose, but would fill the range of the entries.
void AdditiveTables::centre(std::span<double> means) {
  const std::size_t dim = codebooks_.dim;
  std::fill_n(offset_.data(), dim, 0.0);
  for (std::size_t book = 0; book < codebooks_.count; ++book) {
    double* const mean = means.data() + book * dim;
    std::fill_n(mean, dim, 0.0);
    for (std::size_t word = 0; word < additive_words; ++word)
      for (std::size_t i = 0; i < dim; ++i) mean[i] += static_cast<double>(codebooks_.word(book, word)[i]);
    for (std::size_t i = 0; i < dim; ++i) {
      mean[i] /= additive_words;
      offset_[i] += mean[i];
    }
  }
}

// The unit and the scales. Sums are made room for as large as they get where x, and the sum of the other codewords that is
// taken off it, are each as long as codewords in random directions make it; larger ones saturate, which costs quality and
// never correctness.
void AdditiveTables::measure(std::span<const double> means, std::span<double> longest) {
  double squares = 0;
  for (std::size_t book = 0; book < codebooks_.count; ++book) {
    longest[book] = 0;
    for (std::size_t word = 0; word < additive_words; ++word) {
      double norm = 0;
      for (std::size_t i = 0; i < codebooks_.dim; ++i) {
        const double element =
            static_cast<double>(codebooks_.word(book, word)[i]) - means[book * codebooks_.dim + i];
        norm += element * element;
      }
      longest[book] = std::max(longest[book], norm);
    }
    squares += longest[book];
  }
  if (squares > 0) unit_ = std::ldexp(1.0, -std::ilogb(std::sqrt(squares)));
  longest_ = std::sqrt(2 * squares) * unit_;
  for (std::size_t book = 0; book < codebooks_.count; ++book) {
    const double length = std::sqrt(longest[book]) * unit_;
    const double most = length * length + 2 * length * longest_;
    // Codewords that lie 10^12 times closer together than others need no range of their own.
    scales_[book] = static_cast<float>(static_cast<double>(largest_entry) / std::max(most, 1e-24));
  }
}

void AdditiveTables::fill_words(std::span<const double> means) {
  const std::size_t dim = codebooks_.dim;
  std::fill_n(words_.data(), words_.size(), 0.0F);
  for (std::size_t book = 0; book < codebooks_.count; ++book)
    for (std::size_t word = 0; word < additive_words; ++word) {
      double norm = 0;
      for (std::size_t i = 0; i < dim; ++i) {
        const auto element = static_cast<float>(
            (static_cast<double>(codebooks_.word(book, word)[i]) - means[book * dim + i]) * unit_);
        words_[(book * additive_words + word) * width() + i] = element;
        columns_[(book * dim + i) * additive_words + word] = element;
        norm += static_cast<double>(element) * static_cast<double>(element);
      }
      norms_[book * additive_words + word] = static_cast<float>(norm);
    }
}

void AdditiveTables::fill_own(const AdditiveKernels& kernels, std::size_t book, const float* rows,
                              std::size_t count, std::int16_t* out) const {
  kernels.scaled_products({.rows = rows,
                           .stride = width(),
                           .count = count,
                           .dim = codebooks_.dim,
                           .columns = columns(book),
                           .start = norms_.data() + book * additive_words,
                           .factor = -2,
                           .scale = scales_[book],
                           .out = out});
}

}  // namespace nearwise::cpu
