// Every sum is computed in one lane in the order of its terms, so registers of any width give the same bits.
#include "backend/cpu/kernels/row_products.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/row_products.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<double, 8>;
using Vector = hn::Vec<Tag>;

constexpr std::size_t lanes = hn::MaxLanes(Tag());
// Eight accumulators hide the latency of FMA and fit 16 registers.
constexpr std::size_t rows_at_once = 4;
constexpr std::size_t vectors = 2;
constexpr std::size_t step = vectors * lanes;
static_assert(column_granule % step == 0 && cross_columns % step == 0 && cross_columns % rows_at_once == 0);

void rotate(const RotateRowsArgs& args) noexcept {
  const Tag dd;
  for (std::size_t first = 0; first < args.count; first += rows_at_once) {
    // The last group repeats the last row, which writes the same values again.
    std::size_t index[rows_at_once];
    for (std::size_t r = 0; r < rows_at_once; ++r) index[r] = std::min(first + r, args.count - 1);
    for (std::size_t column = 0; column < args.width; column += step) {
      Vector sums[rows_at_once][vectors];
      for (auto& row : sums)
        for (std::size_t v = 0; v < vectors; ++v) row[v] = hn::LoadU(dd, args.offset + column + v * lanes);
      const double* HWY_RESTRICT matrix = args.columns + column;
      for (std::size_t i = 0; i < args.dim; ++i, matrix += args.width) {
        Vector elements[vectors];
        for (std::size_t v = 0; v < vectors; ++v) elements[v] = hn::LoadU(dd, matrix + v * lanes);
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const auto x = hn::Set(dd, static_cast<double>(args.rows[index[r] * args.dim + i]));
          for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(x, elements[v], sums[r][v]);
        }
      }
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v)
          hn::StoreU(sums[r][v], dd, args.sums + index[r] * args.width + column + v * lanes);
    }
  }
}

void cross(CrossProductsBlock& block, std::size_t rows) noexcept {
  const Tag dd;
  for (std::size_t i = 0; i < cross_columns; i += rows_at_once)
    for (std::size_t j = 0; j < cross_columns; j += step) {
      Vector sums[rows_at_once][vectors];
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v)
          sums[r][v] = hn::LoadU(dd, block.sums[i + r] + j + v * lanes);
      for (std::size_t row = 0; row < rows; ++row) {
        Vector right[vectors];
        for (std::size_t v = 0; v < vectors; ++v) right[v] = hn::LoadU(dd, block.right[row] + j + v * lanes);
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const auto left = hn::Set(dd, block.left[row][i + r]);
          for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(left, right[v], sums[r][v]);
        }
      }
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v)
          hn::StoreU(sums[r][v], dd, block.sums[i + r] + j + v * lanes);
    }
}

const RowProductKernels* row_products_table() {
  static constexpr RowProductKernels kernels = {rotate, cross};
  return &kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(row_products_table);

const RowProductKernels& row_product_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(row_products_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
