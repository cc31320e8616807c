#include "backend/cpu/kernels/codes/codeword_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

namespace nearwise::cpu {
namespace {

// Duplicate codewords are common: parts with few distinct values leave most clusters empty.
void mark_distinct(const float* values, std::size_t count, std::size_t dim, std::uint64_t* distinct) {
  std::size_t order[max_codewords];
  std::iota(order, order + count, std::size_t{0});
  const auto compare = [&](std::size_t left, std::size_t right) {
    return std::memcmp(values + left * dim, values + right * dim, dim * sizeof(float));
  };
  std::sort(order, order + count, [&](std::size_t left, std::size_t right) {
    const int difference = compare(left, right);
    return difference != 0 ? difference < 0 : left < right;
  });
  std::fill_n(distinct, distinct_words, std::uint64_t{0});
  for (std::size_t i = 0; i < count; ++i)
    if (i == 0 || compare(order[i - 1], order[i]) != 0)
      distinct[order[i] / 64] |= std::uint64_t{1} << order[i] % 64;
}

}  // namespace

void fill_codeword_columns(const float* values, std::size_t count, std::size_t dim, float* columns,
                           std::uint64_t* distinct) {
  const std::size_t padded = padded_codewords(count);
  for (std::size_t i = 0; i < dim; ++i) {
    for (std::size_t codeword = 0; codeword < count; ++codeword)
      columns[i * padded + codeword] = values[codeword * dim + i];
    std::fill(columns + i * padded + count, columns + (i + 1) * padded,
              std::numeric_limits<float>::infinity());
  }
  mark_distinct(values, count, dim, distinct);
}

}  // namespace nearwise::cpu
