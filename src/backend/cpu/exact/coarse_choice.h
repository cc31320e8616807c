// Which rows of a block a group of queries scans coarsely, and which in f32 (fallback.h).
//
// Coarse scores leave rows open that have to be evaluated. They are worth it unless more than one pair in
// `scanned_per_evaluated` is. Before there is a limit, and on near-duplicates, nearly every row is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

class CoarseChoice {
 public:
  static constexpr std::size_t all_rows = std::numeric_limits<std::size_t>::max();

  // has_limits: whether the queries' results are limited before the first row.
  CoarseChoice(const ScanKernel& kernel, std::size_t queries, std::size_t list_capacity, bool has_limits)
      : is_coarse_(is_coarse(kernel.base_encoding)),
        is_scaled_(is_scaled(kernel.base_encoding)),
        queries_(queries),
        list_rows_(is_scaled_ ? scanned_per_evaluated * list_capacity : 0) {
    // Until about here, more rows are among the best so far than one in scanned_per_evaluated.
    if (is_scaled_ && !has_limits) close_ = list_rows_ / 2;
  }

  // How many of the following rows to scan in f32; zero: coarsely, and say so by add().
  std::size_t take_close_rows() { return std::exchange(close_, 0); }

  void add(std::size_t rows, std::uint64_t evaluated) {
    if (!is_coarse_) return;
    rows_ += rows;
    evaluated_ += evaluated;
    if (evaluated_ * scanned_per_evaluated > (rows_ + list_rows_) * queries_) {
      // Scaled integers are tried again after longer and longer stretches: a try costs as much as some
      // thousand rows in f32. bf16 is so close that the data of the block does not suit it.
      close_ = is_scaled_ ? stretch_ : all_rows;
      stretch_ *= 4;
      rows_ = evaluated_ = 0;
    } else if (is_scaled_ && rows_ > 2 * list_rows_) {
      stretch_ = first_stretch;
      rows_ /= 2;
      evaluated_ /= 2;
    }
  }

 private:
  // A pair takes 1.9 ns in f32 at d = 128, an evaluation 60 ns.
  static constexpr std::size_t scanned_per_evaluated = 32;
  static constexpr std::size_t first_stretch = 16384;

  const bool is_coarse_;
  const bool is_scaled_;
  const std::size_t queries_;
  const std::uint64_t list_rows_;  // rows that are worth the evaluation of a full list
  std::size_t close_ = 0;
  std::size_t stretch_ = first_stretch;
  std::uint64_t rows_ = 0;       // scanned coarsely of late
  std::uint64_t evaluated_ = 0;  // pairs, because lists were full
};

}  // namespace nearwise::cpu
