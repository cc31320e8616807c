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
constexpr std::uint32_t pairs_at_once = warp_lanes / sum_group;  // that a warp evaluates

// A pair that scores do not exclude: the row and the column in the tile, and whose list it may enter.
constexpr unsigned column_shift = 6;
constexpr unsigned to_row = 1U << 12;
constexpr unsigned to_column = 1U << 13;
static_assert(tile == 1 << column_shift);

// Rows or columns of a tile, in shared memory.
struct Members {
  std::uint32_t places[tile];
  float biases[tile];   // what they add to scores
  float cutoffs[tile];  // a score above it proves that a row has no place in the list
};

// The shared memory of a block.
struct TileMemory {
  float row_elements[element_count];
  float column_elements[element_count];
  Members rows;
  Members columns;
  unsigned found_count;
  std::uint16_t found[tile * tile];
};

__device__ __forceinline__ NeighborList list_of(const JoinTask& task, std::uint32_t place) {
  return {task.lists + std::size_t{place} * task.degree, task.degree, task.locks + place};
}

__device__ __forceinline__ float cutoff_of(const JoinTask& task, std::uint32_t place,
                                           const Lengths& lengths) {
  const NeighborEntry last = list_of(task, place).last();
  if (!task.scores_hold || last == empty_entry) return std::numeric_limits<float>::infinity();
  return task.bound.cutoff(lengths, task.longest, task.bound.limit_from_key(key_of(last)));
}

__device__ __forceinline__ void load_member(const JoinTask& task, std::uint32_t position, Members& members,
                                            std::uint32_t index) {
  const std::uint32_t place = task.members[position];
  const Lengths lengths = task.lengths[place];
  members.places[index] = place;
  members.biases[index] =
      is_euclidean(task.metric) ? static_cast<float>(lengths.norm * lengths.norm / 2) : 0.0F;
  members.cutoffs[index] = cutoff_of(task, place, lengths);
}

// A block per tile.
template <typename T>
__global__ void __launch_bounds__(threads, tuning::join_blocks) join_tiles(JoinTask task) {
  auto& [row_elements, column_elements, rows, columns, found_count, found] =
      *gpu::dynamic_shared<TileMemory>();
  const JoinTile of = task.tiles[blockIdx.x];
  if (of.rows == 0) return;
  if (threadIdx.x < of.rows) load_member(task, of.first_row + threadIdx.x, rows, threadIdx.x);
  if (threadIdx.x >= tile && threadIdx.x - tile < of.columns)
    load_member(task, of.first_column + threadIdx.x - tile, columns, threadIdx.x - tile);
  if (threadIdx.x == 0) found_count = 0;
  __syncthreads();  // members are there

  PairProducts products;
  products.add(task.packed, task.width, rows.places, of.rows, columns.places, of.columns, row_elements,
               column_elements);
#pragma unroll
  for (int i = 0; i < pairs_side; ++i)
#pragma unroll
    for (int j = 0; j < pairs_side; ++j) {
      const std::uint32_t row = PairProducts::row() + i * pair_side;
      const std::uint32_t column = PairProducts::column() + j * pair_side;
      if (row >= of.rows || column >= of.columns || of.first_column + column <= of.first_row + row) continue;
      // A score that is no number proves nothing.
      const float product = products.sums[i][j];
      unsigned pair = row | column << column_shift;
      if (!(columns.biases[column] - product > rows.cutoffs[row])) pair |= to_row;
      if (!(rows.biases[row] - product > columns.cutoffs[column])) pair |= to_column;
      if (pair >= to_row) found[atomicAdd(&found_count, 1U)] = static_cast<std::uint16_t>(pair);
    }
  __syncthreads();  // all pairs are found

  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const auto* const elements = reinterpret_cast<const T*>(task.rows);
  const std::uint32_t count = found_count;
  for (std::uint32_t first = threadIdx.x / warp_lanes * pairs_at_once; first < count;
       first += warps * pairs_at_once) {
    // All lanes of a warp meet in the sums: those without a pair look at the last one again.
    const unsigned pair = found[min(first + lane / sum_group, count - 1)];
    const std::uint32_t row = rows.places[pair % tile];
    const std::uint32_t column = columns.places[(pair >> column_shift) % tile];
    // Of either from the other: sums of the same numbers.
    const float key = pair_key(task.metric, elements + std::size_t{row} * task.dim,
                               elements + std::size_t{column} * task.dim, task.dim, lane % sum_group);
    // The first thread of a pair has the column for the row's list, the second the row for the column's.
    const bool of_row = lane % sum_group == 0;
    const std::uint32_t place = of_row ? row : column;
    const NeighborEntry entry = make_entry(key, of_row ? column : row, true);
    const bool offered = first + lane / sum_group < count && lane % sum_group < 2 &&
                         (pair & (of_row ? to_row : to_column)) != 0;
    const bool enters = offered && entry < list_of(task, place).last();
    for (unsigned vote = __ballot_sync(whole_warp, enters); vote != 0; vote &= vote - 1) {
      const int source = __ffs(static_cast<int>(vote)) - 1;
      const std::uint32_t its_place = __shfl_sync(whole_warp, place, source);
      list_of(task, its_place).offer(__shfl_sync(whole_warp, entry, source));
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
