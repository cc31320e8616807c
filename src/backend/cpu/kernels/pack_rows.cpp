// Packs vectors of any element type into panels: subtracts a centre or scales to length 1, encodes the
// elements, and computes the norms of the encoded vector and of the encoding error. Reported distances do not
// depend on this arithmetic: the error bound of score_bound.h covers it.
#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/pack_rows.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h: included once per target.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/load-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace nearwise::cpu {
namespace HWY_NAMESPACE {

// f32 registers have half the target's width, so that they widen to one register of f64.
using DoubleTag = hn::ScalableTag<double>;
using FloatTag = hn::Rebind<float, DoubleTag>;
constexpr std::size_t lanes = hn::MaxLanes(FloatTag());
using WideTag = hn::ScalableTag<float>;

// Writes the row minus the centre as f32 and returns its squared norm, in f64; NaN if an element is not
// finite.
template <typename T>
HWY_INLINE double shift_row(const T* row, const float* centre, std::size_t dim, float* out) {
  const FloatTag df;
  const DoubleTag dd;
  // Two independent sums hide the latency of additions.
  auto squares = hn::Zero(dd);
  auto other_squares = hn::Zero(dd);
  auto poison = hn::Zero(df);  // x * 0 is NaN for a NaN or infinite x, and stays NaN
  auto other_poison = hn::Zero(df);
  const auto step = [&](const T* from, const float* middle, float* to, auto& sums, auto& poisons) {
    auto x = load_float(df, from);
    poisons = hn::MulAdd(x, hn::Zero(df), poisons);
    if (middle != nullptr) x = hn::Sub(x, hn::LoadU(df, middle));
    hn::StoreU(x, df, to);
    const auto wide = hn::PromoteTo(dd, x);
    sums = hn::MulAdd(wide, wide, sums);
  };
  const auto middle = [&](std::size_t i) { return centre != nullptr ? centre + i : nullptr; };
  std::size_t i = 0;
  for (; i + 2 * lanes <= dim; i += 2 * lanes) {
    step(row + i, middle(i), out + i, squares, poison);
    step(row + i + lanes, middle(i + lanes), out + i + lanes, other_squares, other_poison);
  }
  for (; i + lanes <= dim; i += lanes) step(row + i, middle(i), out + i, squares, poison);
  if (i < dim) {
    T row_tail[lanes];
    float centre_tail[lanes];
    float out_tail[lanes];
    if (centre != nullptr) load_tail(centre + i, dim - i, centre_tail);
    step(load_tail(row + i, dim - i, row_tail), centre != nullptr ? centre_tail : nullptr, out_tail, squares,
         poison);
    std::memcpy(out + i, out_tail, (dim - i) * sizeof(float));
  }
  const double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(squares, other_squares)));
  const float poisoned = hn::GetLane(hn::SumOfLanes(df, hn::Add(poison, other_poison)));
  return std::isnan(poisoned) ? std::nan("") : sum;
}

// Centres or normalises a row to f32; returns its norm, or NaN if an element is not finite.
template <typename T>
double prepare_row(const PackArgs& args, std::size_t index, float* out) {
  const T* const row = reinterpret_cast<const T*>(args.rows + index * args.stride_bytes);
  const double norm = std::sqrt(shift_row(row, args.centre, args.dim, out));
  if (!args.normalise || !(norm > 0)) return norm;
  for (std::size_t i = 0; i < args.dim; ++i) out[i] = static_cast<float>(static_cast<double>(out[i]) / norm);
  return 1;
}

// Centres or scales a row, encodes it as the nearest bf16 (ties to even), and computes the norm of the
// rounding error. Denormal results become zero, as matrix units treat them. One pass with sums in f32, since
// packing of base vectors must keep up with memory.
template <typename T>
HWY_INLINE PackedRow encode_bf16(const T* HWY_RESTRICT row, const PackArgs& args, float scale,
                                 std::uint16_t* HWY_RESTRICT out) {
  constexpr std::size_t wide = hn::MaxLanes(WideTag());
  const WideTag df;
  const hn::RebindToUnsigned<WideTag> du;
  const hn::Rebind<std::uint16_t, WideTag> dh;
  const auto scales = hn::Set(df, scale);
  auto squares = hn::Zero(df);
  auto lost = hn::Zero(df);
  auto poison = hn::Zero(df);  // x * 0 is NaN for a NaN or infinite x, and stays NaN
  const auto step = [&](const T* from, const float* middle, std::uint16_t* to) {
    auto x = load_float(df, from);
    poison = hn::MulAdd(x, hn::Zero(df), poison);
    if (middle != nullptr) x = hn::Sub(x, hn::LoadU(df, middle));
    x = hn::Mul(x, scales);
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
    const auto rounded = hn::And(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd), hn::Set(du, 0xFFFF0000));
    const auto normal = hn::Ne(hn::And(rounded, hn::Set(du, 0x7F800000)), hn::Zero(du));
    const auto kept = hn::IfThenElseZero(normal, rounded);
    hn::StoreU(hn::TruncateTo(dh, hn::ShiftRight<16>(kept)), dh, to);
    const auto y = hn::BitCast(df, kept);
    const auto difference = hn::Sub(x, y);
    squares = hn::MulAdd(y, y, squares);
    lost = hn::MulAdd(difference, difference, lost);
  };
  const auto middle = [&](std::size_t i) { return args.centre != nullptr ? args.centre + i : nullptr; };
  std::size_t i = 0;
  for (; i + wide <= args.dim; i += wide) step(row + i, middle(i), out + i);
  if (i < args.dim) {
    T row_tail[wide];
    float centre_tail[wide];
    std::uint16_t out_tail[wide];
    if (args.centre != nullptr) load_tail(args.centre + i, args.dim - i, centre_tail);
    step(load_tail(row + i, args.dim - i, row_tail), args.centre != nullptr ? centre_tail : nullptr,
         out_tail);
    std::memcpy(out + i, out_tail, (args.dim - i) * sizeof(std::uint16_t));
  }
  if (std::isnan(hn::GetLane(hn::SumOfLanes(df, poison)))) return {.norm = std::nan("")};
  // Upper bound of the residual: covers the rounding of its sum and squares that underflow.
  const auto dim = static_cast<double>(args.dim);
  const double lost_sum = hn::GetLane(hn::SumOfLanes(df, lost));
  double square_sum = hn::GetLane(hn::SumOfLanes(df, squares));
  if (args.precise) {
    // Independent sums to hide latency.
    double sums[8] = {};
    for (std::size_t j = 0; j < args.dim; ++j) {
      const std::uint32_t bits = static_cast<std::uint32_t>(out[j]) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof(value));
      sums[j % 8] += static_cast<double>(value) * value;
    }
    square_sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  }
  return {.norm = std::sqrt(square_sum),
          .residual = std::sqrt(lost_sum * (1 + dim * 0x1p-23) + dim * 0x1p-149) * (1 + 0x1p-20)};
}

// f32 rows may be unaligned.
template <typename T>
HWY_INLINE T load_element(const T* row, std::size_t index) {
  T value;
  std::memcpy(&value, reinterpret_cast<const std::byte*>(row) + index * sizeof(T), sizeof(T));
  return value;
}

// Integers, also stored as f32: copied or flipped without error.
template <typename T, Encoding encoding>
HWY_INLINE PackedRow encode_bytes(const T* HWY_RESTRICT row, std::size_t dim, std::byte* HWY_RESTRICT out) {
  std::int32_t squares = 0;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    const auto value = static_cast<std::int32_t>(load_element(row, i));
    squares += value * value;
    sum += value;
  }
  constexpr std::uint8_t flip = encoding == Encoding::flipped_byte ? 0x80 : 0;
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out);
  for (std::size_t i = 0; i < dim; ++i)
    bytes[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(load_element(row, i))) ^ flip;
  return {.norm = std::sqrt(static_cast<double>(squares)), .residual = 0, .squares = squares, .sum = sum};
}

// Writes the row, centred and scaled, as f32; returns the largest absolute value, NaN if an element is not
// finite.
template <typename T>
HWY_INLINE float scaled_row(const T* row, const PackArgs& args, float scale, float* out) {
  constexpr std::size_t wide = hn::MaxLanes(WideTag());
  const WideTag df;
  const auto scales = hn::Set(df, scale);
  auto most = hn::Zero(df);
  auto poison = hn::Zero(df);
  const auto step = [&](const T* from, const float* middle, float* to) {
    auto x = load_float(df, from);
    poison = hn::MulAdd(x, hn::Zero(df), poison);
    if (middle != nullptr) x = hn::Sub(x, hn::LoadU(df, middle));
    x = hn::Mul(x, scales);
    hn::StoreU(x, df, to);
    most = hn::Max(most, hn::Abs(x));
  };
  const auto middle = [&](std::size_t i) { return args.centre != nullptr ? args.centre + i : nullptr; };
  std::size_t i = 0;
  for (; i + wide <= args.dim; i += wide) step(row + i, middle(i), out + i);
  if (i < args.dim) {
    T row_tail[wide];
    float centre_tail[wide];
    float out_tail[wide];
    if (args.centre != nullptr) load_tail(args.centre + i, args.dim - i, centre_tail);
    step(load_tail(row + i, args.dim - i, row_tail), args.centre != nullptr ? centre_tail : nullptr,
         out_tail);
    std::memcpy(out + i, out_tail, (args.dim - i) * sizeof(float));
  }
  if (std::isnan(hn::GetLane(hn::SumOfLanes(df, poison)))) return NAN;
  return hn::GetLane(hn::MaxOfLanes(df, most));
}

// Encodes f32 values, none larger than `most`, as integers times a scale of this row. Rows beyond the range
// of scores (ScoreBound::holds_for) become zero with a norm that says so; tiny ones too, with a residual.
template <Encoding encoding>
HWY_INLINE PackedRow encode_scaled(const float* HWY_RESTRICT row, std::size_t dim, float most,
                                   std::byte* HWY_RESTRICT out) {
  constexpr float largest = 1e19F;
  constexpr float smallest = 1e-30F;
  constexpr std::uint8_t flip = encoding == Encoding::scaled_unsigned_byte ? 0x80 : 0;
  if (!(most <= largest) || most < smallest) {
    std::memset(out, flip, dim);
    if (!(most < smallest)) return {.norm = most};
    double squares = 0;
    for (std::size_t i = 0; i < dim; ++i) squares += static_cast<double>(row[i]) * row[i];
    return {.norm = 0, .residual = std::sqrt(squares) * (1 + 0x1p-20)};
  }
  constexpr std::size_t wide = hn::MaxLanes(WideTag());
  const WideTag df;
  const hn::RebindToSigned<WideTag> di;
  const hn::Rebind<std::int8_t, WideTag> db;
  const hn::Rebind<std::uint8_t, WideTag> du;
  constexpr float steps = encoding == Encoding::scaled_seven_bits ? 63 : 127;
  const float scale = most / steps;
  const auto scales = hn::Set(df, scale);
  const auto inverse = hn::Set(df, steps / most);
  auto squares = hn::Zero(di);
  auto sums = hn::Zero(di);
  auto lost = hn::Zero(df);
  const auto step = [&](const float* from, std::uint8_t* to) {
    const auto x = hn::LoadU(df, from);
    const auto n = hn::NearestInt(hn::Mul(x, inverse));
    const auto difference = hn::NegMulAdd(hn::ConvertTo(df, n), scales, x);
    lost = hn::MulAdd(difference, difference, lost);
    squares = hn::Add(squares, hn::Mul(n, n));
    sums = hn::Add(sums, n);
    hn::StoreU(hn::Xor(hn::BitCast(du, hn::DemoteTo(db, n)), hn::Set(du, flip)), du, to);
  };
  auto* const bytes = reinterpret_cast<std::uint8_t*>(out);
  std::size_t i = 0;
  for (; i + wide <= dim; i += wide) step(row + i, bytes + i);
  if (i < dim) {
    float row_tail[wide];
    std::uint8_t bytes_tail[wide];
    step(load_tail(row + i, dim - i, row_tail), bytes_tail);
    std::memcpy(bytes + i, bytes_tail, dim - i);
  }
  // The residual covers the rounding of its sum, squares that underflow, and differences that were rounded
  // twice where there is no fused operation.
  const auto length = static_cast<double>(dim);
  const double lost_sum = hn::GetLane(hn::SumOfLanes(df, lost));
  const double norm = scale * std::sqrt(static_cast<double>(hn::GetLane(hn::SumOfLanes(di, squares))));
  return {.norm = norm,
          .residual = std::sqrt(lost_sum * (1 + length * 0x1p-23) + length * 0x1p-149) * (1 + 0x1p-20) +
                      norm * 0x1p-23,
          .scale = scale,
          .sum = hn::GetLane(hn::SumOfLanes(di, sums))};
}

// Encodes one row to `out`; norm is NaN if an element is not finite.
template <typename T, Encoding encoding>
HWY_INLINE PackedRow encode_row(const PackArgs& args, std::size_t index, float* prepared, std::byte* out) {
  if constexpr (is_integer(encoding)) {
    return encode_bytes<T, encoding>(reinterpret_cast<const T*>(args.rows + index * args.stride_bytes),
                                     args.dim, out);
  } else if constexpr (is_scaled(encoding)) {
    const T* const row = reinterpret_cast<const T*>(args.rows + index * args.stride_bytes);
    const double norm = args.normalise ? std::sqrt(shift_row(row, nullptr, args.dim, prepared)) : 1;
    float most;
    if (norm < 1e-30 || norm > 1e30) {
      // As for bf16 below.
      if (norm > 0) prepare_row<T>(args, index, prepared);
      PackArgs own = args;
      own.centre = nullptr;
      most = scaled_row<float>(prepared, own, 1, prepared);
    } else {
      most = scaled_row<T>(row, args, static_cast<float>(1 / norm), prepared);
    }
    if (std::isnan(most)) return {.norm = std::nan("")};
    return encode_scaled<encoding>(prepared, args.dim, most, out);
  } else if constexpr (encoding == Encoding::bf16) {
    const T* const row = reinterpret_cast<const T*>(args.rows + index * args.stride_bytes);
    const double norm = args.normalise ? std::sqrt(shift_row(row, nullptr, args.dim, prepared)) : 1;
    auto* const encoded = reinterpret_cast<std::uint16_t*>(out);
    if (norm < 1e-30 || norm > 1e30) {
      // Elements or the scale are near the f32 range limits: scale in f64 first. A zero row stays zero.
      if (norm > 0) prepare_row<T>(args, index, prepared);
      return encode_bf16<float>(prepared, args, 1, encoded);
    }
    return encode_bf16<T>(row, args, static_cast<float>(1 / norm), encoded);
  } else {
    return {.norm = prepare_row<T>(args, index, reinterpret_cast<float*>(out))};
  }
}

// Interleaves the units of a group's rows into the panel. Whole cache lines are written once; the rows are in
// the L1 cache.
template <std::size_t unit_bytes>
HWY_INLINE void interleave_units(const PackArgs& args, std::size_t first, std::size_t places) {
  for (std::size_t u = 0; u < args.row_bytes / unit_bytes; ++u)
    for (std::size_t r = 0; r < places; ++r)
      std::memcpy(args.panel + (u * args.width + first + r) * unit_bytes,
                  args.scratch + r * args.row_bytes + u * unit_bytes, unit_bytes);
}

template <typename T, Encoding encoding>
std::size_t pack_rows(const PackArgs& args) noexcept {
  auto* const prepared = reinterpret_cast<float*>(args.scratch + pack_group * args.row_bytes);
  const std::size_t encoded_bytes = args.dim * encoded_sizes[static_cast<std::size_t>(encoding)];
  for (std::size_t first = 0; first < args.width; first += pack_group) {
    const std::size_t places = std::min(pack_group, args.width - first);
    for (std::size_t r = 0; r < places; ++r) {
      std::byte* const row = args.scratch + r * args.row_bytes;
      std::size_t written = 0;
      if (first + r < args.count) {
        args.packed[first + r] = encode_row<T, encoding>(args, first + r, prepared, row);
        if (std::isnan(args.packed[first + r].norm)) return first + r;
        written = encoded_bytes;
      }
      std::memset(row + written, 0, args.row_bytes - written);
    }
    if (args.unit_bytes == 64)
      interleave_units<64>(args, first, places);
    else
      interleave_units<4>(args, first, places);
  }
  return args.count;
}

template <Encoding encoding>
constexpr void fill(PackRowsKernels& kernels) {
  auto& functions = kernels.pack[static_cast<std::size_t>(encoding)];
  functions[static_cast<std::size_t>(ElementType::u8)] = pack_rows<std::uint8_t, encoding>;
  functions[static_cast<std::size_t>(ElementType::i8)] = pack_rows<std::int8_t, encoding>;
  functions[static_cast<std::size_t>(ElementType::f32)] = pack_rows<float, encoding>;
  if constexpr (!is_integer(encoding)) {
    functions[static_cast<std::size_t>(ElementType::f16)] = pack_rows<Float16, encoding>;
    functions[static_cast<std::size_t>(ElementType::bf16)] = pack_rows<BFloat16, encoding>;
  }
}

bool holds_bytes(const float* values, std::size_t count) noexcept {
  const WideTag df;
  constexpr std::size_t wide = hn::MaxLanes(WideTag());
  const auto most = hn::Set(df, 255.0F);
  std::size_t i = 0;
  for (; i + wide <= count; i += wide) {
    const auto x = hn::LoadU(df, values + i);
    const auto whole = hn::Eq(hn::Floor(hn::Min(hn::Max(x, hn::Zero(df)), most)), x);  // false for NaN
    if (!hn::AllTrue(df, whole)) return false;
  }
  for (; i < count; ++i) {
    const float value = load_element(values, i);
    if (!(value >= 0 && value <= 255 && value == std::floor(value))) return false;
  }
  return true;
}

const PackRowsKernels* pack_rows_table() {
  static constexpr PackRowsKernels table = [] {
    PackRowsKernels kernels{};
    fill<Encoding::f32>(kernels);
    fill<Encoding::bf16>(kernels);
    fill<Encoding::scaled_byte>(kernels);
    fill<Encoding::scaled_unsigned_byte>(kernels);
    fill<Encoding::scaled_seven_bits>(kernels);
    fill<Encoding::byte>(kernels);
    fill<Encoding::flipped_byte>(kernels);
    kernels.holds_bytes = holds_bytes;
    return kernels;
  }();
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace nearwise::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/kernels/dispatch.h"

namespace nearwise::cpu {

HWY_EXPORT(pack_rows_table);

const PackRowsKernels& pack_rows_kernels(InstructionSet set) {
  return *select(HWY_DISPATCH_TABLE(pack_rows_table), set)();
}

}  // namespace nearwise::cpu
#endif  // HWY_ONCE
