// Processors other than x86: nothing of this folder is there, and nothing asks for it.
#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu::x86 {

const Features& features() {
  static const Features none;
  return none;
}

ScanKernel integer_dots(ElementType) { return {}; }
ScanKernel bf16_dots() { return {}; }
ScanKernel integer_tiles(ElementType) { return {}; }
ScanKernel bf16_tiles() { return {}; }

}  // namespace nearwise::cpu::x86
