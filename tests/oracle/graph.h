// The definition of the graph of nearest neighbours, executed: the full sort of every row's distances to all
// others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// The k best rows other than the row itself, for every row; padding where there are fewer.
inline Answer knn_graph(RowsView base, std::size_t k, Metric metric) {
  const std::size_t dim = base.dim();
  const std::vector<double> values = to_doubles(base);
  const auto row_values = [&](std::size_t row) {
    return std::span<const double>(values.data() + row * dim, dim);
  };
  Answer answer{base.rows(), k, {}, {}};
  for (std::size_t row = 0; row < base.rows(); ++row) {
    std::vector<Candidate> others;
    for (std::size_t other = 0; other < base.rows(); ++other)
      if (other != row)
        others.push_back({reported(metric, row_values(row), row_values(other)), static_cast<Id>(other)});
    std::sort(others.begin(), others.end(),
              [&](const Candidate& left, const Candidate& right) { return better(metric, left, right); });
    for (std::size_t rank = 0; rank < k; ++rank) {
      const bool real = rank < others.size();
      answer.ids.push_back(real ? others[rank].id : no_id);
      answer.distances.push_back(real ? others[rank].value : worst_value(metric));
    }
  }
  return answer;
}

}  // namespace nearwise::oracle
