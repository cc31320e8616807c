// The definition of the search within a radius, executed: every distance, compared as it is reported.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// Answers of query q are [offsets[q], offsets[q + 1]), best first.
struct RangeAnswer {
  std::vector<std::size_t> offsets;
  std::vector<Id> ids;
  std::vector<float> distances;
};

inline bool within(Metric metric, float value, float radius) {
  return metric == Metric::inner_product ? value >= radius : value <= radius;
}

inline RangeAnswer range(RowsView queries, RowsView base, float radius, Metric metric) {
  const std::size_t dim = queries.dim();
  const std::vector<double> query_values = to_doubles(queries);
  const std::vector<double> base_values = to_doubles(base);
  RangeAnswer answer{{0}, {}, {}};
  for (std::size_t query = 0; query < queries.rows(); ++query) {
    const std::span<const double> query_row(query_values.data() + query * dim, dim);
    std::vector<Candidate> inside;
    for (std::size_t row = 0; row < base.rows(); ++row) {
      const float value = reported(metric, query_row, {base_values.data() + row * dim, dim});
      if (within(metric, value, radius)) inside.push_back({value, static_cast<Id>(row)});
    }
    std::sort(inside.begin(), inside.end(),
              [&](const Candidate& left, const Candidate& right) { return better(metric, left, right); });
    for (const Candidate& candidate : inside) {
      answer.ids.push_back(candidate.id);
      answer.distances.push_back(candidate.value);
    }
    answer.offsets.push_back(answer.ids.size());
  }
  return answer;
}

// Of every row, the later rows within the threshold, ascending.
inline RangeAnswer pairs(RowsView rows, float threshold, Metric metric) {
  const std::size_t dim = rows.dim();
  const std::vector<double> values = to_doubles(rows);
  RangeAnswer answer{{0}, {}, {}};
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::size_t other = row + 1; other < rows.rows(); ++other) {
      const float value =
          reported(metric, {values.data() + row * dim, dim}, {values.data() + other * dim, dim});
      if (!within(metric, value, threshold)) continue;
      answer.ids.push_back(static_cast<Id>(other));
      answer.distances.push_back(value);
    }
    answer.offsets.push_back(answer.ids.size());
  }
  return answer;
}

}  // namespace nearwise::oracle
