#include "backend/cuda/kernels/codes/nearest_codewords.h"

#include <limits>

#include "backend/cuda/device/gpu.h"
#include "core/distance.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 128;

// In f32, all terms positive: within a known share of the true sum.
__device__ __forceinline__ float estimate(const float* row, const float* word, std::uint32_t length) {
  float sum = 0;
  for (std::uint32_t i = 0; i < length; ++i) {
    const float difference = __ldg(row + i) - __ldg(word + i);
    sum = fmaf(difference, difference, sum);
  }
  return sum;
}

// The squared distance as core/distance.h defines it.
__device__ __forceinline__ float evaluate(const float* row, const float* word, std::uint32_t length) {
  double sums[distance_lanes] = {};
  for (std::uint32_t first = 0; first < length; first += distance_lanes) {
#pragma unroll
    for (std::uint32_t lane = 0; lane < distance_lanes; ++lane) {
      const std::uint32_t i = first + lane;
      if (i >= length) continue;
      const double difference = static_cast<double>(__ldg(row + i)) - static_cast<double>(__ldg(word + i));
      sums[lane] += difference * difference;
    }
  }
  return static_cast<float>(sum_of_lanes(sums));
}

// Words whose estimate exceeds the least one by more than both may be off, and the rounding of what is compared, cannot be
// the nearest (src/backend/cpu/kernels/codewords.cpp has the same sum). Nearly always one is left, and it alone is
// evaluated.
__device__ __forceinline__ std::uint32_t nearest(const float* row, const float* words, std::uint32_t length,
                                                 std::uint32_t count) {
  float least = std::numeric_limits<float>::infinity();
  for (std::uint32_t word = 0; word < count; ++word)
    least = fminf(least, estimate(row, words + std::size_t{word} * length, length));
  const auto terms = static_cast<float>(length);
  const float limit = least * (1 + 4 * (terms + 4) * 0x1p-24F) + 4 * (terms + 2) * 0x1p-149F;
  std::uint32_t found = count;
  float best = 0;
  for (std::uint32_t word = 0; word < count; ++word) {
    const float* const elements = words + std::size_t{word} * length;
    if (!(estimate(row, elements, length) <= limit)) continue;
    const float distance = evaluate(row, elements, length);
    if (found != count && !(distance < best)) continue;
    best = distance;
    found = word;
  }
  return found;
}

// A thread has a byte of a row's code; codewords are the same for a warp.
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
    code |= nearest(task.rows + std::size_t{row} * task.books.dim + begin,
                    task.books.words + (std::size_t{begin} << task.books.bits), length, 1U << task.books.bits)
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
