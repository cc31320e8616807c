#include "backend/cpu/rows/choose_scan.h"

#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu {

ScanKernel choose_scan(InstructionSet set, Metric metric, ElementType query_type, ElementType base_type,
                       std::size_t dim, bool bytes) {
  // Integer products are exact. Cosine scales vectors to length 1, which integers cannot represent.
  const bool hold_integers = bytes || base_type == ElementType::u8 || base_type == ElementType::i8;
  const bool integers =
      hold_integers && query_type == base_type && metric != Metric::cosine && dim <= max_integer_dim;
  const ElementType type = bytes ? ElementType::u8 : base_type;
  if (integers) {
    switch (set.extension) {
      case Extension::tiles: return x86::integer_tiles(type);
      case Extension::bf16_dots:
      case Extension::integer_dots: return x86::integer_dots(type);
      case Extension::none: break;
    }
  }
  if (set.extension == Extension::tiles) return x86::bf16_tiles();
  if (set.extension == Extension::bf16_dots) return x86::bf16_dots();
  return fallback_kernel(set);
}

ScanKernel fallback_kernel(InstructionSet set) { return f32_panels(set); }

}  // namespace nearwise::cpu
