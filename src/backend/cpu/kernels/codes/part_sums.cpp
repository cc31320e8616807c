#include "backend/cpu/kernels/codes/part_sums.h"

#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/codes/part_sums.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 16 or 256 codewords: whole registers on every target.
template <bool subtract>
HWY_INLINE void products(const PartTableArgs& args) {
  const hn::CappedTag<float, 16> df;
  for (std::size_t codeword = 0; codeword < args.codewords; codeword += hn::Lanes(df)) {
    auto sum = hn::LoadU(df, args.start + codeword);
    for (std::size_t i = 0; i < args.dim; ++i) {
      const auto element = hn::Set(df, args.vector[i]);
      const auto column = hn::LoadU(df, args.columns + i * args.codewords + codeword);
      sum = subtract ? hn::NegMulAdd(element, column, sum) : hn::MulAdd(element, column, sum);
    }
    hn::StoreU(sum, df, args.table + codeword);
  }
}

void add_products(const PartTableArgs& args) noexcept { products<false>(args); }
void subtract_products(const PartTableArgs& args) noexcept { products<true>(args); }

const PartSumsKernels* part_sums_table() {
  static constexpr PartSumsKernels table = {add_products, subtract_products};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(part_sums_table);

const PartSumsKernels& part_sums_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(part_sums_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
