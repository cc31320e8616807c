#include "backend/cpu/rows/choose_scan.h"

#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu {

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
      case Extension::none: break;
    }
  }
  if (set.extension == Extension::tiles) return x86::bf16_tiles();
  if (set.extension == Extension::bf16_dots) return x86::bf16_dots();
  return fallback_kernel(set);
}

ScanKernel fallback_kernel(InstructionSet set) { return f32_panels(set); }

}  // namespace nearwise::cpu
