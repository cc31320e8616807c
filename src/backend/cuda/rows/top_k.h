// What a search for the k best collects: for every query the rows of the best scores, a few more than k of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "backend/cuda/device/blas.h"
#include "backend/cuda/rows/best_lists.h"
#include "backend/cuda/rows/packed_rows.h"
#include "backend/cuda/tuning/exact_search.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/ops.h"
#include "core/score_bound.h"

namespace nearwise::gpu {

// k is limited by the positions of selection, which joins two lists.
inline constexpr std::size_t largest_k = std::size_t{1} << 29;

// Scores of a tile of queries and rows, and what selection from them needs.
struct ScoreTile {
  ScoreTile(const CudaStream& stream, std::size_t most_queries, std::size_t most_rows, std::size_t length)
      : queries(most_queries),
        rows(most_rows),
        scores(stream, queries * rows, exact_search),
        workspace(stream, BestLists::workspace_bytes(queries, rows, length), exact_search) {}

  std::size_t queries;
  std::size_t rows;
  DeviceBuffer<float> scores;
  DeviceBuffer<std::byte> workspace;
};

class TopK : public Collector {
 public:
  TopK(const CudaStream& stream, const TopKArgs& args)
      : queries(static_cast<const PackedRows&>(args.queries)),
        blas(stream, queries.encoding),
        query_rows(args.query_rows),
        k(args.k),
        metric(args.metric),
        bound(args.metric, products_of(queries.encoding), args.query_rows.dim()),
        scores(stream, queries.rows, length_for(args, queries.encoding), exact_search) {}

  // Scores of a search: k, and some to spare whose scores are too close to be told apart, more of them where numbers are
  // short. As many as the registers of selection hold anyway.
  static std::size_t list_length(std::size_t k, Encoding encoding) {
    const std::size_t needed = k + 8 + k / 64;
    const std::size_t wanted = encoding == Encoding::f32 ? needed : 2 * k + 22;
    for (const int capacity : tuning::select_capacities)
      if (wanted <= static_cast<std::size_t>(capacity)) return static_cast<std::size_t>(capacity);
    return std::max(needed, static_cast<std::size_t>(tuning::largest_select_capacity));
  }

  static std::uint64_t bytes_per_query(std::size_t k, Encoding encoding) {
    return list_length(k, encoding) * (sizeof(float) + sizeof(Id));
  }

  const PackedRows& queries;
  const Blas blas;
  const RowsView query_rows;
  const std::size_t k;
  const Metric metric;
  const ScoreBound bound;
  BestLists scores;
  RowsView base;                  // the rows that blocks are parts of
  std::size_t rows_shown = 0;     // in all blocks
  Lengths longest;                // no row of any block is longer
  std::optional<ScoreTile> tile;  // of the block that is being scanned

 private:
  // The nearest of a few rows: the two best scores, by a reduction.
  static std::size_t length_for(const TopKArgs& args, Encoding encoding) {
    const bool reduced = args.k == 1 && args.base_rows <= tuning::few_rows && encoding == Encoding::f32;
    return reduced ? tuning::most_reduced : list_length(args.k, encoding);
  }
};

// What finish_top_k needs at the least.
std::uint64_t finishing_bytes(const KnnCostsArgs& args, Encoding encoding);

}  // namespace nearwise::gpu
