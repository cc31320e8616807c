#include "backend/cpu/rows/choose_scan.h"

#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu {
namespace {

// In few dimensions neighbours are near, compared with the steps of 8 bits, and products are few.
constexpr std::size_t min_scaled_dim = 32;
// Up to two cache lines of 8-bit integers, tiles of bf16 are as fast: comparisons take longer than products.
constexpr std::size_t min_scaled_tiles_dim = 129;

}  // namespace

ScanKernel choose_scan(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                       std::size_t dim) {
  // Integer products are exact. Cosine scales vectors to length 1, which integers cannot represent.
  const bool integers = (base_type == ElementType::u8 || base_type == ElementType::i8) &&
                        query_type == base_type && metric != Metric::cosine && dim <= max_integer_dim;
  if (integers) {
    switch (set.extension) {
      case Extension::tiles: return x86::integer_tiles(base_type);
      case Extension::bf16_dots:
      case Extension::integer_dots: return x86::integer_dots(base_type);
      case Extension::narrow_integer_dots:
      case Extension::none: break;
    }
  }
  if (set.extension == Extension::tiles) return x86::bf16_tiles();
  if (set.extension == Extension::bf16_dots) return x86::bf16_dots();
  return fallback_kernel(set);
}

ScanKernel choose_screen(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                         std::size_t dim) {
  const ScanKernel scan = choose_scan(set, metric, query_type, base_type, dim);
  const bool has_tiles = set.extension == Extension::tiles;
  if (is_integer(scan.base_encoding) || dim > max_integer_dim) return scan;
  if (dim < (has_tiles ? min_scaled_tiles_dim : min_scaled_dim)) return scan;
  if (has_tiles) return x86::scaled_tiles();
  if (set.extension >= Extension::integer_dots) return x86::scaled_dots();
  const ScanKernel* const scaled = scaled_panels(set);
  return scaled != nullptr ? *scaled : scan;
}

// Operations per ns with selection, batches of 1,000 queries, Sapphire Rapids, 2026-11-18. f32 by the width
// of a panel, which tells the registers.
double expected_pair_ns(const ScanKernel& scan, std::size_t dim) {
  const bool has_tiles = multiplies_tiles(scan);
  double rate = 0;
  if (is_integer(scan.base_encoding))
    rate = has_tiles ? 1200 : 400;
  else if (is_scaled(scan.base_encoding))
    rate = has_tiles ? 1000
                     : (scan.query_encoding == Encoding::scaled_seven_bits ? 4 : 8) *
                           static_cast<double>(scan.base_width);
  else if (scan.base_encoding == Encoding::bf16)
    rate = has_tiles ? 700 : 200;
  else
    rate = scan.base_width >= 64   ? 130
           : scan.base_width >= 16 ? 60
                                   : 2.5 * static_cast<double>(scan.base_width);
  return 2 * static_cast<double>(dim) / rate;
}

ScanKernel fallback_kernel(InstructionSet set) { return f32_panels(set); }

ScanKernel closer_kernel(InstructionSet set, Encoding coarse) {
  return is_scaled(coarse) && set.extension == Extension::tiles ? x86::bf16_tiles() : fallback_kernel(set);
}

}  // namespace nearwise::cpu
