// Which rows of a block a group of queries scans coarsely, and which more precisely (fallback.h).
//
// Coarse scores leave rows open that have to be evaluated. They are worth it unless more than one pair in
// `scanned_per_evaluated_` is. Before there is a limit, and on near-duplicates, nearly every row is open.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu {

class CoarseChoice {
 public:
  static constexpr std::size_t all_rows = std::numeric_limits<std::size_t>::max();

  // Whether packing rows for a more precise scan would take longer than reading them for each query.
  static constexpr bool are_few(std::size_t queries) { return queries <= 3; }

  // Base rows from which coarse scores pay for the rows that the k best leave open; 0: always. Without a base
  // prepared for many searches, fewer rows are scanned faster in f32 from the start.
  static constexpr std::size_t min_rows(const ScanKernel& kernel, std::size_t k) {
    if (!is_scaled(kernel.base_encoding)) return 0;
    constexpr std::size_t many_queries = 1000;
    return evaluations_per_neighbor * pairs_per_evaluation(kernel, many_queries) *
           std::max<std::size_t>(k, 3);
  }

  // base_rows: of all blocks. has_limits: whether the queries' results are limited before the first row.
  CoarseChoice(const ScanKernel& kernel, std::size_t queries, std::size_t list_capacity,
               std::size_t base_rows, bool has_limits)
      : is_coarse_(is_coarse(kernel.base_encoding)),
        is_scaled_(is_scaled(kernel.base_encoding)),
        scanned_per_evaluated_(pairs_per_evaluation(kernel, queries)),
        queries_(queries),
        list_rows_(is_scaled_ ? scanned_per_evaluated_ * list_capacity : 0) {
    // Until about here, more rows are among the best so far than one in scanned_per_evaluated_.
    if (is_scaled_ && !has_limits)
      close_ = std::min<std::size_t>(are_few(queries) ? first_of_few : list_rows_ / 2, base_rows / 4);
  }

  // How many of the following rows to scan more precisely; zero: coarsely, and say so by add().
  std::size_t take_close_rows() { return std::exchange(close_, 0); }
  // Whether the next more precise scan (closer_kernel) left too many rows open as well.
  bool wants_f32() const { return wants_f32_; }

  void add(std::size_t rows, std::uint64_t evaluated) {
    if (!is_coarse_) return;
    rows_ += rows;
    evaluated_ += evaluated;
    if (evaluated_ * scanned_per_evaluated_ > (rows_ + list_rows_) * queries_) {
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

  void add_close(std::size_t rows, std::uint64_t evaluated) {
    if (evaluated * f32_pairs > rows * queries_) wants_f32_ = true;
  }

 private:
  // Pairs that a coarse scan has to save time on for one evaluation, 60 ns. A pair takes 1.9 ns in f32 at
  // d = 128; of tiles at d = 256 0.2 ns by scaled integers and 0.35 ns by bf16; of few queries 20 ns, from
  // memory.
  static constexpr std::size_t f32_pairs = 32;
  static constexpr std::size_t tile_pairs = 256;
  static constexpr std::size_t unpacked_pairs = 4;
  static constexpr std::size_t pairs_per_evaluation(const ScanKernel& kernel, std::size_t queries) {
    if (!is_scaled(kernel.base_encoding)) return f32_pairs;
    if (are_few(queries)) return unpacked_pairs;
    return multiplies_tiles(kernel) ? tile_pairs : f32_pairs;
  }
  // More than in f32. With VNNI it takes the same time with 1,000 rows at k = 1 and 4, 3,500 to 7,000 at 16,
  // 22,000 to 35,000 at 64, 50,000 to 80,000 at 200 (d = 128 and 768, 2026-11-19). Tiles were not measured.
  static constexpr std::size_t evaluations_per_neighbor = 12;
  static constexpr std::size_t first_of_few = 1024;
  static constexpr std::size_t first_stretch = 16384;

  const bool is_coarse_;
  const bool is_scaled_;
  const std::size_t scanned_per_evaluated_;
  const std::size_t queries_;
  const std::uint64_t list_rows_;  // rows that are worth the evaluation of a full list
  std::size_t close_ = 0;
  std::size_t stretch_ = first_stretch;
  bool wants_f32_ = false;
  std::uint64_t rows_ = 0;       // scanned coarsely of late
  std::uint64_t evaluated_ = 0;  // pairs, because lists were full
};

}  // namespace nearwise::cpu
