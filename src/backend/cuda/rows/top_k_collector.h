// State of an exact search: for every query the rows with the best scores, slightly more than k.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/rows/running_top_k.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/ops.h"
#include "core/math/score_bound.h"

namespace nearwise::gpu {

// Scores of a tile of queries and rows, and the workspace of selection.
struct ScoreTile {
  ScoreTile(const CudaStream& stream, std::size_t max_queries, std::size_t max_rows, std::size_t length)
      : queries(max_queries),
        rows(max_rows),
        scores(stream, queries * rows, exact_search),
        workspace(stream, RunningTopK::workspace_bytes(queries, rows, length), exact_search) {}

  std::size_t queries;
  std::size_t rows;
  DeviceBuffer<float> scores;
  DeviceBuffer<std::byte> workspace;
};

class TopKCollector : public Collector {
 public:
  TopKCollector(const CudaStream& stream, const TopKArgs& args)
      : queries(static_cast<const PackedRows&>(args.queries)),
        query_rows(args.query_rows),
        k(args.k),
        metric(args.metric),
        bound(args.metric, products_of(queries.encoding), args.query_rows.dim()),
        scores(stream, queries.rows, length_for(args, queries.encoding), exact_search) {}

  // Length of a score list: k plus spare entries for scores within the error bound, more for short encodings,
  // rounded up to the capacity of a warp queue.
  static std::size_t list_length(std::size_t k, Encoding encoding) {
    const std::size_t needed = k + 8 + k / 64;
    const std::size_t target = encoding == Encoding::f32 ? needed : 2 * k + 22;
    for (const int capacity : tuning::select_capacities)
      if (target <= static_cast<std::size_t>(capacity)) return static_cast<std::size_t>(capacity);
    return std::max(needed, static_cast<std::size_t>(tuning::max_select_capacity));
  }

  static std::uint64_t bytes_per_query(std::size_t k, Encoding encoding) {
    return list_length(k, encoding) * (sizeof(float) + sizeof(Id));
  }

  const PackedRows& queries;
  const RowsView query_rows;
  const std::size_t k;
  const Metric metric;
  const ScoreBound bound;
  RunningTopK scores;
  RowsView base;                  // the whole base
  std::size_t scanned_rows = 0;   // rows of all blocks so far
  Lengths longest;                // upper bound over all blocks
  std::optional<ScoreTile> tile;  // of the block being scanned

 private:
  // Nearest of a few rows: the two best scores by a reduction.
  static std::size_t length_for(const TopKArgs& args, Encoding encoding) {
    const bool by_reduction =
        args.k == 1 && args.base_rows <= tuning::max_reduced_rows && encoding == Encoding::f32;
    return by_reduction ? tuning::max_reduced_k : list_length(args.k, encoding);
  }
};

// Minimum working memory of finish_top_k.
std::uint64_t finishing_bytes(const KnnCostsArgs& args, Encoding encoding);

}  // namespace nearwise::gpu
