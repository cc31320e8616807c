// Scan of codes by lookup tables in registers, 64 rows at a time. Requires features().byte_tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nearwise::cpu::x86 {

// Range of f32 tables [parts, codewords], from which the scale of byte tables is chosen.
struct TableRange {
  double least = 0;      // sum over parts of the minimum
  double magnitude = 0;  // sum over parts of the maximum absolute value
  float widest = 0;      // maximum over parts of maximum - minimum
};
// minima: [parts] out, minimum of each part. codewords: 16 or 256.
TableRange measure_tables(const float* tables, std::size_t parts, std::size_t codewords,
                          float* minima) noexcept;

// bytes: [parts, codewords] out, (value - minimum of the part) * scale, truncated and at most 255.
void fill_byte_tables(const float* tables, const float* minima, std::size_t parts, std::size_t codewords,
                      float scale, std::uint8_t* bytes) noexcept;

struct CodeScanArgs {
  const std::byte* codes = nullptr;  // [rows, code_bytes]
  std::size_t code_bytes = 0;
  std::size_t rows = 0;                  // 1 to 64
  const std::uint8_t* tables = nullptr;  // [parts, codewords]
  std::size_t parts = 0;                 // at most 256
  unsigned bits = 8;                     // or 4
  // Adds (norm - min_norm) * norm_scale, truncated and at most 65535, to every sum; null: none. min_norm is a
  // lower bound of the norms.
  const float* norms = nullptr;  // [rows]
  float min_norm = 0;
  float norm_scale = 0;
  std::uint16_t threshold = 0;
};
// Bit i: whether the sum of row i is at most the threshold. Sums saturate at 65535.
std::uint64_t scan_codes(const CodeScanArgs& args) noexcept;
// Sums of 64 rows: even rows first, then odd rows.
void sum_codes(const CodeScanArgs& args, std::uint16_t* sums) noexcept;
// Result of scan_codes() from the sums of sum_codes().
std::uint64_t rows_within(const std::uint16_t* sums, std::uint16_t threshold) noexcept;
// k-th smallest of `count` sums. count: a multiple of 64, at least k.
std::uint16_t kth_sum(const std::uint16_t* sums, std::size_t count, std::size_t k) noexcept;

}  // namespace nearwise::cpu::x86
