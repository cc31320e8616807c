// Codewords as the kernels of kernels/codewords.h read them: transposed, and marked where one equals another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels/codewords.h"
#include "core/checked.h"

namespace nearwise::cpu {

inline constexpr std::size_t distinct_words = most_codewords / 64;

// Columns have room for whole vectors of codewords.
constexpr std::size_t padded_codewords(std::size_t count) { return round_up<std::size_t>(count, 16); }

// words [count, dim] to columns [dim, padded_codewords(count)], behind the last with infinity, and to the bits of distinct
// [distinct_words].
void fill_codeword_columns(const float* words, std::size_t count, std::size_t dim, float* columns,
                           std::uint64_t* distinct);

}  // namespace nearwise::cpu
