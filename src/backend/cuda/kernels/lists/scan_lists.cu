#include "backend/cuda/kernels/lists/scan_lists.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/list_search.h"
#include "backend/cuda/warp/code_word.cuh"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {
namespace {

constexpr int threads = tuning::scan_threads;
constexpr int warps = threads / warp_lanes;
static_assert(interleaved_rows == warp_lanes);
constexpr std::uint32_t no_query = UINT32_MAX;

// A warp per pair.
__global__ void pair_offsets(ScanTask task, PairOffsetsTask of) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::size_t number = std::size_t{blockIdx.x} * warps + threadIdx.x / warp_lanes;
  if (number >= task.count) return;
  const ScanPair pair = task.pairs[number];
  const float* const query = of.queries + std::size_t{pair.query} * of.dim;
  const float* const centroid = of.centroids + std::size_t{pair.list} * of.dim;
  double sum = 0;
  for (std::uint32_t i = lane; i < of.dim; i += warp_lanes) {
    const double centre = of.centre != nullptr ? static_cast<double>(of.centre[i]) : 0.0;
    sum -= (static_cast<double>(query[i]) - centre) * (static_cast<double>(centroid[i]) - centre);
  }
  for (int step = warp_lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(whole_warp, sum, step);
  if (lane == 0) of.offsets[number] = static_cast<float>(sum);
}

// Some rows of a pair, a few of them by each thread. Tables pass through shared memory, as many parts of them as fit; where
// all do, they stay there while pairs have the same query.
template <unsigned bits>
__device__ __forceinline__ void scan_pair(const ScanTask& task, const CodeScan& of, std::size_t number,
                                          float* table, std::uint32_t& loaded_query) {
  constexpr int rows_per_thread = tuning::scanned_rows_per_thread;
  constexpr std::uint32_t step = rows_per_thread * threads;
  constexpr std::uint32_t most_parts = tuning::table_entries >> bits;
  const ScanPair pair = task.pairs[number];
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t begin = blockIdx.y * tuning::scanned_rows_per_block;
  if (begin >= pair.rows) return;
  const std::uint32_t end = min(pair.rows, begin + tuning::scanned_rows_per_block);
  const float* const tables = of.tables + (std::size_t{pair.query} * of.parts << bits);
  float* const scores = task.scores + pair.query * task.columns + pair.column;
  const float offset = of.offsets[number];
  const std::uint32_t last_group = (pair.rows - 1) / interleaved_rows;

  for (std::uint32_t first = begin; first < end; first += step) {
    // Groups of 32 rows; behind the last one it is looked at again.
    const std::uint32_t* codes[rows_per_thread];
    float sums[rows_per_thread];
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const std::uint32_t group = first / interleaved_rows + threadIdx.x / warp_lanes + i * warps;
      codes[i] = of.codes +
                 std::size_t{pair.first_row / interleaved_rows + min(group, last_group)} * of.words *
                     interleaved_rows +
                 lane;
      sums[i] = 0;
    }
    for (std::uint32_t first_part = 0; first_part < of.parts; first_part += most_parts) {
      const std::uint32_t parts = min(most_parts, of.parts - first_part);
      if (loaded_query != pair.query || of.parts > most_parts) {
        loaded_query = pair.query;
        __syncthreads();  // whoever reads the entries before these is done
        for (std::uint32_t i = threadIdx.x; i < parts << bits; i += threads)
          table[i] = __ldg(tables + (std::size_t{first_part} << bits) + i);
        __syncthreads();  // all are there
      }
      for (std::uint32_t part = 0; part < parts; part += parts_per_word<bits>) {
        std::uint32_t words[rows_per_thread];
#pragma unroll
        for (int i = 0; i < rows_per_thread; ++i)
          words[i] =
              __ldg(codes[i] + std::size_t{(first_part + part) / parts_per_word<bits>} * interleaved_rows);
#pragma unroll
        for (std::uint32_t place = 0; place < parts_per_word<bits>; ++place) {
          if (part + place >= parts) break;
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i)
            sums[i] += table[((part + place) << bits) + code_in<bits>(words[i], place)];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const std::uint32_t row = first + i * threads + threadIdx.x;
      if (row >= end) continue;
      const float score = offset + sums[i];
      scores[row] = of.half_norms != nullptr ? of.half_norms[pair.first_row + row] + score : score;
    }
  }
}

// A block has some pairs, one after another.
template <unsigned bits>
__global__ void __launch_bounds__(threads) scan_codes(ScanTask task, CodeScan of) {
  __shared__ float table[tuning::table_entries];
  std::uint32_t loaded_query = no_query;
  const std::size_t first = std::size_t{blockIdx.x} * of.pairs_per_block;
  const std::size_t end = min(first + of.pairs_per_block, task.count);
  for (std::size_t number = first; number < end; ++number)
    scan_pair<bits>(task, of, number, table, loaded_query);
}

constexpr int row_threads = 8;  // of one row
constexpr std::uint32_t rows_at_once = threads / row_threads;
constexpr std::uint32_t packed_rows_per_block = 256;

__global__ void __launch_bounds__(threads) scan_packed(ScanTask task, PackedScan of) {
  const ScanPair pair = task.pairs[blockIdx.x];
  const std::uint32_t lane = threadIdx.x % row_threads;
  const std::uint32_t begin = blockIdx.y * packed_rows_per_block;
  if (begin >= pair.rows) return;
  const std::uint32_t end = min(pair.rows, begin + packed_rows_per_block);
  const float* const query = of.queries + std::size_t{pair.query} * of.width;
  float* const scores = task.scores + pair.query * task.columns + pair.column;
  for (std::uint32_t first = begin; first < end; first += rows_at_once) {
    const std::uint32_t row = first + threadIdx.x / row_threads;
    // All lanes of a warp meet in the sums: those without a row look at the last one again.
    const float* const elements = of.rows + std::size_t{pair.first_row + min(row, end - 1)} * of.width;
    float sum = 0;
    for (std::uint32_t i = lane; i < of.width; i += row_threads)
      sum = fmaf(__ldg(query + i), __ldg(elements + i), sum);
#pragma unroll
    for (int distance = row_threads / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(whole_warp, sum, distance);
    if (row < end && lane == 0) scores[row] = -sum;
  }
}

dim3 grid_of(const ScanTask& task, std::size_t pairs_per_block, unsigned rows_per_block) {
  return dim3(static_cast<unsigned>((task.count + pairs_per_block - 1) / pairs_per_block),
              (task.most_rows + rows_per_block - 1) / rows_per_block);
}

}  // namespace

void launch_pair_offsets(cudaStream_t stream, const ScanTask& task, const PairOffsetsTask& of) {
  if (task.count == 0) return;
  launch(pair_offsets, dim3(static_cast<unsigned>((task.count + warps - 1) / warps)), dim3(threads), 0,
         stream, task, of);
}

void launch_scan_codes(cudaStream_t stream, const ScanTask& task, const CodeScan& of) {
  if (task.count == 0) return;
  launch(of.bits == 8 ? scan_codes<8> : scan_codes<4>,
         grid_of(task, of.pairs_per_block, tuning::scanned_rows_per_block), dim3(threads), 0, stream, task,
         of);
}

void launch_scan_packed(cudaStream_t stream, const ScanTask& task, const PackedScan& of) {
  if (task.count == 0) return;
  launch(scan_packed, grid_of(task, 1, packed_rows_per_block), dim3(threads), 0, stream, task, of);
}

}  // namespace nearwise::gpu
