#include "backend/cuda/kernels/lists/scan_lists.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/list_search.h"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "backend/cuda/warp/lane_network.cuh"

namespace nearwise::gpu {
namespace {

constexpr int threads = tuning::scan_threads;
constexpr int warps = threads / warp_lanes;
static_assert(interleaved_rows == warp_lanes);
constexpr std::uint32_t no_query = UINT32_MAX;

// One warp per pair.
__global__ void pair_offsets(ScanTask task, PairOffsetsTask offsets) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::size_t number = std::size_t{blockIdx.x} * warps + threadIdx.x / warp_lanes;
  if (number >= task.count) return;
  const ScanPair pair = task.pairs[number];
  const float* const query = offsets.queries + std::size_t{pair.query} * offsets.dim;
  const float* const centroid = offsets.centroids + std::size_t{pair.list} * offsets.dim;
  double sum = 0;
  for (std::uint32_t i = lane; i < offsets.dim; i += warp_lanes) {
    const double centre = offsets.centre != nullptr ? static_cast<double>(offsets.centre[i]) : 0.0;
    sum -= (static_cast<double>(query[i]) - centre) * (static_cast<double>(centroid[i]) - centre);
  }
  for (int step = warp_lanes / 2; step > 0; step /= 2) sum += __shfl_xor_sync(whole_warp, sum, step);
  if (lane == 0) offsets.offsets[number] = static_cast<float>(sum);
}

// Scans some rows of a pair, a few per thread. Tables are loaded into shared memory, as many parts as fit; if
// all fit, they stay there for the next pairs of the same query.
template <unsigned bits>
__device__ __forceinline__ void scan_pair(const ScanTask& task, const CodeScan& scan, std::size_t number,
                                          float* table, std::uint32_t& loaded_query) {
  constexpr int rows_per_thread = tuning::scanned_rows_per_thread;
  constexpr std::uint32_t step = rows_per_thread * threads;
  constexpr std::uint32_t max_parts = tuning::table_entries >> bits;
  const ScanPair pair = task.pairs[number];
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t begin = blockIdx.y * tuning::scanned_rows_per_block;
  if (begin >= pair.rows) return;
  const std::uint32_t end = min(pair.rows, begin + tuning::scanned_rows_per_block);
  const float* const tables = scan.tables + (std::size_t{pair.query} * scan.parts << bits);
  float* const scores = task.scores + pair.query * task.columns + pair.column;
  const float offset = scan.offsets[number];
  const std::uint32_t last_group = (pair.rows - 1) / interleaved_rows;

  for (std::uint32_t first = begin; first < end; first += step) {
    // Groups of 32 rows; past the last group, the last one is repeated.
    const std::uint32_t* codes[rows_per_thread];
    float sums[rows_per_thread];
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const std::uint32_t group = first / interleaved_rows + threadIdx.x / warp_lanes + i * warps;
      codes[i] = scan.codes +
                 std::size_t{pair.first_row / interleaved_rows + min(group, last_group)} *
                     scan.words_per_code * interleaved_rows +
                 lane;
      sums[i] = 0;
    }
    for (std::uint32_t first_part = 0; first_part < scan.parts; first_part += max_parts) {
      const std::uint32_t parts = min(max_parts, scan.parts - first_part);
      if (loaded_query != pair.query || scan.parts > max_parts) {
        loaded_query = pair.query;
        __syncthreads();  // previous entries consumed
        for (std::uint32_t i = threadIdx.x; i < parts << bits; i += threads)
          table[i] = __ldg(tables + (std::size_t{first_part} << bits) + i);
        __syncthreads();  // entries loaded
      }
      for (std::uint32_t part = 0; part < parts; part += parts_per_word<bits>) {
        std::uint32_t words[rows_per_thread];
#pragma unroll
        for (int i = 0; i < rows_per_thread; ++i)
          words[i] =
              __ldg(codes[i] + std::size_t{(first_part + part) / parts_per_word<bits>} * interleaved_rows);
#pragma unroll
        for (std::uint32_t field = 0; field < parts_per_word<bits>; ++field) {
          if (part + field >= parts) break;
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i)
            sums[i] += table[((part + field) << bits) + code_in<bits>(words[i], field)];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const std::uint32_t row = first + i * threads + threadIdx.x;
      if (row >= end) continue;
      const float score = offset + sums[i];
      scores[row] = scan.half_norms != nullptr ? scan.half_norms[pair.first_row + row] + score : score;
    }
  }
}

// A block scans several pairs in sequence.
template <unsigned bits>
__global__ void __launch_bounds__(threads) scan_codes(ScanTask task, CodeScan scan) {
  __shared__ float table[tuning::table_entries];
  std::uint32_t loaded_query = no_query;
  const std::size_t first = std::size_t{blockIdx.x} * scan.pairs_per_block;
  const std::size_t end = min(first + scan.pairs_per_block, task.count);
  for (std::size_t number = first; number < end; ++number)
    scan_pair<bits>(task, scan, number, table, loaded_query);
}

constexpr int row_threads = 8;  // per row
constexpr std::uint32_t rows_per_pass = threads / row_threads;
constexpr std::uint32_t packed_rows_per_block = 256;

__global__ void __launch_bounds__(threads) scan_packed(ScanTask task, PackedScan scan) {
  const ScanPair pair = task.pairs[blockIdx.x];
  const std::uint32_t lane = threadIdx.x % row_threads;
  const std::uint32_t begin = blockIdx.y * packed_rows_per_block;
  if (begin >= pair.rows) return;
  const std::uint32_t end = min(pair.rows, begin + packed_rows_per_block);
  const float* const query = scan.queries + std::size_t{pair.query} * scan.width;
  float* const scores = task.scores + pair.query * task.columns + pair.column;
  for (std::uint32_t first = begin; first < end; first += rows_per_pass) {
    const std::uint32_t row = first + threadIdx.x / row_threads;
    // All lanes take part in the sums: threads without a row repeat the last one.
    const float* const elements = scan.rows + std::size_t{pair.first_row + min(row, end - 1)} * scan.width;
    float sum = 0;
    for (std::uint32_t i = lane; i < scan.width; i += row_threads)
      sum = fmaf(__ldg(query + i), __ldg(elements + i), sum);
#pragma unroll
    for (int distance = row_threads / 2; distance > 0; distance /= 2)
      sum += __shfl_xor_sync(whole_warp, sum, distance);
    if (row < end && lane == 0) scores[row] = -sum;
  }
}

dim3 grid_of(const ScanTask& task, std::size_t pairs_per_block, unsigned rows_per_block) {
  return dim3(static_cast<unsigned>((task.count + pairs_per_block - 1) / pairs_per_block),
              (task.max_rows + rows_per_block - 1) / rows_per_block);
}

}  // namespace

void launch_pair_offsets(cudaStream_t stream, const ScanTask& task, const PairOffsetsTask& offsets) {
  if (task.count == 0) return;
  launch(pair_offsets, dim3(static_cast<unsigned>((task.count + warps - 1) / warps)), dim3(threads), 0,
         stream, task, offsets);
}

void launch_scan_codes(cudaStream_t stream, const ScanTask& task, const CodeScan& scan) {
  if (task.count == 0) return;
  launch(scan.bits == 8 ? scan_codes<8> : scan_codes<4>,
         grid_of(task, scan.pairs_per_block, tuning::scanned_rows_per_block), dim3(threads), 0, stream, task,
         scan);
}

void launch_scan_packed(cudaStream_t stream, const ScanTask& task, const PackedScan& scan) {
  if (task.count == 0) return;
  launch(scan_packed, grid_of(task, 1, packed_rows_per_block), dim3(threads), 0, stream, task, scan);
}

}  // namespace nearwise::gpu
