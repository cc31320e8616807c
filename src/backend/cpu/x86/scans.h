// Scans with instructions that Highway 1.0.3 does not know: AMX tiles, and dot products of 8-bit integers and of bf16
// in AVX-512. They stand behind the same ScanKernel as the portable ones.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu::x86 {

// What this CPU and system offer beyond AVX-512F. All false on other processors, and where the system refuses.
struct Features {
  bool integer_dots = false;  // AVX512_VNNI
  bool bf16_dots = false;     // AVX512_BF16
  // Intel's are slower than products in f32: 78 against 138 GFLOP/s on Sapphire Rapids, 2026-11-15.
  bool fast_bf16_dots = false;
  bool byte_tables = false;  // AVX512_VBMI and BMI2: look-ups in tables of 256 bytes (scan_codes.h)
  bool tiles = false;        // AMX-TILE, AMX-INT8 and AMX-BF16, and the system's permission to use them
};
const Features& features();

// Callable only where features() says so. `type` of an integer scan: u8 or i8, of queries and base alike.
ScanKernel integer_dots(ElementType type);
ScanKernel bf16_dots();
ScanKernel integer_tiles(ElementType type);
ScanKernel bf16_tiles();

}  // namespace nearwise::cpu::x86
