#include "backend/cuda/kernels/graph/join_tiles.h"

#include <limits>

#include "backend/cuda/block/pair_products.cuh"
#include "backend/cuda/device/gpu.h"
#include "backend/cuda/warp/neighbor_list.cuh"
#include "backend/cuda/warp/pair_key.cuh"

namespace nearwise::gpu {
namespace {

constexpr int tile = tuning::join_tile;
constexpr int threads = tuning::join_threads;
constexpr int warps = threads / warp_lanes;
constexpr std::uint32_t pairs_per_pass = warp_lanes / sum_group;  // evaluated by a warp

// A pair that scores do not exclude: row and column of the tile, and the lists it may enter.
constexpr unsigned column_shift = 6;
constexpr unsigned enters_row = 1U << 12;
constexpr unsigned enters_column = 1U << 13;
static_assert(tile == 1 << column_shift);

// Rows or columns of a tile, in shared memory.
struct Members {
  std::uint32_t indices[tile];
  float biases[tile];   // added to scores
  float cutoffs[tile];  // a larger score proves that the row cannot enter the list
};

// Shared memory of a block.
struct TileMemory {
  float row_elements[element_count];
  float column_elements[element_count];
  Members rows;
  Members columns;
  unsigned pair_count;
  std::uint16_t pairs[tile * tile];
};

__device__ __forceinline__ NeighborList list_of(const JoinTask& task, std::uint32_t row_index) {
  return {task.lists + std::size_t{row_index} * task.degree, task.degree, task.locks + row_index};
}

__device__ __forceinline__ float cutoff_of(const JoinTask& task, std::uint32_t row_index,
                                           const Lengths& lengths) {
  const NeighborEntry last = list_of(task, row_index).last();
  if (!task.scores_hold || last == empty_entry) return std::numeric_limits<float>::infinity();
  return task.bound.cutoff(lengths, task.longest, task.bound.limit_from_key(key_of(last)));
}

__device__ __forceinline__ void load_member(const JoinTask& task, std::uint32_t position, Members& members,
                                            std::uint32_t index) {
  const std::uint32_t row_index = task.members[position];
  const Lengths lengths = task.lengths[row_index];
  members.indices[index] = row_index;
  members.biases[index] =
      is_euclidean(task.metric) ? static_cast<float>(lengths.norm * lengths.norm / 2) : 0.0F;
  members.cutoffs[index] = cutoff_of(task, row_index, lengths);
}

// One block per tile.
template <typename T>
__global__ void __launch_bounds__(threads, tuning::join_blocks) join_tiles(JoinTask task) {
  auto& [row_elements, column_elements, rows, columns, pair_count, pairs] =
      *gpu::dynamic_shared<TileMemory>();
  const JoinTile bounds = task.tiles[blockIdx.x];
  if (bounds.rows == 0) return;
  if (threadIdx.x < bounds.rows) load_member(task, bounds.first_row + threadIdx.x, rows, threadIdx.x);
  if (threadIdx.x >= tile && threadIdx.x - tile < bounds.columns)
    load_member(task, bounds.first_column + threadIdx.x - tile, columns, threadIdx.x - tile);
  if (threadIdx.x == 0) pair_count = 0;
  __syncthreads();  // members loaded

  PairProducts products;
  products.add(task.packed, task.width, rows.indices, bounds.rows, columns.indices, bounds.columns,
               row_elements, column_elements);
#pragma unroll
  for (int i = 0; i < pairs_side; ++i)
#pragma unroll
    for (int j = 0; j < pairs_side; ++j) {
      const std::uint32_t row = PairProducts::row() + i * pair_side;
      const std::uint32_t column = PairProducts::column() + j * pair_side;
      if (row >= bounds.rows || column >= bounds.columns ||
          bounds.first_column + column <= bounds.first_row + row)
        continue;
      // A NaN score excludes nothing.
      const float product = products.sums[i][j];
      unsigned pair = row | column << column_shift;
      if (!(columns.biases[column] - product > rows.cutoffs[row])) pair |= enters_row;
      if (!(rows.biases[row] - product > columns.cutoffs[column])) pair |= enters_column;
      if (pair >= enters_row) pairs[atomicAdd(&pair_count, 1U)] = static_cast<std::uint16_t>(pair);
    }
  __syncthreads();  // all candidate pairs collected

  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const auto* const elements = reinterpret_cast<const T*>(task.rows);
  const std::uint32_t count = pair_count;
  for (std::uint32_t first = threadIdx.x / warp_lanes * pairs_per_pass; first < count;
       first += warps * pairs_per_pass) {
    // All lanes take part in the sums: threads without a pair repeat the last one.
    const unsigned pair = pairs[min(first + lane / sum_group, count - 1)];
    const std::uint32_t row = rows.indices[pair % tile];
    const std::uint32_t column = columns.indices[(pair >> column_shift) % tile];
    // Symmetric: both directions sum the same numbers.
    const float key = pair_key(task.metric, elements + std::size_t{row} * task.dim,
                               elements + std::size_t{column} * task.dim, task.dim, lane % sum_group);
    // The first thread of a pair has the column for the row's list, the second the row for the column's list.
    const bool for_row = lane % sum_group == 0;
    const std::uint32_t row_index = for_row ? row : column;
    const NeighborEntry entry = make_entry(key, for_row ? column : row, true);
    const bool valid = first + lane / sum_group < count && lane % sum_group < 2 &&
                       (pair & (for_row ? enters_row : enters_column)) != 0;
    const bool may_enter = valid && entry < list_of(task, row_index).last();
    for (unsigned vote = __ballot_sync(whole_warp, may_enter); vote != 0; vote &= vote - 1) {
      const int source = __ffs(static_cast<int>(vote)) - 1;
      const std::uint32_t target = __shfl_sync(whole_warp, row_index, source);
      list_of(task, target).try_insert(__shfl_sync(whole_warp, entry, source));
    }
  }
}

}  // namespace

void launch_join_tiles(cudaStream_t stream, ElementType type, const JoinTask& task) {
  if (task.tile_count == 0) return;
  visit_element_type(type, [&](auto tag) {
    launch(join_tiles<decltype(tag)>, dim3(task.tile_count), dim3(threads), sizeof(TileMemory), stream, task);
  });
}

}  // namespace nearwise::gpu
