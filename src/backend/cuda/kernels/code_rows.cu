#include "backend/cuda/kernels/code_rows.h"

#include "backend/cuda/gpu.h"
#include "backend/cuda/warp/code_word.cuh"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 256;

__device__ __forceinline__ std::uint32_t code_of(const CodeRowsTask& task, std::uint32_t row,
                                                 std::uint32_t part) {
  const std::uint8_t* const code = task.codes + std::size_t{row} * task.code_bytes;
  if (task.books.bits == 8) return code[part];
  return code[part / 2] >> (part % 2 * 4) & 15U;
}

__global__ void interleave_codes(CodeRowsTask task, std::uint32_t words, std::uint32_t* out) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * words) return;
  const auto word = static_cast<std::uint32_t>(number / interleaved_rows % words);
  const std::size_t row = number / interleaved_rows / words * interleaved_rows + number % interleaved_rows;
  std::uint32_t bits = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t byte = word * 4 + i;
    if (byte < task.code_bytes) bits |= std::uint32_t{task.codes[row * task.code_bytes + byte]} << (8 * i);
  }
  out[number] = bits;
}

// A thread per row: elements of a centroid are the same for a warp, codewords are anywhere.
__global__ void half_squares(CodeRowsTask task, const float* centre, float* out) {
  const std::uint32_t row = blockIdx.x * threads + threadIdx.x;
  if (row >= task.rows) return;
  const float* const centroid =
      task.centroids + std::size_t{task.lists[row / interleaved_rows]} * task.books.dim;
  double sum = 0;
  for (std::uint32_t part = 0; part < task.books.parts; ++part) {
    const std::uint32_t begin = task.books.begins[part];
    const std::uint32_t length = task.books.begins[part + 1] - begin;
    const float* const word = task.books.words + (std::size_t{begin} << task.books.bits) +
                              std::size_t{code_of(task, row, part)} * length;
    for (std::uint32_t i = 0; i < length; ++i) {
      const float element = centroid[begin + i] + word[i];
      const double moved =
          static_cast<double>(element) - (centre != nullptr ? static_cast<double>(centre[begin + i]) : 0.0);
      sum += moved * moved;
    }
  }
  out[row] = static_cast<float>(sum / 2);
}

// A thread per row and part.
__global__ void decode_rows(CodeRowsTask task, float* out) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * task.books.parts) return;
  const auto row = static_cast<std::uint32_t>(number / task.books.parts);
  const auto part = static_cast<std::uint32_t>(number % task.books.parts);
  const std::uint32_t begin = task.books.begins[part];
  const std::uint32_t length = task.books.begins[part + 1] - begin;
  const float* const centroid =
      task.centroids + std::size_t{task.lists[row / interleaved_rows]} * task.books.dim + begin;
  const float* const word = task.books.words + (std::size_t{begin} << task.books.bits) +
                            std::size_t{code_of(task, row, part)} * length;
  float* const to = out + std::size_t{row} * task.books.dim + begin;
  for (std::uint32_t i = 0; i < length; ++i) to[i] = centroid[i] + word[i];
}

dim3 blocks_for(std::size_t count) { return dim3(static_cast<unsigned>((count + threads - 1) / threads)); }

}  // namespace

void launch_interleave_codes(cudaStream_t stream, const CodeRowsTask& task, std::uint32_t words,
                             std::uint32_t* out) {
  if (task.rows == 0) return;
  launch(interleave_codes, blocks_for(std::size_t{task.rows} * words), dim3(threads), 0, stream, task, words,
         out);
}

void launch_half_squares(cudaStream_t stream, const CodeRowsTask& task, const float* centre, float* out) {
  if (task.rows == 0) return;
  launch(half_squares, blocks_for(task.rows), dim3(threads), 0, stream, task, centre, out);
}

void launch_decode_rows(cudaStream_t stream, const CodeRowsTask& task, float* out) {
  if (task.rows == 0) return;
  launch(decode_rows, blocks_for(std::size_t{task.rows} * task.books.parts), dim3(threads), 0, stream, task,
         out);
}

}  // namespace nearwise::gpu
