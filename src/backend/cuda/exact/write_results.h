// Writes evaluated rows to the result matrices on the host.
#pragma once

#include <cstddef>
#include <span>

#include "backend/ops.h"
#include "core/distance.h"

namespace nearwise::gpu {

// keys and rows: [k], best first, then empty entries. Writes one result row.
inline void write_results(const FinishTopKArgs& args, Metric metric, std::size_t query,
                          std::span<const float> keys, std::span<const Id> rows) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool found = rows[i] != no_id;
    args.ids(query, i) = found ? args.id_offset + rows[i] : no_id;
    args.distances(query, i) = found ? distance_of_key(metric, keys[i]) : padding_distance(metric);
  }
}

}  // namespace nearwise::gpu
