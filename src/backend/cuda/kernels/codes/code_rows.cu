#include "backend/cuda/kernels/codes/code_rows.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/code_part.cuh"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 256;

__device__ __forceinline__ std::uint32_t code_of(const CodeRowsTask& task, std::uint32_t row,
                                                 std::uint32_t part) {
  const std::uint8_t* const code = task.codes + std::size_t{row} * task.code_bytes;
  if (task.books.bits == 8) return code[part];
  return code[part / 2] >> (part % 2 * 4) & 15U;
}

__global__ void interleave_codes(CodeRowsTask task, std::uint32_t words_per_code, std::uint32_t* out) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * words_per_code) return;
  const auto word = static_cast<std::uint32_t>(number / interleaved_rows % words_per_code);
  const std::size_t row =
      number / interleaved_rows / words_per_code * interleaved_rows + number % interleaved_rows;
  std::uint32_t bits = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t byte = word * 4 + i;
    if (byte < task.code_bytes) bits |= std::uint32_t{task.codes[row * task.code_bytes + byte]} << (8 * i);
  }
  out[number] = bits;
}

__device__ __forceinline__ double centred_square(float element, const float* centre, std::uint32_t i) {
  const double centred =
      static_cast<double>(element) - (centre != nullptr ? static_cast<double>(centre[i]) : 0.0);
  return centred * centred;
}

// One thread per row: a warp reads the same centroid elements, but different codewords.
__global__ void half_norms(CodeRowsTask task, const float* centre, float* out) {
  const std::uint32_t row = blockIdx.x * threads + threadIdx.x;
  if (row >= task.rows) return;
  const float* const centroid =
      task.centroids + std::size_t{task.lists[row / interleaved_rows]} * task.books.dim;
  double sum = 0;
  for (std::uint32_t part = 0; part < task.books.parts; ++part) {
    const CodePart code_part = part_of(task.books, part);
    const float* const codeword =
        code_part.codewords + std::size_t{code_of(task, row, part)} * code_part.length;
    for (std::uint32_t i = 0; i < code_part.length; ++i)
      sum += centred_square(centroid[code_part.begin + i] + codeword[i], centre, code_part.begin + i);
  }
  out[row] = static_cast<float>(sum / 2);
}

// One thread per row and part.
__global__ void decode_rows(CodeRowsTask task, float* out) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * task.books.parts) return;
  const auto row = static_cast<std::uint32_t>(number / task.books.parts);
  const auto part = static_cast<std::uint32_t>(number % task.books.parts);
  const CodePart code_part = part_of(task.books, part);
  const float* const centroid =
      task.centroids + std::size_t{task.lists[row / interleaved_rows]} * task.books.dim + code_part.begin;
  const float* const codeword =
      code_part.codewords + std::size_t{code_of(task, row, part)} * code_part.length;
  float* const to = out + std::size_t{row} * task.books.dim + code_part.begin;
  for (std::uint32_t i = 0; i < code_part.length; ++i) to[i] = centroid[i] + codeword[i];
}

// Element i of an additive reconstruction: summed in f64 in codebook order, rounded once.
__device__ __forceinline__ float reconstructed_element(const CodeRowsTask& task, std::uint32_t row,
                                                       std::uint32_t i) {
  double sum = task.centroids[std::size_t{task.lists[row / interleaved_rows]} * task.books.dim + i];
  for (std::uint32_t part = 0; part < task.books.parts; ++part) {
    const CodePart code_part = part_of(task.books, part);
    sum += static_cast<double>(
        __ldg(code_part.codewords + std::size_t{code_of(task, row, part)} * code_part.length + i));
  }
  return static_cast<float>(sum);
}

// One warp per row: codewords are as long as rows, and lanes read consecutive elements.
__global__ void additive_half_norms(CodeRowsTask task, const float* centre, float* out) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t row = (blockIdx.x * threads + threadIdx.x) / warp_lanes;
  if (row >= task.rows) return;
  double sum = 0;
  for (std::uint32_t i = lane; i < task.books.dim; i += warp_lanes)
    sum += centred_square(reconstructed_element(task, row, i), centre, i);
  for (int step = warp_lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(whole_warp, sum, step);
  if (lane == 0) out[row] = static_cast<float>(sum / 2);
}

// One thread per element.
__global__ void decode_additive_rows(CodeRowsTask task, float* out) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * task.books.dim) return;
  out[number] = reconstructed_element(task, static_cast<std::uint32_t>(number / task.books.dim),
                                      static_cast<std::uint32_t>(number % task.books.dim));
}

dim3 blocks_for(std::size_t count) { return dim3(static_cast<unsigned>((count + threads - 1) / threads)); }

}  // namespace

void launch_interleave_codes(cudaStream_t stream, const CodeRowsTask& task, std::uint32_t words_per_code,
                             std::uint32_t* out) {
  if (task.rows == 0) return;
  launch(interleave_codes, blocks_for(std::size_t{task.rows} * words_per_code), dim3(threads), 0, stream,
         task, words_per_code, out);
}

void launch_half_norms(cudaStream_t stream, const CodeRowsTask& task, const float* centre, float* out) {
  if (task.rows == 0) return;
  if (task.books.begins == nullptr)
    launch(additive_half_norms, blocks_for(std::size_t{task.rows} * warp_lanes), dim3(threads), 0, stream,
           task, centre, out);
  else
    launch(half_norms, blocks_for(task.rows), dim3(threads), 0, stream, task, centre, out);
}

void launch_decode_rows(cudaStream_t stream, const CodeRowsTask& task, float* out) {
  if (task.rows == 0) return;
  const bool additive = task.books.begins == nullptr;
  launch(additive ? decode_additive_rows : decode_rows,
         blocks_for(std::size_t{task.rows} * (additive ? task.books.dim : task.books.parts)), dim3(threads),
         0, stream, task, out);
}

}  // namespace nearwise::gpu
