#include "backend/cuda/kernels/graph/draw_neighbors.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/join_groups.h"
#include "backend/cuda/warp/link_draw.cuh"
#include "core/neighbor_entry.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = tuning::draw_threads;
constexpr unsigned warps_per_block = threads / warp_lanes;  // a row each
constexpr std::uint32_t side = tuning::join_tile;

// The place of a lane among those that vote for themselves.
__device__ __forceinline__ std::uint32_t lanes_before(unsigned vote, std::uint32_t lane) {
  return static_cast<std::uint32_t>(__popc(vote & ((1U << lane) - 1)));
}

__global__ void __launch_bounds__(threads, tuning::draw_blocks) take_neighbors(DrawTask task) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t row = blockIdx.x * warps_per_block + threadIdx.x / warp_lanes;
  if (row >= task.rows) return;
  unsigned long long* const list = task.lists + std::size_t{row} * task.degree;
  std::uint32_t* const forward = task.forward + std::size_t{row} * task.taken;
  const auto link_at = [&](std::uint64_t i) {
    const auto entry = static_cast<NeighborEntry>(list[i]);
    return entry == empty_entry ? no_link : static_cast<std::uint32_t>(entry);
  };
  std::uint32_t count = 0;
#pragma unroll 1
  for (int kind = 0; kind < 2; ++kind) {
    const bool is_new = kind == 1;
    const LinkDraw draw(task.random, row, is_new, task.sample, task.degree, link_at);
    for (std::uint32_t first = 0; first < task.degree; first += warp_lanes) {
      const std::uint32_t i = first + lane;
      const std::uint32_t link = i < task.degree ? link_at(i) : no_link;
      const bool taken = draw.has(link);
      const unsigned vote = __ballot_sync(whole_warp, taken);
      if (taken) {
        forward[count + lanes_before(vote, lane)] = link;
        atomicAdd(task.ends + (link >> 1), 1ULL);
        if (is_new) list[i] = static_cast<unsigned long long>(as_old(static_cast<NeighborEntry>(list[i])));
      }
      count += static_cast<std::uint32_t>(__popc(vote));
    }
  }
  for (std::uint32_t i = count + lane; i < task.taken; i += warp_lanes) forward[i] = no_link;
}

__global__ void __launch_bounds__(threads) link_back(DrawTask task) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * task.taken) return;
  const std::uint32_t link = task.forward[number];
  if (link == no_link) return;
  const auto row = static_cast<std::uint32_t>(number / task.taken);
  task.backward[atomicAdd(task.ends + (link >> 1), 1ULL)] = row << 1 | (link & 1U);
}

// The members of a neighbourhood, put together by a warp.
class Neighborhood {
 public:
  __device__ __forceinline__ explicit Neighborhood(std::uint32_t* members) : members_(members) {}

  __device__ __forceinline__ std::uint32_t count() const { return count_; }

  // Adds what the lanes have, no two the same, where it is not there yet. By a whole warp.
  __device__ __forceinline__ void add(bool wanted, std::uint32_t number) {
    for (std::uint32_t i = 0; i < count_; ++i) wanted = wanted && members_[i] != number;
    const unsigned vote = __ballot_sync(whole_warp, wanted);
    if (wanted) members_[count_ + lanes_before(vote, threadIdx.x % warp_lanes)] = number;
    count_ += static_cast<std::uint32_t>(__popc(vote));
    __syncwarp();  // others compare with them
  }

 private:
  std::uint32_t* members_;
  std::uint32_t count_ = 0;
};

__global__ void __launch_bounds__(threads, tuning::draw_blocks)
    fill_neighborhoods(DrawTask task, NeighborhoodTask of) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t number = blockIdx.x * warps_per_block + threadIdx.x / warp_lanes;
  if (number >= of.count) return;
  const std::uint32_t row = of.first_row + number;
  const std::uint32_t most = 4 * task.sample;
  const std::uint32_t* const ahead = task.forward + std::size_t{row} * task.taken;
  const unsigned long long begin = row == 0 ? 0 : task.ends[row - 1];
  const unsigned long long behind_count = task.ends[row] - begin;
  const std::uint32_t* const behind = task.backward + begin;
  const auto link_at = [&](std::uint64_t i) { return behind[i]; };

  std::uint32_t* const members = gpu::dynamic_shared<std::uint32_t>() + threadIdx.x / warp_lanes * most;
  Neighborhood neighborhood(members);
  std::uint32_t new_count = 0;
#pragma unroll 1
  for (int kind = 0; kind < 2; ++kind) {
    const bool is_new = kind == 0;
    // Rows that link here are all different, and so are those ahead.
    const LinkDraw draw(task.random, row, is_new, task.sample, behind_count, link_at);
    for (unsigned long long first = 0; first < behind_count; first += warp_lanes) {
      const std::uint32_t link = first + lane < behind_count ? behind[first + lane] : no_link;
      neighborhood.add(draw.has(link), link >> 1);
    }
    for (std::uint32_t first = 0; first < task.taken; first += warp_lanes) {
      const std::uint32_t link = first + lane < task.taken ? ahead[first + lane] : no_link;
      neighborhood.add(is_kind(link, is_new), link >> 1);
    }
    if (is_new) new_count = neighborhood.count();
    if (new_count == 0) break;
  }
  const std::uint32_t count = new_count == 0 ? 0 : neighborhood.count();
  const std::uint32_t first_member = number * most;
  for (std::uint32_t i = lane; i < count; i += warp_lanes) of.members[first_member + i] = members[i];

  const std::uint32_t row_tiles = (2 * task.sample + side - 1) / side;
  const std::uint32_t column_tiles = (most + side - 1) / side;
  for (std::uint32_t i = lane; i < row_tiles * column_tiles; i += warp_lanes) {
    const std::uint32_t first_row = i / column_tiles * side;
    const std::uint32_t first_column = i % column_tiles * side;
    JoinTile tile;
    if (first_column >= first_row && first_row < new_count && first_column < count)
      tile = {first_member + first_row, first_member + first_column, min(side, new_count - first_row),
              min(side, count - first_column)};
    of.tiles[std::size_t{number} * row_tiles * column_tiles + i] = tile;
  }
}

unsigned blocks_for(std::size_t count, std::size_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

void launch_take_neighbors(cudaStream_t stream, const DrawTask& task) {
  launch(take_neighbors, dim3(blocks_for(task.rows, warps_per_block)), dim3(threads), 0, stream, task);
}

void launch_link_back(cudaStream_t stream, const DrawTask& task) {
  launch(link_back, dim3(blocks_for(std::size_t{task.rows} * task.taken, threads)), dim3(threads), 0, stream,
         task);
}

std::size_t tiles_per_neighborhood(std::size_t sample) {
  return (2 * sample + side - 1) / side * ((4 * sample + side - 1) / side);
}

void launch_fill_neighborhoods(cudaStream_t stream, const DrawTask& task, const NeighborhoodTask& of) {
  launch(fill_neighborhoods, dim3(blocks_for(of.count, warps_per_block)), dim3(threads),
         warps_per_block * 4 * task.sample * sizeof(std::uint32_t), stream, task, of);
}

}  // namespace nearwise::gpu
