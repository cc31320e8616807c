// The algorithm is that of CAGRA (Ootomo et al., 2023): a beam in registers, and seen rows in a hash set in
// shared memory. The answers are those of the CPU: which rows a beam holds does not depend on the order in
// which they are offered, but for rows that are offered twice. When the set is full it is made anew of the
// rows that the beams hold. Rows that it forgets thereby have left the beam, or never entered it: offered
// again, they are refused, because the worst entry of a full beam only becomes better.
#include "backend/cuda/kernels/graph/search_graph.h"

#include <algorithm>
#include <bit>

#include "backend/cuda/device/gpu.h"
#include "backend/cuda/tuning/search_graph.h"
#include "backend/cuda/warp/code_distance.cuh"
#include "backend/cuda/warp/graph_beam.cuh"
#include "backend/cuda/warp/row_set.cuh"

namespace nearwise::gpu {
namespace {

// As on the CPU: groups of entries whose leaves are compared, leaves that a search begins with, and rows of
// the beam that are expanded at once.
constexpr std::uint32_t top_probes = 4;
constexpr std::uint32_t seeds = 4;
constexpr std::uint32_t expanded_at_once = 2;

constexpr std::uint32_t lanes = warp_lanes;

constexpr std::uint32_t byte_query_size(const GraphArrays& graph) {
  return static_cast<std::uint32_t>(query_size<ByteCodes>(graph.code_bytes));
}
constexpr std::uint32_t all_query_size(const GraphArrays& graph) {
  return byte_query_size(graph) + static_cast<std::uint32_t>(query_size<NibbleCodes>(graph.nibble_bytes));
}

// Rows of a step.
constexpr std::uint32_t step_rows(const GraphArrays& graph) {
  return std::max(seeds, expanded_at_once * graph.degree);
}

// Rows that the set of seen rows must hold when it is made anew.
constexpr std::size_t kept_rows(const GraphSearchTask& task) {
  return 1 + std::size_t{task.beam} + (task.allowed != nullptr ? task.evaluated : 0) +
         2 * std::size_t{step_rows(task.graph)};
}

constexpr std::size_t seen_slots(const GraphSearchTask& task) {
  const std::size_t least = std::bit_ceil(2 * kept_rows(task));
  const std::size_t useful = std::bit_ceil(tuning::seen_slots_per_entry * task.beam);
  return std::max(least, std::min(useful, tuning::max_shared_slots));
}

constexpr bool is_in_registers(const GraphSearchTask& task) {
  return task.beam <= tuning::max_register_beam && seen_slots(task) <= tuning::max_shared_slots;
}

// Dynamic shared memory of a warp: its query, the rows of a step, and the set of seen rows.
constexpr std::size_t shared_bytes(const GraphSearchTask& task) {
  const std::size_t slots = is_in_registers(task) ? seen_slots(task) : 0;
  const std::size_t bytes = all_query_size(task.graph) * sizeof(std::uint16_t) +
                            (step_rows(task.graph) + slots) * sizeof(std::uint32_t);
  return (bytes + sizeof(uint4) - 1) / sizeof(uint4) * sizeof(uint4);
}

// One search by a warp.
template <class Beam>
class GraphSearcher {
 public:
  __device__ __forceinline__ GraphSearcher(const GraphSearchTask& task, std::uint32_t number,
                                           std::uint32_t lane, std::byte* shared, std::uint32_t slots,
                                           const Beam& beam)
      : task_(task),
        graph_(task.graph),
        number_(number),
        lane_(lane),
        byte_query_{reinterpret_cast<const uint4*>(shared), task.query_squares[2 * number]},
        nibble_query_{byte_query_.pieces + byte_query_size(task.graph) / piece_codes,
                      task.query_squares[2 * number + 1]},
        rows_(reinterpret_cast<std::uint32_t*>(shared + all_query_size(task.graph) * sizeof(std::uint16_t))),
        seen_(
            task.slots != nullptr ? task.slots + std::size_t{number} * slots : rows_ + step_rows(task.graph),
            slots),
        seen_limit_(slots / 4 * 3),
        beam_(beam),
        found_(task.evaluated, lane, memory_of(task.found, task.evaluated)) {
    auto* const pieces = reinterpret_cast<uint4*>(shared);
    const std::uint32_t count = all_query_size(graph_) / piece_codes;
    const auto* const given = reinterpret_cast<const uint4*>(task.query_codes) + std::size_t{number} * count;
    for (std::uint32_t i = lane; i < count; i += warp_lanes) pieces[i] = given[i];
    forget();
  }

  __device__ __forceinline__ void run() {
    for (std::uint32_t count = begin();;) {
      compare(count);
      __syncwarp();  // the rows of the step are consumed
      if (seen_count_ + step_rows(graph_) > seen_limit_) forget();
      count = 0;
      bool expands = false;
#pragma unroll 1
      for (std::uint32_t i = 0; i < expanded_at_once; ++i) {
        std::uint32_t row = 0;
        if (!beam_.expand(row)) break;
        expands = true;
        count = gather(row, count);
      }
      if (!expands) break;
      seen_count_ += count;
      __syncwarp();  // acquires the rows of other lanes
    }
    write();
  }

 private:
  __device__ __forceinline__ BeamKey* memory_of(std::int64_t* all, std::uint32_t each) const {
    return reinterpret_cast<BeamKey*>(all) + std::size_t{number_} * each;
  }

  __device__ __forceinline__ bool is_allowed(std::uint32_t row) const {
    const std::size_t bit = std::size_t{task_.first_bit} + row;
    return (task_.allowed[bit / 64] >> (bit % 64) & 1U) != 0;
  }

  // The rows that the beams hold remain in the set, and the absent one.
  __device__ __forceinline__ void forget() {
    seen_.clear(lane_);
    if (task_.absent != nullptr && lane_ == 0) seen_.insert(task_.absent[number_]);
    const auto keep = [&](std::uint32_t, const BeamKey& key) { seen_.insert(key.row()); };
    beam_.for_each(keep);
    found_.for_each(keep);
    seen_count_ = 1 + beam_.size() + found_.size();
    __syncwarp();  // all of them are in the set before others ask
  }

  // Puts rows that were not seen, one of each lane, behind the first `count` of the step.
  __device__ __forceinline__ std::uint32_t append(bool is_new, std::uint32_t row, std::uint32_t count) {
    const unsigned vote = __ballot_sync(whole_warp, is_new);
    const auto before = static_cast<std::uint32_t>(__popc(vote & ((1U << lane_) - 1)));
    if (is_new) rows_[count + before] = row;
    return count + static_cast<std::uint32_t>(__popc(vote));
  }

  __device__ __forceinline__ std::uint32_t gather(std::uint32_t row, std::uint32_t count) {
    const std::int32_t* const list = graph_.edges + std::size_t{row} * graph_.degree;
    for (std::uint32_t first = 0; first < graph_.degree; first += warp_lanes) {
      const std::int32_t edge = first + lane_ < graph_.degree ? __ldg(list + first + lane_) : -1;
      const bool is_new = edge >= 0 && seen_.insert(static_cast<std::uint32_t>(edge));
      count = append(is_new, static_cast<std::uint32_t>(edge), count);
    }
    return count;
  }

  // The best of the rows [first, end) of `codes`, offered to `best` by their numbers.
  __device__ __forceinline__ void offer_all(const std::uint8_t* codes, std::uint32_t first, std::uint32_t end,
                                            RegisterBeam<warp_lanes>& best) const {
    for (; first < end; first += warp_lanes) {
      const std::uint32_t row = first + lane_;
      const std::uint32_t distance = code_distances<ByteCodes>(codes, graph_.code_bytes, byte_query_, row,
                                                               min(lanes, end - first), lane_);
      best.offer(row < end, BeamKey::make(distance, row));
    }
  }

  // The rows of the nearest leaves of the entry tree are those of the first step; returns their number.
  __device__ __forceinline__ std::uint32_t begin() {
    RegisterBeam<warp_lanes> tops(top_probes, lane_);
    offer_all(graph_.top_codes, 0, graph_.tops, tops);
    RegisterBeam<warp_lanes> leaves(seeds, lane_);
    for (std::uint32_t top = 0; tops.expand(top);)
      offer_all(graph_.leaf_codes, top == 0 ? 0 : graph_.ends[top - 1], graph_.ends[top], leaves);
    std::uint32_t count = 0;
    for (std::uint32_t leaf = 0; leaves.expand(leaf);) {
      const std::uint32_t row = graph_.leaf_rows[leaf];
      count = append(lane_ == 0 && seen_.insert(row), row, count);
    }
    seen_count_ += count;
    __syncwarp();  // acquires the first rows
    return count;
  }

  __device__ __forceinline__ void compare(std::uint32_t count) {
#pragma unroll 1
    for (std::uint32_t first = 0; first < count; first += warp_lanes) {
      const std::uint32_t here = min(lanes, count - first);
      const std::uint32_t row = rows_[first + min(lane_, here - 1)];
      const std::uint32_t distance =
          graph_.nibble_bytes != 0
              ? code_distances<NibbleCodes>(graph_.nibbles, graph_.nibble_bytes, nibble_query_, row, here,
                                            lane_)
              : code_distances<ByteCodes>(graph_.codes, graph_.code_bytes, byte_query_, row, here, lane_);
      const BeamKey key = BeamKey::make(distance, row);
      beam_.offer(lane_ < here, key);
      if (task_.allowed != nullptr) found_.offer(lane_ < here && is_allowed(row), key);
    }
  }

  __device__ __forceinline__ void write() {
    if (task_.is_starved != nullptr) {
      std::uint32_t allowed = 0;
      beam_.for_each([&](std::uint32_t, const BeamKey& key) {
        allowed += task_.allowed == nullptr || is_allowed(key.row()) ? 1 : 0;
      });
#pragma unroll
      for (int mask = warp_lanes / 2; mask > 0; mask /= 2)
        allowed += __shfl_xor_sync(whole_warp, allowed, mask);
      if (lane_ == 0) task_.is_starved[number_] = allowed < task_.k ? 1 : 0;
    }
    if (graph_.nibble_bytes != 0) {
      MemoryBeam ranked(task_.evaluated, lane_, memory_of(task_.ranked, task_.evaluated));
      rank_by_bytes(ranked);
      write(ranked);
    } else if (task_.allowed != nullptr) {
      write(found_);
    } else {
      write(beam_);
    }
  }

  // The best of the found rows by all 8 bits.
  __device__ __forceinline__ void rank_by_bytes(MemoryBeam& ranked) {
    const bool is_filtered = task_.allowed != nullptr;
    BeamKey* const entries =
        is_filtered ? memory_of(task_.found, task_.evaluated) : memory_of(task_.beams, task_.beam);
    if (!is_filtered) {
      beam_.for_each([&](std::uint32_t place, const BeamKey& key) { entries[place].bits = key.bits; });
      __syncwarp();  // acquires the entries of other lanes
    }
    const std::uint32_t count = is_filtered ? found_.size() : beam_.size();
#pragma unroll 1
    for (std::uint32_t first = 0; first < count; first += warp_lanes) {
      const std::uint32_t here = min(lanes, count - first);
      const std::uint32_t row = BeamKey{entries[first + min(lane_, here - 1)].bits}.row();
      const std::uint32_t distance =
          code_distances<ByteCodes>(graph_.codes, graph_.code_bytes, byte_query_, row, here, lane_);
      ranked.offer(lane_ < here, BeamKey::make(distance, row));
    }
  }

  template <class Found>
  __device__ __forceinline__ void write(const Found& found) const {
    std::uint32_t* const rows = task_.rows + std::size_t{number_} * task_.evaluated;
    found.for_each([&](std::uint32_t place, const BeamKey& key) {
      if (place < task_.evaluated) rows[place] = key.row();
    });
    for (std::uint32_t place = found.size() + lane_; place < task_.evaluated; place += warp_lanes)
      rows[place] = no_graph_row;
  }

  const GraphSearchTask& task_;
  const GraphArrays& graph_;
  const std::uint32_t number_;
  const std::uint32_t lane_;
  const CodeQuery byte_query_;
  const CodeQuery nibble_query_;
  std::uint32_t* const rows_;
  RowSet seen_;
  const std::uint32_t seen_limit_;
  std::uint32_t seen_count_ = 0;  // at least the rows of the set
  Beam beam_;
  MemoryBeam found_;  // allowed rows, under a filter
};

// Capacity: of a beam in registers; 0: in memory.
template <int Capacity>
__global__ void __launch_bounds__(tuning::graph_warps* warp_lanes, tuning::graph_blocks)
    search_graph(GraphSearchTask task, std::uint32_t bytes, std::uint32_t slots) {
  const std::uint32_t lane = threadIdx.x % warp_lanes;
  const std::uint32_t warp = threadIdx.x / warp_lanes;
  const std::uint32_t number = blockIdx.x * (blockDim.x / warp_lanes) + warp;
  if (number >= task.queries) return;
  std::byte* const shared = gpu::dynamic_shared<std::byte>() + std::size_t{warp} * bytes;
  if constexpr (Capacity == 0) {
    auto* const entries = reinterpret_cast<BeamKey*>(task.beams) + std::size_t{number} * task.beam;
    GraphSearcher<MemoryBeam>(task, number, lane, shared, slots, MemoryBeam(task.beam, lane, entries)).run();
  } else {
    GraphSearcher<RegisterBeam<Capacity>>(task, number, lane, shared, slots,
                                          RegisterBeam<Capacity>(task.beam, lane))
        .run();
  }
}

}  // namespace

GraphSearchMemory graph_search_memory(const GraphSearchTask& task) {
  const bool is_filtered = task.allowed != nullptr;
  const bool is_ranked = task.graph.nibble_bytes != 0;
  const bool in_registers = is_in_registers(task);
  return {.beams = !in_registers || (is_ranked && !is_filtered) ? task.beam : 0U,
          .found = is_filtered ? task.evaluated : 0U,
          .ranked = is_ranked ? task.evaluated : 0U,
          .slots = in_registers ? 0 : seen_slots(task)};
}

void launch_search_graph(cudaStream_t stream, const GraphSearchTask& task) {
  if (task.queries == 0) return;
  const std::size_t bytes = shared_bytes(task);
  const unsigned warps = static_cast<unsigned>(
      std::clamp<std::size_t>(default_shared_bytes / bytes, 1, std::size_t{tuning::graph_warps}));
  const auto run = [&](auto kernel) {
    launch(kernel, dim3((task.queries + warps - 1) / warps), dim3(warps * warp_lanes), warps * bytes, stream,
           task, bytes, seen_slots(task));
  };
  static_assert(tuning::max_register_beam == 256);
  if (!is_in_registers(task))
    run(search_graph<0>);
  else if (task.beam <= 64)
    run(search_graph<64>);
  else if (task.beam <= 128)
    run(search_graph<128>);
  else
    run(search_graph<256>);
}

}  // namespace nearwise::gpu
