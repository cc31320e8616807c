// Loads of any element type, widened exactly. Included once per target, as Highway's -inl files are.
#if defined(NEARWISE_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NEARWISE_LOAD_INL_H_
#undef NEARWISE_LOAD_INL_H_
#else
#define NEARWISE_LOAD_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "core/convert.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Targets with instructions that widen f16.
constexpr bool has_half_conversion =
    HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_NEON;

// Lanes(df) consecutive elements as f32.
template <typename T, class D>
HWY_INLINE hn::VFromD<D> load_float(D df, const T* from) {
  if constexpr (std::is_same_v<T, float>) {
    return hn::LoadU(df, from);
  } else if constexpr (std::is_same_v<T, Float16> && !has_half_conversion) {
    // Highway's emulation converts infinity and NaN to large finite numbers.
    HWY_ALIGN float wide[hn::MaxLanes(D())];
    for (std::size_t i = 0; i < hn::MaxLanes(D()); ++i)
      wide[i] = element<Float16>(reinterpret_cast<const std::byte*>(from), i);
    return hn::Load(df, wide);
  } else if constexpr (std::is_same_v<T, Float16>) {
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const hn::Rebind<hwy::bfloat16_t, D> db;
    return hn::PromoteTo(df, hn::LoadU(db, reinterpret_cast<const hwy::bfloat16_t*>(from)));
  } else {
    const hn::Rebind<T, D> dn;
    const hn::Rebind<std::int32_t, D> di;
    return hn::ConvertTo(df, hn::PromoteTo(di, hn::LoadU(dn, from)));
  }
}

// Lanes(dd) consecutive elements as f64.
template <typename T, class D>
HWY_INLINE hn::VFromD<D> load_double(D dd, const T* from) {
  const hn::Rebind<float, D> df;
  return hn::PromoteTo(dd, load_float(df, from));
}

// Copies the last `count` < N elements to `padded`, followed by zeros.
template <typename T, std::size_t N>
HWY_INLINE const T* load_tail(const T* from, std::size_t count, T (&padded)[N]) {
  std::memset(static_cast<void*>(padded), 0, sizeof(padded));
  std::memcpy(static_cast<void*>(padded), from, count * sizeof(T));
  return padded;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#endif  // include guard
