#include "ops/merge_neighbors.h"

#include <vector>

#include "core/distance.h"

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

}  // namespace nearwise
