// Recall of a result against the true neighbours.
//
//   k-recall@k  share of the true k nearest among the first k results, averaged over queries
//   1-recall@k  share of queries whose nearest neighbour is among the first k results
//
// An id counts once however often it is returned, no_id never. With distances on both sides, ties count: a
// result at the distance of the true k-th (1-recall: first) is as good as it, up to the number of true
// neighbours at that distance. A query with fewer than k true neighbours is measured against those it has;
// one with none is skipped.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nearwise/neighbors.h"

namespace nearwise::cli {

struct Recall {
  std::size_t k = 0;
  double k_at_k = 0;
  double one_at_k = 0;
};

// Of the first `queries` rows, for every k of ks; both sides must have as many. `measured` counts the queries
// that were not skipped.
std::vector<Recall> measure_recall(const Neighbors& result, const Neighbors& truth, std::size_t queries,
                                   std::span<const std::size_t> ks, std::size_t& measured);

}  // namespace nearwise::cli
