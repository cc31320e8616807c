// Every decision is a comparison of integers, and does not depend on the order in which kept rows are
// compared: the edges are those of the CPU.
#include "backend/cuda/kernels/graph/prune_edges.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/search_graph.h"
#include "backend/cuda/warp/code_distance.cuh"
#include "backend/cuda/warp/graph_beam.cuh"
#include "backend/cuda/warp/row_set.cuh"

namespace nearwise::gpu {
namespace {

constexpr std::uint32_t lanes = warp_lanes;
// As on the CPU: nearest candidates that are considered, and alpha^2 of the rounds, in hundredths.
constexpr std::uint32_t max_candidates = 256;
constexpr std::uint64_t denominator = 100;
constexpr std::uint32_t rounds = 3;
__device__ __forceinline__ std::uint64_t numerator_of(std::uint32_t round) {
  return round == 0 ? 100 : round == 1 ? 121 : 144;
}

// Slots of the set of rows that were offered; it is made anew, of the candidates, before it is full.
constexpr std::uint32_t set_slots = 1024;
constexpr std::uint32_t set_limit = set_slots / 4 * 3;
// Kept rows that a candidate is compared with before it is decided whether one covers it.
constexpr std::uint32_t compared_at_once = 8;

// The nearest candidates of a row, in order, in shared memory.
struct Candidates {
  std::uint32_t rows[max_candidates];
  std::uint32_t distances[max_candidates];
  std::uint32_t nearest_kept[max_candidates];  // distance to the nearest kept row
  std::uint32_t compared[max_candidates];      // kept rows that it was compared with; is_kept: it is one
};
constexpr std::uint32_t is_kept = UINT32_MAX;

// Dynamic shared memory of a warp: the row or candidate that is compared, then the set of rows and, once that
// is not needed any more, the candidates; at last new or kept rows.
static_assert(sizeof(Candidates) == set_slots * sizeof(std::uint32_t));
constexpr std::size_t query_bytes(const PruneTask& task) {
  return query_size<ByteCodes>(task.row_bytes) * sizeof(std::uint16_t);
}
constexpr std::size_t shared_bytes(const PruneTask& task) {
  const std::size_t bytes =
      query_bytes(task) + sizeof(Candidates) + std::max(lanes, task.degree) * sizeof(std::uint32_t);
  return (bytes + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
}

// Prunes one row by a warp.
class RowPruner {
 public:
  __device__ __forceinline__ RowPruner(const PruneTask& task, std::uint32_t number, std::uint32_t lane,
                                       std::byte* shared)
      : task_(task),
        number_(number),
        lane_(lane),
        elements_(reinterpret_cast<std::uint16_t*>(shared)),
        set_memory_(reinterpret_cast<std::uint32_t*>(shared + query_bytes(task))),
        candidates_(*reinterpret_cast<Candidates*>(shared + query_bytes(task))),
        rows_(reinterpret_cast<std::uint32_t*>(shared + query_bytes(task) + sizeof(Candidates))) {
    // Beyond a row there are no codes, but loads of its last threads.
    const auto size = static_cast<std::uint32_t>(query_size<ByteCodes>(task.row_bytes));
    for (std::uint32_t i = lane; i < size; i += lanes) elements_[i] = 0;
    __syncwarp();  // before others write the elements
  }

  __device__ __forceinline__ void run() {
    const std::uint32_t count = collect();
    const std::uint32_t kept =
        task_.keep_short_lists && count <= task_.degree ? keep_all(count) : choose(count);
    std::int32_t* const edges = task_.edges + std::size_t{number_} * task_.degree;
    std::uint32_t written = 0;
    for (std::uint32_t first = 0; first < count; first += lanes) {
      const std::uint32_t i = first + lane_;
      const bool keeps = i < count && candidates_.compared[i] == is_kept;
      const unsigned vote = __ballot_sync(whole_warp, keeps);
      if (keeps) edges[written + lower(vote)] = static_cast<std::int32_t>(candidates_.rows[i]);
      written += static_cast<std::uint32_t>(__popc(vote));
    }
    for (std::uint32_t i = kept + lane_; i < task_.degree; i += lanes) edges[i] = -1;
  }

 private:
  __device__ __forceinline__ std::uint32_t lower(unsigned vote) const {
    return static_cast<std::uint32_t>(__popc(vote & ((1U << lane_) - 1)));
  }

  // Makes a row what others are compared with. A __syncwarp() follows comparisons with the one before.
  __device__ __forceinline__ void load(std::uint32_t row) {
    const std::uint8_t* const code = task_.codes + std::size_t{row} * task_.row_bytes;
    std::uint32_t squares = 0;
    for (std::uint32_t i = lane_; i < task_.row_bytes; i += lanes) {
      const std::uint32_t element = __ldg(code + i);
      squares += element * element;
      elements_[byte_place(i)] = static_cast<std::uint16_t>(element + ByteCodes::shift);
    }
#pragma unroll
    for (int mask = warp_lanes / 2; mask > 0; mask /= 2)
      squares += __shfl_xor_sync(whole_warp, squares, mask);
    query_ = {reinterpret_cast<const uint4*>(elements_), squares};
    __syncwarp();  // acquires the elements of other lanes
  }

  __device__ __forceinline__ std::uint32_t distances(std::uint32_t row, std::uint32_t count) const {
    return code_distances<ByteCodes>(task_.codes, task_.row_bytes, query_, row, count, lane_);
  }

  // The nearest candidates, without repetitions and the row itself; returns their number.
  __device__ __forceinline__ std::uint32_t collect() {
    const std::uint32_t own = task_.rows[number_];
    const std::uint32_t end = task_.offsets[number_ + 1];
    load(own);
    RegisterBeam<max_candidates> nearest(max_candidates, lane_);
    RowSet set(set_memory_, set_slots);
    set.clear(lane_);
    std::uint32_t in_set = 0;
#pragma unroll 1
    for (std::uint32_t first = task_.offsets[number_]; first < end; first += lanes) {
      const std::uint32_t row = first + lane_ < end ? task_.candidates[first + lane_] : own;
      const bool is_new = row != own && set.insert(row);
      const unsigned vote = __ballot_sync(whole_warp, is_new);
      if (vote == 0) continue;
      const auto count = static_cast<std::uint32_t>(__popc(vote));
      if (is_new) rows_[lower(vote)] = row;
      __syncwarp();  // acquires the rows of other lanes
      const std::uint32_t compared = rows_[min(lane_, count - 1)];
      __syncwarp();  // the rows are not needed any more
      const std::uint32_t distance = distances(compared, count);
      nearest.offer(lane_ < count, BeamKey::make(distance, compared));
      in_set += count;
      if (in_set + lanes > set_limit) {
        // Rows that it forgets have been refused, and will be again.
        set.clear(lane_);
        nearest.for_each([&](std::uint32_t, const BeamKey& key) { set.insert(key.row()); });
        in_set = nearest.size();
        __syncwarp();  // all of them are in the set before others ask
      }
    }
    __syncwarp();  // the set is not needed any more
    nearest.for_each([&](std::uint32_t place, const BeamKey& key) {
      candidates_.rows[place] = key.row();
      candidates_.distances[place] = static_cast<std::uint32_t>(key.bits >> 32);
      candidates_.nearest_kept[place] = UINT32_MAX;
      candidates_.compared[place] = 0;
    });
    __syncwarp();  // acquires the candidates of other lanes
    return nearest.size();
  }

  __device__ __forceinline__ std::uint32_t keep_all(std::uint32_t count) {
    for (std::uint32_t i = lane_; i < count; i += lanes) candidates_.compared[i] = is_kept;
    __syncwarp();  // acquires the marks of other lanes
    return count;
  }

  // Marks the candidates that are kept; returns their number. All lanes do the same.
  __device__ __forceinline__ std::uint32_t choose(std::uint32_t count) {
    std::uint32_t kept = 0;
#pragma unroll 1
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint64_t numerator = numerator_of(round);
#pragma unroll 1
      for (std::uint32_t i = 0; i < count && kept < task_.degree; ++i) {
        std::uint32_t compared = candidates_.compared[i];
        if (compared == is_kept) continue;
        const std::uint64_t limit = denominator * candidates_.distances[i];
        std::uint32_t nearest = candidates_.nearest_kept[i];
        if (numerator * nearest <= limit) continue;
        if (compared < kept) load(candidates_.rows[i]);
        bool is_covered = false;
        while (!is_covered && compared < kept) {
          const std::uint32_t here = min(compared_at_once, kept - compared);
          std::uint32_t distance = distances(rows_[compared + min(lane_, here - 1)], here);
          if (lane_ >= here) distance = UINT32_MAX;
#pragma unroll
          for (int mask = compared_at_once / 2; mask > 0; mask /= 2)
            distance = min(distance, __shfl_xor_sync(whole_warp, distance, mask));
          nearest = min(nearest, __shfl_sync(whole_warp, distance, 0));
          compared += here;
          is_covered = numerator * nearest <= limit;
        }
        __syncwarp();  // all lanes have read what is written now
        if (lane_ == 0) {
          candidates_.nearest_kept[i] = nearest;
          candidates_.compared[i] = is_covered ? compared : is_kept;
          if (!is_covered) rows_[kept] = candidates_.rows[i];
        }
        if (!is_covered) ++kept;
        __syncwarp();  // acquires what lane 0 has written
      }
    }
    return kept;
  }

  const PruneTask& task_;
  const std::uint32_t number_;
  const std::uint32_t lane_;
  std::uint16_t* const elements_;  // of query_
  std::uint32_t* const set_memory_;
  Candidates& candidates_;
  std::uint32_t* const rows_;  // new candidates, then kept rows
  CodeQuery query_;
};

__global__ void __launch_bounds__(tuning::graph_warps* warp_lanes, tuning::graph_blocks)
    prune_edges(PruneTask task, std::uint32_t bytes) {
  const std::uint32_t warp = threadIdx.x / warp_lanes;
  const std::uint32_t number = blockIdx.x * (blockDim.x / warp_lanes) + warp;
  if (number >= task.count) return;
  RowPruner(task, number, threadIdx.x % warp_lanes,
            gpu::dynamic_shared<std::byte>() + std::size_t{warp} * bytes)
      .run();
}

}  // namespace

void launch_prune_edges(cudaStream_t stream, const PruneTask& task) {
  if (task.count == 0) return;
  const std::size_t bytes = shared_bytes(task);
  const unsigned warps = static_cast<unsigned>(
      std::clamp<std::size_t>(default_shared_bytes / bytes, 1, std::size_t{tuning::graph_warps}));
  launch(prune_edges, dim3((task.count + warps - 1) / warps), dim3(warps * warp_lanes), warps * bytes, stream,
         task, bytes);
}

}  // namespace nearwise::gpu
