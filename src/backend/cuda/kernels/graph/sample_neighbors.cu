#include "backend/cuda/kernels/graph/sample_neighbors.h"

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/join_groups.h"
#include "backend/cuda/warp/link_sample.cuh"
#include "core/neighbor_entry.h"

namespace nearwise::gpu {
namespace {

constexpr unsigned threads = tuning::sample_threads;
constexpr unsigned warps_per_block = threads / warp_lanes;  // one row per warp
constexpr std::uint32_t side = tuning::join_tile;

// Number of lower lanes in a vote.
__device__ __forceinline__ std::uint32_t lower_lanes(unsigned vote, std::uint32_t lane) {
  return static_cast<std::uint32_t>(__popc(vote & ((1U << lane) - 1)));
}

__global__ void __launch_bounds__(threads, tuning::sample_blocks) sample_neighbors(SampleTask task) {
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
    const LinkSample sample(task.random, row, is_new, task.sample, task.degree, link_at);
    for (std::uint32_t first = 0; first < task.degree; first += warp_lanes) {
      const std::uint32_t i = first + lane;
      const std::uint32_t link = i < task.degree ? link_at(i) : no_link;
      const bool taken = sample.contains(link);
      const unsigned vote = __ballot_sync(whole_warp, taken);
      if (taken) {
        forward[count + lower_lanes(vote, lane)] = link;
        atomicAdd(task.ends + (link >> 1), 1ULL);
        if (is_new) list[i] = static_cast<unsigned long long>(as_old(static_cast<NeighborEntry>(list[i])));
      }
      count += static_cast<std::uint32_t>(__popc(vote));
    }
  }
  for (std::uint32_t i = count + lane; i < task.taken; i += warp_lanes) forward[i] = no_link;
}

__global__ void __launch_bounds__(threads) reverse_links(SampleTask task) {
  const std::size_t number = std::size_t{blockIdx.x} * threads + threadIdx.x;
  if (number >= std::size_t{task.rows} * task.taken) return;
  const std::uint32_t link = task.forward[number];
  if (link == no_link) return;
  const auto row = static_cast<std::uint32_t>(number / task.taken);
  task.backward[atomicAdd(task.ends + (link >> 1), 1ULL)] = row << 1 | (link & 1U);
}

// Members of a neighbourhood, collected by a warp.
class Neighborhood {
 public:
  __device__ __forceinline__ explicit Neighborhood(std::uint32_t* members) : members_(members) {}

  __device__ __forceinline__ std::uint32_t count() const { return count_; }

  // Adds the lanes' rows, which are distinct, unless already present. Called by a whole warp.
  __device__ __forceinline__ void add(bool is_candidate, std::uint32_t number) {
    for (std::uint32_t i = 0; i < count_; ++i) is_candidate = is_candidate && members_[i] != number;
    const unsigned vote = __ballot_sync(whole_warp, is_candidate);
    if (is_candidate) members_[count_ + lower_lanes(vote, threadIdx.x % warp_lanes)] = number;
    count_ += static_cast<std::uint32_t>(__popc(vote));
    __syncwarp();  // members visible to other lanes
  }

 private:
  std::uint32_t* members_;
  std::uint32_t count_ = 0;
};

__global__ void __launch_bounds__(threads, tuning::sample_blocks)
    gather_neighborhoods(SampleTask task, NeighborhoodTask batch) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t number = blockIdx.x * warps_per_block + threadIdx.x / warp_lanes;
  if (number >= batch.count) return;
  const std::uint32_t row = batch.first_row + number;
  const std::uint32_t capacity = 4 * task.sample;
  const std::uint32_t* const forward = task.forward + std::size_t{row} * task.taken;
  const unsigned long long begin = row == 0 ? 0 : task.ends[row - 1];
  const unsigned long long backward_count = task.ends[row] - begin;
  const std::uint32_t* const backward = task.backward + begin;
  const auto link_at = [&](std::uint64_t i) { return backward[i]; };

  std::uint32_t* const members = gpu::dynamic_shared<std::uint32_t>() + threadIdx.x / warp_lanes * capacity;
  Neighborhood neighborhood(members);
  std::uint32_t new_count = 0;
#pragma unroll 1
  for (int kind = 0; kind < 2; ++kind) {
    const bool is_new = kind == 0;
    // Reverse links are distinct, and so are forward links.
    const LinkSample sample(task.random, row, is_new, task.sample, backward_count, link_at);
    for (unsigned long long first = 0; first < backward_count; first += warp_lanes) {
      const std::uint32_t link = first + lane < backward_count ? backward[first + lane] : no_link;
      neighborhood.add(sample.contains(link), link >> 1);
    }
    for (std::uint32_t first = 0; first < task.taken; first += warp_lanes) {
      const std::uint32_t link = first + lane < task.taken ? forward[first + lane] : no_link;
      neighborhood.add(has_flag(link, is_new), link >> 1);
    }
    if (is_new) new_count = neighborhood.count();
    if (new_count == 0) break;
  }
  const std::uint32_t count = new_count == 0 ? 0 : neighborhood.count();
  const std::uint32_t first_member = number * capacity;
  for (std::uint32_t i = lane; i < count; i += warp_lanes) batch.members[first_member + i] = members[i];

  const std::uint32_t row_tiles = (2 * task.sample + side - 1) / side;
  const std::uint32_t column_tiles = (capacity + side - 1) / side;
  for (std::uint32_t i = lane; i < row_tiles * column_tiles; i += warp_lanes) {
    const std::uint32_t first_row = i / column_tiles * side;
    const std::uint32_t first_column = i % column_tiles * side;
    JoinTile tile;
    if (first_column >= first_row && first_row < new_count && first_column < count)
      tile = {first_member + first_row, first_member + first_column, min(side, new_count - first_row),
              min(side, count - first_column)};
    batch.tiles[std::size_t{number} * row_tiles * column_tiles + i] = tile;
  }
}

unsigned blocks_for(std::size_t count, std::size_t per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

void launch_sample_neighbors(cudaStream_t stream, const SampleTask& task) {
  launch(sample_neighbors, dim3(blocks_for(task.rows, warps_per_block)), dim3(threads), 0, stream, task);
}

void launch_reverse_links(cudaStream_t stream, const SampleTask& task) {
  launch(reverse_links, dim3(blocks_for(std::size_t{task.rows} * task.taken, threads)), dim3(threads), 0,
         stream, task);
}

std::size_t tiles_per_neighborhood(std::size_t sample) {
  return (2 * sample + side - 1) / side * ((4 * sample + side - 1) / side);
}

void launch_gather_neighborhoods(cudaStream_t stream, const SampleTask& task, const NeighborhoodTask& batch) {
  launch(gather_neighborhoods, dim3(blocks_for(batch.count, warps_per_block)), dim3(threads),
         warps_per_block * 4 * task.sample * sizeof(std::uint32_t), stream, task, batch);
}

}  // namespace nearwise::gpu
