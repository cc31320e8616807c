// Clusters of bounded size, by the rounds of assign's definition: who asks whom is looked up among all
// centroids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// The centroid of every row, none with more than `most` rows.
inline std::vector<Candidate> balanced(RowsView rows, RowsView centroids, std::size_t most, Metric metric) {
  const std::size_t dim = rows.dim();
  const std::vector<double> own = to_doubles(rows);
  const std::vector<double> points = to_doubles(centroids);
  const auto point = [&](std::size_t c) {
    return std::vector<double>(&points[c * dim], &points[c * dim] + dim);
  };
  std::vector<Candidate> result(rows.rows());
  std::vector<std::size_t> sizes(centroids.rows(), 0);
  std::vector<std::size_t> waiting(rows.rows());
  for (std::size_t row = 0; row < rows.rows(); ++row) waiting[row] = row;
  for (bool first = true; !waiting.empty(); first = false) {
    std::map<std::size_t, std::vector<std::size_t>> asking;
    for (const std::size_t row : waiting) {
      result[row].id = -1;
      for (std::size_t c = 0; c < centroids.rows(); ++c) {
        if (sizes[c] >= most) continue;
        const Candidate candidate = {reported(metric, {own.data() + row * dim, dim}, point(c)),
                                     static_cast<Id>(c)};
        if (result[row].id < 0 || better(metric, candidate, result[row])) result[row] = candidate;
      }
      asking[static_cast<std::size_t>(result[row].id)].push_back(row);
    }
    waiting.clear();
    for (auto& [asked, crowd] : asking) {
      std::ranges::sort(crowd, [&](std::size_t left, std::size_t right) {
        const Candidate a = {result[left].value, static_cast<Id>(left)};
        const Candidate b = {result[right].value, static_cast<Id>(right)};
        return better(metric, a, b);
      });
      std::size_t taker = asked;
      for (const std::size_t row : crowd) {
        while (taker < centroids.rows() &&
               (sizes[taker] >= most || point(taker) != point(asked) || (first && taker != asked)))
          ++taker;
        if (taker == centroids.rows()) {
          waiting.push_back(row);
          continue;
        }
        ++sizes[taker];
        result[row].id = static_cast<Id>(taker);
      }
    }
  }
  return result;
}

}  // namespace nearwise::oracle
