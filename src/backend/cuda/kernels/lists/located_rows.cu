#include "backend/cuda/kernels/lists/located_rows.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/code_part.cuh"
#include "backend/cuda/warp/interleaved_codes.cuh"
#include "backend/cuda/warp/lane_network.cuh"
#include "backend/cuda/warp/pair_key.cuh"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = 128;
constexpr unsigned warps = threads / warp_lanes;

// A warp per query.
__global__ void probe_pairs(ProbePairsTask task) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::size_t query = std::size_t{blockIdx.x} * warps + threadIdx.x / warp_lanes;
  if (query >= task.queries) return;
  std::uint32_t column = 0;  // of the next 32 probes
  for (std::uint32_t first = 0; first < task.count; first += warp_lanes) {
    const std::uint32_t number = first + lane;
    const Id list = number < task.count ? task.probes[query * task.count + number] : no_id;
    const bool is_list = list >= 0 && list < static_cast<Id>(task.lists);
    const std::uint32_t rows = is_list ? task.sizes[list] : 0;
    std::uint32_t end = rows;
#pragma unroll
    for (std::uint32_t step = 1; step < warp_lanes; step *= 2) {
      const std::uint32_t before = __shfl_up_sync(whole_warp, end, step);
      if (lane >= step) end += before;
    }
    if (number < task.count)
      task.pairs[query * task.count + number] = {static_cast<std::uint32_t>(query), column + end - rows,
                                                 is_list ? task.first_rows[list] : 0, rows,
                                                 is_list ? static_cast<std::uint32_t>(list) : 0};
    column += __shfl_sync(whole_warp, end, warp_lanes - 1);
  }
}

// A thread per score.
__global__ void locate_rows(LocateTask task) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= task.queries * task.length) return;
  const std::size_t query = number / task.length;
  const ScanPair* const pairs = task.pairs + query * task.probes;
  const ScanPair end = pairs[task.probes - 1];
  const Id column = task.columns[number];
  const Id columns = static_cast<Id>(end.column) + end.rows;
  const bool is_row = column >= 0 && column < columns;
  std::uint32_t row = no_located_row;
  std::uint32_t list = 0;
  if (is_row) {
    // The last pair that begins at the column or before it: those without rows begin where the next does.
    std::uint32_t low = 0;
    std::uint32_t high = task.probes;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (pairs[middle].column <= column)
        low = middle;
      else
        high = middle;
    }
    // Those at the end of the query begin at no column.
    row = pairs[low].first_row + (static_cast<std::uint32_t>(column) - pairs[low].column);
    list = pairs[low].list;
  }
  task.rows[number] = row;
  task.ids[number] = is_row ? task.row_ids[row] : no_id;
  if (task.lists != nullptr) task.lists[number] = list;
  if (number % task.length == task.length - 1)
    task.last_scores[query] = columns > task.length ? task.scores[number] : __int_as_float(0x7F800000);
}

// A warp per wanted id.
__global__ void find_rows(FindRowsTask task) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::size_t number = std::size_t{blockIdx.x} * warps + threadIdx.x / warp_lanes;
  if (number >= task.queries * task.count) return;
  const std::size_t query = number / task.count;
  const Id wanted = task.wanted[number];
  std::uint32_t row = no_located_row;
  if (wanted != no_id)
    for (std::uint32_t i = lane; i < task.length; i += warp_lanes)
      if (task.ids[query * task.length + i] == wanted) row = task.rows[query * task.length + i];
  for (int step = warp_lanes / 2; step > 0; step /= 2) row = min(row, __shfl_xor_sync(whole_warp, row, step));
  if (lane != 0) return;
  task.found[number] = row;
  if (number % task.count == task.count - 1) task.last_keys[query] = task.keys[number];
}

__device__ __forceinline__ std::uint32_t located_code(const DecodeLocatedTask& task, std::uint32_t row,
                                                      std::uint32_t part) {
  const std::uint32_t per_word = 32 / task.books.bits;
  const std::uint32_t word = task.codes[interleaved_index(row, task.words_per_code, part / per_word)];
  return word >> (part % per_word * task.books.bits) & ((1U << task.books.bits) - 1);
}

// One thread per row and part.
__global__ void decode_located(DecodeLocatedTask task) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= task.count * task.books.parts) return;
  const std::size_t place = number / task.books.parts;
  const auto part = static_cast<std::uint32_t>(number % task.books.parts);
  const CodePart code_part = part_of(task.books, part);
  const std::uint32_t row = task.rows[place];
  float* const to = task.out + place * task.books.dim + code_part.begin;
  if (row == no_located_row) {
    for (std::uint32_t i = 0; i < code_part.length; ++i) to[i] = 0;
    return;
  }
  const float* const centroid =
      task.centroids + std::size_t{task.lists[place]} * task.books.dim + code_part.begin;
  const float* const codeword =
      code_part.codewords + std::size_t{located_code(task, row, part)} * code_part.length;
  for (std::uint32_t i = 0; i < code_part.length; ++i) to[i] = centroid[i] + codeword[i];
}

// One thread per element: summed in f64 in codebook order, rounded once.
__global__ void decode_additive_located(DecodeLocatedTask task) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= task.count * task.books.dim) return;
  const std::size_t place = number / task.books.dim;
  const auto i = static_cast<std::uint32_t>(number % task.books.dim);
  const std::uint32_t row = task.rows[place];
  double sum = 0;
  if (row != no_located_row) {
    sum = task.centroids[std::size_t{task.lists[place]} * task.books.dim + i];
    for (std::uint32_t part = 0; part < task.books.parts; ++part) {
      const CodePart code_part = part_of(task.books, part);
      sum += static_cast<double>(
          __ldg(code_part.codewords + std::size_t{located_code(task, row, part)} * code_part.length + i));
    }
  }
  task.out[number] = static_cast<float>(sum);
}

constexpr int group = sum_group;  // threads per pair
constexpr unsigned pairs_per_block = threads / group;

template <typename T>
__global__ void evaluate_located(EvaluateLocatedTask task) {
  const std::uint32_t lane = threadIdx.x % group;
  const std::size_t number = std::size_t{blockIdx.x} * pairs_per_block + threadIdx.x / group;
  const bool in_range = number < task.pairs;
  // All lanes take part in the sums: threads without a pair repeat the last one, those without a row take the
  // first row.
  const std::size_t pair = in_range ? number : task.pairs - 1;
  const std::uint32_t found = task.row_indices[pair];
  const bool is_row = found != no_located_row;
  const std::size_t row = task.is_dense ? pair : is_row ? found : 0;
  const float* const query = task.queries + pair / task.columns * task.dim;
  const T* const elements = reinterpret_cast<const T*>(task.rows + row * task.stride_bytes);
  const float key = pair_key(task.metric, query, elements, task.dim, lane);
  // This NaN sorts after all keys.
  if (in_range && lane == 0) task.keys[pair] = is_row ? key : __int_as_float(-1);
}

dim3 blocks_for(std::size_t count, unsigned per_block) {
  return dim3(static_cast<unsigned>((count + per_block - 1) / per_block));
}

}  // namespace

void launch_probe_pairs(cudaStream_t stream, const ProbePairsTask& task) {
  launch(probe_pairs, blocks_for(task.queries, warps), dim3(threads), 0, stream, task);
}

void launch_locate_rows(cudaStream_t stream, const LocateTask& task) {
  launch(locate_rows, blocks_for(task.queries * task.length, threads), dim3(threads), 0, stream, task);
}

void launch_find_rows(cudaStream_t stream, const FindRowsTask& task) {
  launch(find_rows, blocks_for(task.queries * task.count, warps), dim3(threads), 0, stream, task);
}

void launch_decode_located(cudaStream_t stream, const DecodeLocatedTask& task) {
  const bool additive = task.books.begins == nullptr;
  launch(additive ? decode_additive_located : decode_located,
         blocks_for(task.count * (additive ? task.books.dim : task.books.parts), threads), dim3(threads), 0,
         stream, task);
}

void launch_evaluate_located(cudaStream_t stream, ElementType type, const EvaluateLocatedTask& task) {
  visit_element_type(type, [&](auto tag) {
    launch(evaluate_located<decltype(tag)>, blocks_for(task.pairs, pairs_per_block), dim3(threads), 0, stream,
           task);
  });
}

}  // namespace nearwise::gpu
