#include "backend/cuda/kernels/codes/nearest_codewords.h"

#include <limits>

#include "backend/cuda/device/gpu.h"
#include "core/distance.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 128;

// Sum in f32 of positive terms: its relative error is bounded.
__device__ __forceinline__ float estimate(const float* row, const float* codeword, std::uint32_t length) {
  float sum = 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    const float difference = __ldg(row + i) - __ldg(codeword + i);
    sum = fmaf(difference, difference, sum);
  }
  return sum;
}

// Squared distance as defined in core/distance.h.
__device__ __forceinline__ float evaluate(const float* row, const float* codeword, std::uint32_t length) {
  double sums[distance_lanes] = {};
  for (std::uint32_t first = 0; first < length; first += distance_lanes) {
#pragma unroll
    for (std::uint32_t lane = 0; lane < distance_lanes; ++lane) {
      const std::uint32_t i = first + lane;
      if (i >= length) continue;
      const double difference =
          static_cast<double>(__ldg(row + i)) - static_cast<double>(__ldg(codeword + i));
      sums[lane] += difference * difference;
    }
  }
  return static_cast<float>(sum_of_lanes(sums));
}

// A codeword whose estimate exceeds the minimum by more than both errors and the rounding of the reported
// distance cannot be the nearest (same bound as in src/backend/cpu/kernels/codes/codewords.cpp). Usually one
// codeword remains, and only that is evaluated.
__device__ __forceinline__ std::uint32_t nearest(const float* row, const float* codewords,
                                                 std::uint32_t length, std::uint32_t count) {
  float min_estimate = std::numeric_limits<float>::infinity();
  for (std::uint32_t codeword = 0; codeword < count; ++codeword)
    min_estimate = fminf(min_estimate, estimate(row, codewords + std::size_t{codeword} * length, length));
  const auto dim = static_cast<float>(length);
  const float limit = min_estimate * (1 + 4 * (dim + 4) * 0x1p-24F) + 4 * (dim + 2) * 0x1p-149F;
  std::uint32_t nearest_index = count;
  float best = 0;
  for (std::uint32_t codeword = 0; codeword < count; ++codeword) {
    const float* const elements = codewords + std::size_t{codeword} * length;
    if (!(estimate(row, elements, length) <= limit)) continue;
    const float distance = evaluate(row, elements, length);
    if (nearest_index != count && !(distance < best)) continue;
    best = distance;
    nearest_index = codeword;
  }
  return nearest_index;
}

// A thread computes one byte of a row's code; a warp reads the same codewords.
__global__ void nearest_codewords(NearestCodewordsTask task) {
  const std::uint32_t row = blockIdx.y * threads + threadIdx.x;
  if (row >= task.count) return;
  const std::uint32_t codes_per_byte = 8 / task.books.bits;
  const std::uint32_t byte = blockIdx.x;
  std::uint32_t code = 0;
  for (std::uint32_t i = 0; i < codes_per_byte; ++i) {
    const std::uint32_t part = byte * codes_per_byte + i;
    if (part >= task.books.parts) break;
    const std::uint32_t begin = task.books.begins[part];
    const std::uint32_t length = task.books.begins[part + 1] - begin;
    code |=
        nearest(task.rows + std::size_t{row} * task.books.dim + begin,
                task.books.codewords + (std::size_t{begin} << task.books.bits), length, 1U << task.books.bits)
        << (i * task.books.bits);
  }
  task.codes[std::size_t{row} * task.code_bytes + byte] = static_cast<std::uint8_t>(code);
}

}  // namespace

void launch_nearest_codewords(cudaStream_t stream, const NearestCodewordsTask& task) {
  if (task.count == 0) return;
  launch(nearest_codewords, dim3(task.code_bytes, (task.count + threads - 1) / threads), dim3(threads), 0,
         stream, task);
}

}  // namespace nearwise::gpu
