#include "backend/cpu/kernels/block_products.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/block_products.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<double, 8>;
using Vector = hn::Vec<Tag>;

constexpr std::size_t lanes = hn::MaxLanes(Tag());
// Eight accumulators hide the latency of subtraction and fit 16 registers.
constexpr std::size_t rows_at_once = 4;
constexpr std::size_t vectors = 2;
constexpr std::size_t step = vectors * lanes;
static_assert(block_width % step == 0 && block_width % rows_at_once == 0);

void subtract(double* HWY_RESTRICT sums, const double* HWY_RESTRICT left, const double* HWY_RESTRICT right,
              std::size_t terms) noexcept {
  const Tag dd;
  for (std::size_t i = 0; i < block_width; i += rows_at_once)
    for (std::size_t j = 0; j < block_width; j += step) {
      Vector own[rows_at_once][vectors];
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v)
          own[r][v] = hn::LoadU(dd, sums + (i + r) * block_width + j + v * lanes);
      for (std::size_t k = 0; k < terms; ++k) {
        Vector factors[vectors];
        for (std::size_t v = 0; v < vectors; ++v)
          factors[v] = hn::LoadU(dd, right + k * block_width + j + v * lanes);
        for (std::size_t r = 0; r < rows_at_once; ++r) {
          const auto x = hn::Set(dd, left[k * block_width + i + r]);
          for (std::size_t v = 0; v < vectors; ++v) own[r][v] = hn::Sub(own[r][v], hn::Mul(x, factors[v]));
        }
      }
      for (std::size_t r = 0; r < rows_at_once; ++r)
        for (std::size_t v = 0; v < vectors; ++v)
          hn::StoreU(own[r][v], dd, sums + (i + r) * block_width + j + v * lanes);
    }
}

const BlockProductKernels* block_products_table() {
  static constexpr BlockProductKernels kernels = {subtract};
  return &kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(block_products_table);

const BlockProductKernels& block_product_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(block_products_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
