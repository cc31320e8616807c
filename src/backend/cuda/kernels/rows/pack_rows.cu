#include "backend/cuda/kernels/rows/pack_rows.h"

#include "backend/cuda/device/gpu.h"
#include "core/convert.h"

namespace nearwise::gpu {
namespace {

constexpr int lanes = 32;
constexpr int warps_per_block = 4;  // one row per warp
constexpr float smallest_normal = 0x1p-126F;

__device__ __forceinline__ double warp_sum(double value) {
  for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFFU, value, step);
  return value;
}

// Products may flush denormals to zero: packed rows have none, and the loss is part of the residual.
__device__ __forceinline__ float without_denormals(float value) {
  return fabsf(value) < smallest_normal ? 0.0F : value;
}

// Encodings: the nearest number without denormals, and its stored bits.
struct AsF32 {
  using Stored = float;
  static __device__ __forceinline__ float nearest(float value) { return without_denormals(value); }
  static __device__ __forceinline__ Stored store(float value) { return value; }
};

// Rounds to nearest, ties to even, dropping the last bits. The largest numbers become infinite; their norm
// then disables the error bound.
template <int Dropped>
__device__ __forceinline__ float rounded(float value) {
  const auto bits = static_cast<std::uint32_t>(__float_as_int(value));
  const std::uint32_t rounded_bits = bits + (1U << (Dropped - 1)) - 1 + (bits >> Dropped & 1);
  return without_denormals(__int_as_float(static_cast<int>(rounded_bits >> Dropped << Dropped)));
}

struct AsTf32 {
  using Stored = float;
  static __device__ __forceinline__ float nearest(float value) { return rounded<13>(value); }
  static __device__ __forceinline__ Stored store(float value) { return value; }
};

struct AsBf16 {
  using Stored = std::uint16_t;
  static __device__ __forceinline__ float nearest(float value) { return rounded<16>(value); }
  static __device__ __forceinline__ Stored store(float value) {
    return static_cast<std::uint16_t>(static_cast<std::uint32_t>(__float_as_int(value)) >> 16);
  }
};

// Part `index` of a number split into a sum of encoded numbers.
template <typename Encoded>
__device__ __forceinline__ float part_of(double number, std::uint32_t index) {
  float part = 0;
  for (std::uint32_t i = 0; i <= index; ++i) {
    part = Encoded::nearest(static_cast<float>(number));
    number -= part;
  }
  return part;
}

template <typename T, typename Encoded, std::uint32_t BiasColumns>
__global__ void pack_rows(PackTask task) {
  const std::uint32_t lane = threadIdx.x % lanes;
  const std::size_t number = std::size_t{blockIdx.x} * warps_per_block + threadIdx.x / lanes;
  if (number >= task.count) return;
  const T* const row = reinterpret_cast<const T*>(task.rows + number * task.stride_bytes);
  auto* const out = reinterpret_cast<typename Encoded::Stored*>(task.out) + number * task.width;

  double length = 1;
  if (task.normalise) {
    double squares = 0;
    for (std::uint32_t i = lane; i < task.dim; i += lanes) {
      const double x = to_float(row[i]);
      squares += x * x;
    }
    length = sqrt(warp_sum(squares));
  }

  bool finite = true;
  double squares = 0;
  double error = 0;
  for (std::uint32_t i = lane; i < task.dim; i += lanes) {
    const float x = to_float(row[i]);
    finite = finite && x - x == 0;
    float centred = task.centre != nullptr ? x - task.centre[i] : x;
    if (task.normalise && length > 0) centred = static_cast<float>(x / length);
    const float encoded_value = Encoded::nearest(centred);
    const double difference = static_cast<double>(centred) - encoded_value;
    error += difference * difference;
    squares += static_cast<double>(encoded_value) * encoded_value;
    out[i] = Encoded::store(encoded_value);
  }
  squares = warp_sum(squares);
  error = warp_sum(error);
  for (std::uint32_t i = task.dim + lane; i < task.width; i += lanes) {
    float value = 0;
    const std::uint32_t column = i - task.dim;
    if (column < BiasColumns && task.bias == Bias::minus_one) value = -1;
    if (column < BiasColumns && task.bias == Bias::half_norm) value = part_of<Encoded>(squares / 2, column);
    out[i] = Encoded::store(value);
  }

  finite = __all_sync(0xFFFFFFFFU, finite) != 0;
  if (lane != 0) return;
  const double norm = sqrt(squares);
  const double residual = sqrt(error);
  if (task.lengths != nullptr) task.lengths[number] = {norm, residual};
  atomicMax(&task.summary->longest_norm, static_cast<unsigned long long>(__double_as_longlong(norm)));
  atomicMax(&task.summary->longest_residual, static_cast<unsigned long long>(__double_as_longlong(residual)));
  if (!finite)
    atomicMin(&task.summary->first_bad_row, static_cast<unsigned long long>(task.first_row + number));
}

}  // namespace

void launch_pack_rows(cudaStream_t stream, ElementType type, Encoding encoding, const PackTask& task) {
  if (task.count == 0) return;
  const auto blocks = static_cast<unsigned>((task.count + warps_per_block - 1) / warps_per_block);
  visit_element_type(type, [&](auto tag) {
    using T = decltype(tag);
    const auto kernel = encoding == Encoding::f32    ? pack_rows<T, AsF32, bias_columns(Encoding::f32)>
                        : encoding == Encoding::tf32 ? pack_rows<T, AsTf32, bias_columns(Encoding::tf32)>
                                                     : pack_rows<T, AsBf16, bias_columns(Encoding::bf16)>;
    launch(kernel, dim3(blocks), dim3(warps_per_block * lanes), 0, stream, task);
  });
}

}  // namespace nearwise::gpu
