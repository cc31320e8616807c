// What additive encoding needs of the codebooks, made once and shared by the threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kernels/additive_codes.h"
#include "backend/cpu/stream.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::cpu {

// Codewords around the mean of their codebook, and twice the products of all pairs from different codebooks.
//
// With x around the sum of the means, the cost of a code is |x|^2 + sum_i own_i + sum_(i < j) pair_ij, where own_i =
// |c_i|^2 - 2 <x, c_i> and pair_ij = 2 <c_i, c_j>. Entries are 16-bit integers: half the memory traffic of f32, which is
// what the search takes its time for. Each codebook i has a scale of its own, for its own entries and for the pairs where its
// codewords are the candidates, as only sums over the candidates of one codebook are compared.
class AdditiveTables {
 public:
  AdditiveTables(CpuStream& cpu, const AdditiveCodebooks& codebooks);
  static std::uint64_t bytes(const AdditiveCodebooks& codebooks);

  std::size_t codebooks() const { return codebooks_.count; }
  std::size_t dim() const { return codebooks_.dim; }
  std::size_t width() const { return width_of(codebooks_.dim); }
  static std::size_t width_of(std::size_t dim);

  // Rows are taken as (x - offset) * unit, a power of two: squares of any rows that f32 holds are far from its limits then.
  std::span<const double> offset() const { return offset_.span(); }  // [dim] the sum of the means
  double unit() const { return unit_; }
  const float* words() const { return words_.data(); }  // [codebooks * 256, width] so taken
  // Rows beyond this length are searched as if they had it: their entries would leave the range of 16 bits.
  double longest() const { return longest_; }

  // [candidates of `other`, candidates of `book`]
  const std::int16_t* pairs(std::size_t book, std::size_t other) const {
    const std::size_t slot = book * (codebooks_.count - 1) + (other < book ? other : other - 1);
    return pairs_.data() + slot * additive_words * additive_words;
  }

  // Own entries of rows [count, width] for one codebook, [count, 256].
  void fill_own(const AdditiveKernels& kernels, std::size_t book, const float* rows, std::size_t count,
                std::int16_t* out) const;

 private:
  void centre(std::span<double> means);
  void measure(std::span<const double> means, std::span<double> longest);
  void fill_words(std::span<const double> means);
  const float* columns(std::size_t book) const {
    return columns_.data() + book * codebooks_.dim * additive_words;
  }

  const AdditiveCodebooks codebooks_;
  Buffer<double> offset_;
  Buffer<float> words_;
  Buffer<float> columns_;       // [codebooks, dim, 256]
  Buffer<float> norms_;         // [codebooks, 256] squared
  Buffer<float> scales_;        // [codebooks]
  Buffer<std::int16_t> pairs_;  // [codebooks, codebooks - 1, 256, 256]
  double unit_ = 1;
  double longest_ = 0;  // in this unit
};

}  // namespace nearwise::cpu
