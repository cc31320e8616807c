// Results of a list search: writes candidates as they are, or re-ranks them by the distance to vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/device/device_buffer.h"
#include "backend/cuda/lists/list_tiles.h"
#include "backend/cuda/rows/pair_evaluator.h"
#include "backend/cuda/rows/row_selection.h"
#include "backend/ops.h"
#include "core/memory.h"

namespace nearwise::gpu {

// Writes a row's reconstruction as codec.type.
void write_list_row(const ListSearchArgs& args, const ListTiles::Place& place, std::byte* out);

// Shape of the evaluations of a search.
PairEvaluator::Shape evaluated_shape(const ListSearchArgs& args);

class ListResults {
 public:
  static std::uint64_t bytes(std::size_t queries, std::size_t candidates, std::size_t taken);

  // For up to `queries` queries at a time, which the evaluator has loaded.
  ListResults(const CudaStream& stream, const ListSearchArgs& args, PairEvaluator& evaluator,
              std::size_t queries);

  // Whether write() needs the places of candidates.
  bool needs_places() const { return args_.rerank.any() && !args_.rerank.by_id(); }
  // keys, ids and places [count, candidates], best first, then no_id; queries that are not `certified` are
  // skipped.
  void write(std::size_t first_query, std::span<const float> keys, std::span<const Id> ids,
             std::span<const ListTiles::Place> places, std::span<const bool> certified);

 private:
  void rerank(std::size_t first_query, std::span<const Id> ids, std::span<const ListTiles::Place> places,
              std::span<const bool> certified);
  void write_row(std::size_t query, std::span<const float> keys, std::span<const Id> ids);

  const CudaStream& stream_;
  const ListSearchArgs& args_;
  PairEvaluator& evaluator_;
  const std::size_t taken_;  // candidates kept by re-ranking
  const RowSelection selection_;
  DeviceBuffer<float> keys_;  // [queries, candidates]
  DeviceBuffer<Id> ids_;
  DeviceBuffer<float> best_keys_;  // [queries, taken]
  DeviceBuffer<Id> best_ids_;
  DeviceBuffer<std::byte> workspace_;
  Buffer<std::uint64_t> slots_;
  Buffer<std::uint32_t> row_indices_;
  Buffer<float> host_keys_;
  Buffer<Id> host_ids_;
};

}  // namespace nearwise::gpu
