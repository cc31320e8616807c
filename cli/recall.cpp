#include "cli/recall.h"

#include <algorithm>
#include <cmath>

#include "cli/shared/files.h"
#include "nearwise/types.h"

namespace nearwise::cli {
namespace {

// One query at one k.
struct Hits {
  std::size_t found = 0;     // of the true k nearest
  std::size_t possible = 0;  // at most k
  bool found_first = false;
};

// The true neighbours of one query at one k: `last` at the distance of the k-th, `nearer` before it; without
// distances all are in `nearer`. Reused between queries to save allocations.
struct Truth {
  std::vector<Id> nearer;
  std::vector<Id> last;
  Id first = no_id;
  float first_distance = NAN;  // NAN without distances: equals nothing
  float last_distance = NAN;
  std::vector<Id> seen;  // ids of the result counted so far
};

void sort_unique(std::vector<Id>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

bool contains(const std::vector<Id>& sorted, Id id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void read_truth(const Neighbors& neighbors, std::size_t query, std::size_t k, bool by_distance,
                Truth& truth) {
  truth.nearer.clear();
  truth.last.clear();
  truth.first = no_id;
  truth.first_distance = truth.last_distance = NAN;
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = neighbors.ids(query, rank);
    if (id == no_id) continue;
    if (by_distance) truth.last_distance = neighbors.distances(query, rank);
    if (truth.first == no_id) {
      truth.first = id;
      truth.first_distance = truth.last_distance;
    }
  }
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = neighbors.ids(query, rank);
    if (id == no_id) continue;
    const bool is_last = by_distance && neighbors.distances(query, rank) == truth.last_distance;
    (is_last ? truth.last : truth.nearer).push_back(id);
  }
  sort_unique(truth.nearer);
  sort_unique(truth.last);
}

Hits count_hits(const Neighbors& result, std::size_t query, std::size_t k, bool by_distance, Truth& truth) {
  Hits hits{.possible = truth.nearer.size() + truth.last.size()};
  std::size_t found_last = 0;
  truth.seen.clear();
  for (std::size_t rank = 0; rank < k; ++rank) {
    const Id id = result.ids(query, rank);
    if (id == no_id) continue;
    const auto place = std::lower_bound(truth.seen.begin(), truth.seen.end(), id);
    if (place != truth.seen.end() && *place == id) continue;
    truth.seen.insert(place, id);
    const float distance = by_distance ? result.distances(query, rank) : NAN;
    if (contains(truth.nearer, id))
      ++hits.found;
    else if (contains(truth.last, id) || distance == truth.last_distance)
      ++found_last;
    if (id == truth.first || distance == truth.first_distance) hits.found_first = true;
  }
  // Ties count up to the true number at that distance; they do not replace a nearer neighbour.
  hits.found += std::min(found_last, truth.last.size());
  return hits;
}

}  // namespace

std::vector<Recall> measure_recall(const Neighbors& result, const Neighbors& truth, std::size_t queries,
                                   std::span<const std::size_t> ks, std::size_t& measured) {
  const bool by_distance = has_distances(result) && has_distances(truth);
  Truth scratch;
  std::vector<Recall> recalls;
  for (const std::size_t k : ks) {
    Recall recall{.k = k};
    measured = 0;
    for (std::size_t query = 0; query < queries; ++query) {
      read_truth(truth, query, k, by_distance, scratch);
      const Hits hits = count_hits(result, query, k, by_distance, scratch);
      if (hits.possible == 0) continue;
      ++measured;
      recall.k_at_k += static_cast<double>(hits.found) / static_cast<double>(hits.possible);
      recall.one_at_k += hits.found_first ? 1 : 0;
    }
    if (measured > 0) {
      recall.k_at_k /= static_cast<double>(measured);
      recall.one_at_k /= static_cast<double>(measured);
    }
    recalls.push_back(recall);
  }
  return recalls;
}

}  // namespace nearwise::cli
