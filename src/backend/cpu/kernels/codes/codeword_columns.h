// Layout of codewords for kernels/codes/codewords.h: transposed, with a bit mask of distinct codewords.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codes/codewords.h"
#include "core/checked.h"

namespace nearwise::cpu {

inline constexpr std::size_t distinct_words = max_codewords / 64;

// Columns are padded to whole registers.
constexpr std::size_t padded_codewords(std::size_t count) { return round_up<std::size_t>(count, 16); }

// Transposes values [count, dim] to columns [dim, padded_codewords(count)], padded with infinity, and fills
// the bits of distinct [distinct_words].
void fill_codeword_columns(const float* values, std::size_t count, std::size_t dim, float* columns,
                           std::uint64_t* distinct);

}  // namespace nearwise::cpu
