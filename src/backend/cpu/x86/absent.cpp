// Stubs for processors other than x86: no feature is available, so no scan is called.
#include "backend/cpu/x86/scan_codes.h"
#include "backend/cpu/x86/scans.h"

namespace nearwise::cpu::x86 {

const Features& features() {
  static const Features none;
  return none;
}

ScanKernel integer_dots(ElementType) { return {}; }
ScanKernel scaled_dots() { return {}; }
ScanKernel bf16_dots() { return {}; }
ScanKernel integer_tiles(ElementType) { return {}; }
ScanKernel scaled_tiles() { return {}; }
ScanKernel bf16_tiles() { return {}; }
TableRange measure_tables(const float*, std::size_t, std::size_t, float*) noexcept { return {}; }
void fill_byte_tables(const float*, const float*, std::size_t, std::size_t, float, std::uint8_t*) noexcept {}
std::uint64_t scan_codes(const CodeScanArgs&) noexcept { return 0; }
void sum_codes(const CodeScanArgs&, std::uint16_t*) noexcept {}
std::uint64_t rows_within(const std::uint16_t*, std::uint16_t) noexcept { return 0; }
std::uint16_t kth_sum(const std::uint16_t*, std::size_t, std::size_t) noexcept { return 0; }

}  // namespace nearwise::cpu::x86
