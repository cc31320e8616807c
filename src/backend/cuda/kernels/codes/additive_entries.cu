#include "backend/cuda/kernels/codes/additive_entries.h"

#include "backend/cuda/device/gpu.h"
#include "codes/additive_codewords.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = additive_codebook_size;  // of a block: one for each codeword
constexpr std::uint32_t rows_at_once = 16;            // that share the loads of a codeword
constexpr std::uint32_t elements_at_once = 32;
// Rows of elements begin at multiples of 16 bytes, and few of them in the same banks.
constexpr std::uint32_t tile_stride = rows_at_once + 4;

// out(row, word) = (start[word] + factor * <row, word>) * scale, rounded, within the range of 16 bits.
struct ScaledProducts {
  const float* rows = nullptr;  // [count, stride]
  const double* shrinks = nullptr;
  std::uint32_t count = 0;
  std::uint32_t stride = 0;
  std::uint32_t dim = 0;
  const float* columns = nullptr;  // [dim, 256]
  float start = 0;                 // of this thread's word
  float factor = 0;
  float scale = 0;
  std::int16_t* out = nullptr;
  std::size_t out_stride = 0;
};

// Halves to even, by adding a number whose last digit is a one, as on the CPU.
__device__ __forceinline__ std::int16_t rounded(float value) {
  constexpr float limit = 32767;
  constexpr float magic = 12582912;  // 1.5 * 2^23
  const float within = fmaxf(fminf(value, limit), -limit);
  return static_cast<std::int16_t>(__float_as_int(within + magic) - __float_as_int(magic));
}

__device__ __forceinline__ float element_of(const ScaledProducts& of, std::uint32_t row, std::uint32_t i) {
  const float value = __ldg(of.rows + std::size_t{row} * of.stride + i);
  if (of.shrinks == nullptr || of.shrinks[row] == 1) return value;
  return static_cast<float>(static_cast<double>(value) * of.shrinks[row]);
}

// Of the block's rows and all words of a codebook: one sum per entry, over the elements in their order. By the whole block.
__device__ __forceinline__ void scaled_products(const ScaledProducts& of) {
  __shared__ __align__(16) float tile[elements_at_once * tile_stride];
  const std::uint32_t word = threadIdx.x;
  const std::uint32_t first_row = blockIdx.x * rows_at_once;
  float sums[rows_at_once] = {};
  for (std::uint32_t first = 0; first < of.dim; first += elements_at_once) {
    const std::uint32_t elements = min(elements_at_once, of.dim - first);
    __syncthreads();  // whoever reads the elements before these is done
    for (std::uint32_t i = threadIdx.x; i < rows_at_once * elements_at_once; i += threads) {
      const std::uint32_t element = i % elements_at_once;
      // Behind the last row it is taken again.
      const std::uint32_t row = min(first_row + i / elements_at_once, of.count - 1);
      if (element < elements)
        tile[element * tile_stride + i / elements_at_once] = element_of(of, row, first + element);
    }
    __syncthreads();  // all are there
    for (std::uint32_t element = 0; element < elements; ++element) {
      const float of_word = __ldg(of.columns + std::size_t{first + element} * additive_codebook_size + word);
#pragma unroll
      for (std::uint32_t row = 0; row < rows_at_once; ++row)
        sums[row] += tile[element * tile_stride + row] * of_word;
    }
  }
#pragma unroll
  for (std::uint32_t row = 0; row < rows_at_once; ++row)
    if (first_row + row < of.count)
      of.out[(first_row + row) * of.out_stride + word] =
          rounded((of.start + of.factor * sums[row]) * of.scale);
}

__global__ void __launch_bounds__(threads) pair_entries(DeviceAdditiveCodewords words, std::int16_t* out) {
  const std::uint32_t slot = blockIdx.y;
  const std::uint32_t book = slot / (words.books - 1);
  const std::uint32_t rest = slot % (words.books - 1);
  const std::uint32_t other = rest < book ? rest : rest + 1;
  scaled_products({.rows = words.words + std::size_t{other} * additive_codebook_size * words.width,
                   .count = additive_codebook_size,
                   .stride = words.width,
                   .dim = words.dim,
                   .columns = words.columns + std::size_t{book} * words.dim * additive_codebook_size,
                   .factor = 2,
                   .scale = words.scales[book],
                   .out = out + std::size_t{slot} * additive_codebook_size * additive_codebook_size,
                   .out_stride = additive_codebook_size});
}

__global__ void __launch_bounds__(threads) own_entries(DeviceAdditiveCodewords words, OwnEntriesTask task) {
  const std::uint32_t book = blockIdx.y;
  scaled_products({.rows = task.values,
                   .shrinks = task.shrinks,
                   .count = task.count,
                   .stride = words.width,
                   .dim = words.dim,
                   .columns = words.columns + std::size_t{book} * words.dim * additive_codebook_size,
                   .start = words.norms[book * additive_codebook_size + threadIdx.x],
                   .factor = -2,
                   .scale = words.scales[book],
                   .out = task.out + book * additive_codebook_size,
                   .out_stride = words.books * additive_codebook_size});
}

unsigned blocks_for(std::uint32_t rows) { return (rows + rows_at_once - 1) / rows_at_once; }

}  // namespace

void launch_pair_entries(cudaStream_t stream, const DeviceAdditiveCodewords& words, std::int16_t* out) {
  if (words.books == 1) return;
  launch(pair_entries, dim3(blocks_for(additive_codebook_size), words.books * (words.books - 1)),
         dim3(threads), 0, stream, words, out);
}

void launch_own_entries(cudaStream_t stream, const DeviceAdditiveCodewords& words,
                        const OwnEntriesTask& task) {
  if (task.count == 0) return;
  launch(own_entries, dim3(blocks_for(task.count), words.books), dim3(threads), 0, stream, words, task);
}

}  // namespace nearwise::gpu
