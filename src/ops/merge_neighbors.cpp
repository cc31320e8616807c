#include "ops/merge_neighbors.h"

#include <vector>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/distance.h"
#include "ops/memory_limit.h"

namespace nearwise {

void merge_neighbors(const Threads& threads, Metric metric, std::span<const NeighborsView> parts,
                     MatrixView<Id> ids, MatrixView<float> distances) {
  threads.for_each(ids.rows(), [&](std::size_t query) {
    std::vector<std::size_t> next(parts.size(), 0);
    for (std::size_t i = 0; i < ids.cols(); ++i) {
      std::size_t best = parts.size();
      float best_key = 0;
      Id best_id = no_id;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        if (next[part] == parts[part].ids.cols()) continue;
        const Id id = parts[part].ids(query, next[part]);
        if (id == no_id) continue;
        const float key = sort_key(metric, parts[part].distances(query, next[part]));
        if (best == parts.size() || key < best_key || (key == best_key && id < best_id)) {
          best = part;
          best_key = key;
          best_id = id;
        }
      }
      ids(query, i) = best_id;
      distances(query, i) =
          best == parts.size() ? padding_distance(metric) : distance_of_key(metric, best_key);
      if (best != parts.size()) ++next[best];
    }
  });
}

Neighbors merge_neighbors(const Context& context, Metric metric, std::span<const NeighborsView> parts,
                          std::size_t k) {
  require(k >= 1, "merge_neighbors: k must be at least 1, got 0");
  require(!parts.empty(), "merge_neighbors: at least one part is needed, got none");
  const std::size_t queries = parts.front().ids.rows();
  for (const NeighborsView& part : parts) {
    const MatrixView<const Id>& ids = part.ids;
    const MatrixView<const float>& distances = part.distances;
    require(ids.rows() == distances.rows() && ids.cols() == distances.cols(),
            "merge_neighbors: ids and distances must have one shape, got [{}, {}] and [{}, {}]", ids.rows(),
            ids.cols(), distances.rows(), distances.cols());
    require(ids.rows() == queries, "merge_neighbors: all parts must have the same queries, got {} and {}",
            queries, ids.rows());
    require(ids.place() == Place{} && distances.place() == Place{},
            "merge_neighbors: the parts must be in host memory");
  }
  Context::State& state = context.state();
  state.cancel.check();
  constexpr const char* what = "merge_neighbors: the result's bytes";
  const std::uint64_t bytes =
      checked_multiply(checked_multiply(queries, k, what), sizeof(Id) + sizeof(float), what);
  check_memory("merge_neighbors", context, bytes);
  const Reservation reservation(*state.budget, bytes);
  Neighbors joined{Matrix<Id>(queries, k), Matrix<float>(queries, k)};
  merge_neighbors(*state.threads, metric, parts, joined.ids.view(), joined.distances.view());
  return joined;
}

}  // namespace nearwise
