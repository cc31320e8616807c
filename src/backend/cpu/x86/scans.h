// Scans with instructions that Highway 1.0.3 does not support: AMX tiles, and AVX-512 dot products of 8-bit
// integers and of bf16. They implement the same ScanKernel interface as the portable ones.
#pragma once

#include "backend/cpu/kernels/kernels.h"

namespace nearwise::cpu::x86 {

// Features of this CPU and operating system beyond AVX2 and AVX-512F. All false on other processors.
struct Features {
  bool integer_dots = false;  // AVX512_VNNI
  bool bf16_dots = false;     // AVX512_BF16
  // Whether bf16 dot products are faster than f32. Not on Intel: 78 against 138 GFLOP/s on Sapphire Rapids,
  // 2026-11-15.
  bool fast_bf16_dots = false;
  bool narrow_integer_dots = false;  // AVX-VNNI
  bool byte_tables = false;          // AVX512_VBMI and BMI2: lookups in tables of 256 bytes (scan_codes.h)
  bool tiles = false;                // AMX-TILE, AMX-INT8 and AMX-BF16, permitted by the operating system
};
const Features& features();

// Require the corresponding feature. type: u8 or i8, of both queries and base.
ScanKernel integer_dots(ElementType type);
ScanKernel scaled_dots();  // requires integer_dots
ScanKernel bf16_dots();
ScanKernel integer_tiles(ElementType type);
ScanKernel scaled_tiles();
ScanKernel bf16_tiles();

}  // namespace nearwise::cpu::x86
