// Recall of a result against the true neighbours.
//
//   k-recall@k  the share of the true k nearest found among the first k results, averaged over queries
//   1-recall@k  the share of queries whose nearest neighbour is among the first k results
//
// An id counts once however often it is returned, and no_id never. Where both sides carry distances, ties count:
// a result as far away as the true k-th (first, for 1-recall) is as good as it, up to the number of true neighbours
// at that distance. A query with fewer than k true
// neighbours is measured against those it has; one with none is left out.
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

// Of the first `queries` rows, for every k of ks; neither may exceed what both sides have. Queries left out are
// not counted in `measured`.
std::vector<Recall> measure_recall(const Neighbors& result, const Neighbors& truth, std::size_t queries,
                                   std::span<const std::size_t> ks, std::size_t& measured);

}  // namespace nearwise::cli
