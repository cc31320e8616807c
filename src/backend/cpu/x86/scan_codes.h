// Product codes against one query: sums of table entries, 64 rows at a time, in registers. Callable only where
// features().byte_tables says so.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::cpu::x86 {

// What there is to know of tables [parts, words] in f32 before they become bytes.
struct TableRange {
  double least = 0;      // the sum of every part's least value
  double magnitude = 0;  // the sum of every part's largest absolute value
  float widest = 0;      // the largest difference of two values of a part
};
// leasts: [parts] out, each part's least value. words: 16 or 256.
TableRange measure_tables(const float* tables, std::size_t parts, std::size_t words, float* leasts) noexcept;

// bytes: [parts, words] out, (value - the part's least) * scale, cut off and at most 255.
void fill_byte_tables(const float* tables, const float* leasts, std::size_t parts, std::size_t words,
                      float scale, std::uint8_t* bytes) noexcept;

struct CodeScanArgs {
  const std::byte* codes = nullptr;  // [rows, code_bytes]
  std::size_t code_bytes = 0;
  std::size_t rows = 0;                  // 1 to 64
  const std::uint8_t* tables = nullptr;  // [parts, words]
  std::size_t parts = 0;                 // at most 256
  unsigned bits = 8;                     // or 4
  // What every row adds to its sum: (term - least_term) * term_scale, cut off and at most 65535; null: nothing. No term is
  // below the least.
  const float* norms = nullptr;  // [rows]
  float least_norm = 0;
  float term_scale = 0;
  std::uint16_t threshold = 0;
};
// Bit i: the sum of row i is at most the threshold. Sums that exceed 16 bits are 65535.
std::uint64_t scan_codes(const CodeScanArgs& args) noexcept;
// The sums of 64 rows in an order of its own, for the two functions below.
void sum_codes(const CodeScanArgs& args, std::uint16_t* sums) noexcept;
// What scan_codes() would say of them.
std::uint64_t rows_within(const std::uint16_t* sums, std::uint16_t threshold) noexcept;
// The k-th smallest of `count` sums, a multiple of 64; k is at most count.
std::uint16_t kth_sum(const std::uint16_t* sums, std::size_t count, std::size_t k) noexcept;

}  // namespace nearwise::cpu::x86
