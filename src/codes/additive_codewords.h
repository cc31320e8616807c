// The codewords of an additive quantizer as every backend searches with them, hence for the same codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory.h"

namespace nearwise {

inline constexpr std::size_t additive_codebook_size = 256;  // codewords of a codebook
inline constexpr std::size_t cost_lanes = 16;  // rows and codewords are filled up to a multiple of this

// Codewords around the mean of their codebook, in a unit of their own.
//
// With x around the sum of the means, the cost of a code is |x|^2 + sum_i own_i + sum_(i < j) pair_ij, where
// own_i =
// |c_i|^2 - 2 <x, c_i> and pair_ij = 2 <c_i, c_j>. Entries are 16-bit integers: half the memory traffic of
// f32, which is what the search takes its time for. Each codebook i has a scale of its own, for its own
// entries and for the pairs where its codewords are the candidates, as only sums over the candidates of one
// codebook are compared.
class AdditiveCodewords {
 public:
  // words: codebook after codebook, each [additive_codebook_size, dim].
  AdditiveCodewords(MemoryBudget& budget, std::size_t dim, std::size_t count,
                    std::span<const float> codewords);
  // At the most, while it is made.
  static std::uint64_t bytes(std::size_t dim, std::size_t count);

  std::size_t dim() const { return dim_; }
  std::size_t count() const { return count_; }  // of codebooks
  std::size_t width() const { return width_of(dim_); }
  static std::size_t width_of(std::size_t dim);
  // Of the tables of pairs: one for each codebook and each of the others, [words of the other, words of the
  // codebook].
  static std::size_t pair_entries(std::size_t count);

  // Rows are taken as (x - offset) * unit, a power of two: squares of any rows that f32 holds are far from
  // its limits then.
  std::span<const double> offset() const { return offset_.span(); }  // [dim] the sum of the means
  double unit() const { return unit_; }
  // Rows beyond this length are searched as if they had it: their entries would leave the range of 16 bits.
  double longest() const { return longest_; }

  std::span<const float> codewords() const { return codewords_.span(); }  // [count * 256, width] so taken
  std::span<const float> columns() const { return columns_.span(); }      // [count, dim, 256] the same
  std::span<const float> norms() const { return norms_.span(); }          // [count, 256] squared lengths
  std::span<const float> scales() const { return scales_.span(); }        // [count]

 private:
  void centre(std::span<const float> given, std::span<double> means);
  void measure(std::span<const float> given, std::span<const double> means, std::span<double> longest);
  void fill(std::span<const float> given, std::span<const double> means);

  const std::size_t dim_;
  const std::size_t count_;
  Buffer<double> offset_;
  Buffer<float> codewords_;
  Buffer<float> columns_;
  Buffer<float> norms_;
  Buffer<float> scales_;
  double unit_ = 1;
  double longest_ = 0;  // in this unit
};

}  // namespace nearwise
