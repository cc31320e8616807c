#include "backend/cuda/kernels/codes/additive_entries.h"

#include "backend/cuda/device/gpu.h"
#include "codes/additive_codewords.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = additive_codebook_size;  // per block: one for each codeword
constexpr std::uint32_t tile_rows = 16;               // rows that share the loads of a codeword
constexpr std::uint32_t tile_elements = 32;
// Keeps rows of elements aligned to 16 bytes and spreads them over banks.
constexpr std::uint32_t tile_stride = tile_rows + 4;

// out(row, codeword) = round((start + factor * <row, codeword>) * scale), clamped to 16 bits.
struct ScaledProducts {
  const float* rows = nullptr;  // [count, stride]
  const double* shrinks = nullptr;
  std::uint32_t count = 0;
  std::uint32_t stride = 0;
  std::uint32_t dim = 0;
  const float* columns = nullptr;  // [dim, 256]
  float start = 0;                 // of this thread's codeword
  float factor = 0;
  float scale = 0;
  std::int16_t* out = nullptr;
  std::size_t out_stride = 0;
};

// Rounds half to even by adding 1.5 * 2^23, as on the CPU.
__device__ __forceinline__ std::int16_t rounded(float value) {
  constexpr float limit = 32767;
  constexpr float magic = 12582912;  // 1.5 * 2^23
  const float clamped = fmaxf(fminf(value, limit), -limit);
  return static_cast<std::int16_t>(__float_as_int(clamped + magic) - __float_as_int(magic));
}

__device__ __forceinline__ float element_of(const ScaledProducts& products, std::uint32_t row,
                                            std::uint32_t i) {
  const float value = __ldg(products.rows + std::size_t{row} * products.stride + i);
  if (products.shrinks == nullptr || products.shrinks[row] == 1) return value;
  return static_cast<float>(static_cast<double>(value) * products.shrinks[row]);
}

// Products of the block's rows and all codewords of a codebook, each summed in element order. Called by the
// whole block.
__device__ __forceinline__ void scaled_products(const ScaledProducts& products) {
  __shared__ __align__(16) float tile[tile_elements * tile_stride];
  const std::uint32_t codeword = threadIdx.x;
  const std::uint32_t first_row = blockIdx.x * tile_rows;
  float sums[tile_rows] = {};
  for (std::uint32_t first = 0; first < products.dim; first += tile_elements) {
    const std::uint32_t elements = min(tile_elements, products.dim - first);
    __syncthreads();  // previous elements consumed
    for (std::uint32_t i = threadIdx.x; i < tile_rows * tile_elements; i += threads) {
      const std::uint32_t element = i % tile_elements;
      // Past the last row, the last row is repeated.
      const std::uint32_t row = min(first_row + i / tile_elements, products.count - 1);
      if (element < elements)
        tile[element * tile_stride + i / tile_elements] = element_of(products, row, first + element);
    }
    __syncthreads();  // elements loaded
    for (std::uint32_t element = 0; element < elements; ++element) {
      const float codeword_element =
          __ldg(products.columns + std::size_t{first + element} * additive_codebook_size + codeword);
#pragma unroll
      for (std::uint32_t row = 0; row < tile_rows; ++row)
        sums[row] += tile[element * tile_stride + row] * codeword_element;
    }
  }
#pragma unroll
  for (std::uint32_t row = 0; row < tile_rows; ++row)
    if (first_row + row < products.count)
      products.out[(first_row + row) * products.out_stride + codeword] =
          rounded((products.start + products.factor * sums[row]) * products.scale);
}

__global__ void __launch_bounds__(threads)
    pair_entries(DeviceAdditiveCodewords codebooks, std::int16_t* out) {
  const std::uint32_t slot = blockIdx.y;
  const std::uint32_t book = slot / (codebooks.books - 1);
  const std::uint32_t other_slot = slot % (codebooks.books - 1);
  const std::uint32_t other = other_slot < book ? other_slot : other_slot + 1;
  scaled_products(
      {.rows = codebooks.codewords + std::size_t{other} * additive_codebook_size * codebooks.width,
       .count = additive_codebook_size,
       .stride = codebooks.width,
       .dim = codebooks.dim,
       .columns = codebooks.columns + std::size_t{book} * codebooks.dim * additive_codebook_size,
       .factor = 2,
       .scale = codebooks.scales[book],
       .out = out + std::size_t{slot} * additive_codebook_size * additive_codebook_size,
       .out_stride = additive_codebook_size});
}

__global__ void __launch_bounds__(threads)
    own_entries(DeviceAdditiveCodewords codebooks, OwnEntriesTask task) {
  const std::uint32_t book = blockIdx.y;
  scaled_products({.rows = task.values,
                   .shrinks = task.shrinks,
                   .count = task.count,
                   .stride = codebooks.width,
                   .dim = codebooks.dim,
                   .columns = codebooks.columns + std::size_t{book} * codebooks.dim * additive_codebook_size,
                   .start = codebooks.norms[book * additive_codebook_size + threadIdx.x],
                   .factor = -2,
                   .scale = codebooks.scales[book],
                   .out = task.out + book * additive_codebook_size,
                   .out_stride = codebooks.books * additive_codebook_size});
}

unsigned blocks_for(std::uint32_t rows) { return (rows + tile_rows - 1) / tile_rows; }

}  // namespace

void launch_pair_entries(cudaStream_t stream, const DeviceAdditiveCodewords& codebooks, std::int16_t* out) {
  if (codebooks.books == 1) return;
  launch(pair_entries, dim3(blocks_for(additive_codebook_size), codebooks.books * (codebooks.books - 1)),
         dim3(threads), 0, stream, codebooks, out);
}

void launch_own_entries(cudaStream_t stream, const DeviceAdditiveCodewords& codebooks,
                        const OwnEntriesTask& task) {
  if (task.count == 0) return;
  launch(own_entries, dim3(blocks_for(task.count), codebooks.books), dim3(threads), 0, stream, codebooks,
         task);
}

}  // namespace nearwise::gpu
