// What a search for the k best collects: for every query the rows of the best scores, a few more than k of them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "backend/cuda/best_lists.h"
#include "backend/cuda/blas.h"
#include "backend/cuda/packed_rows.h"
#include "backend/cuda/tuning/selection.h"
#include "backend/ops.h"
#include "core/score_bound.h"

namespace nearwise::gpu {

// What a search uses beside its rows and lists, where it may.
inline constexpr std::uint64_t good_working_bytes = std::uint64_t{256} << 20;

class TopK : public Collector {
 public:
  TopK(const CudaStream& stream, const TopKArgs& args)
      : blas(stream),
        queries(static_cast<const PackedRows&>(args.queries)),
        query_rows(args.query_rows),
        k(args.k),
        metric(args.metric),
        bound(args.metric, Products::flushed_f32, args.query_rows.dim()),
        scores(stream, queries.rows, list_length(args.k), exact_search) {}

  // Scores of a search: k, and some to spare whose scores are too close to be told apart. As many as the registers of
  // selection hold anyway.
  static std::size_t list_length(std::size_t k) {
    const std::size_t needed = k + 8 + k / 64;
    for (const int capacity : tuning::select_capacities)
      if (needed <= static_cast<std::size_t>(capacity)) return static_cast<std::size_t>(capacity);
    return needed;
  }

  static std::uint64_t bytes_per_query(std::size_t k) {
    return list_length(k) * (sizeof(float) + sizeof(Id));
  }

  const Blas blas;
  const PackedRows& queries;
  const RowsView query_rows;
  const std::size_t k;
  const Metric metric;
  const ScoreBound bound;
  BestLists scores;
  RowsView base;               // the rows that blocks are parts of
  std::size_t rows_shown = 0;  // in all blocks
  Lengths longest;             // no row of any block is longer
};

// What finish_top_k needs at the least.
std::uint64_t finishing_bytes(const KnnCostsArgs& args);

}  // namespace nearwise::gpu
