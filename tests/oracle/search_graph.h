// Search graphs by definition: pruning of edges, and beam search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "nearwise/matrix.h"

namespace nearwise::oracle {

inline std::uint64_t code_distance(MatrixView<const std::uint8_t> codes, std::size_t left,
                                   std::size_t right) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < codes.cols(); ++i) {
    const int difference = int{codes(left, i)} - int{codes(right, i)};
    sum += static_cast<std::uint64_t>(difference * difference);
  }
  return sum;
}

// The edges of a row out of its candidates, in the order of their distances.
inline std::vector<std::int32_t> prune(MatrixView<const std::uint8_t> codes, std::size_t row,
                                       const std::set<std::uint32_t>& candidates, std::size_t degree,
                                       bool keep_short_lists) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
  for (const std::uint32_t other : candidates)
    if (other != row) sorted.emplace_back(code_distance(codes, row, other), other);
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() > 256) sorted.resize(256);
  std::set<std::size_t> kept;
  if (keep_short_lists && sorted.size() <= degree) {
    for (std::size_t i = 0; i < sorted.size(); ++i) kept.insert(i);
  } else {
    for (const std::uint64_t squared_alpha : {100, 121, 144})
      for (std::size_t i = 0; i < sorted.size() && kept.size() < degree; ++i) {
        const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](std::size_t other) {
          return squared_alpha * code_distance(codes, sorted[other].second, sorted[i].second) <=
                 100 * sorted[i].first;
        });
        if (!is_covered) kept.insert(i);
      }
  }
  std::vector<std::int32_t> edges;
  for (const std::size_t i : kept) edges.push_back(static_cast<std::int32_t>(sorted[i].second));
  return edges;
}

struct Traversal {
  std::vector<std::uint32_t> beam;  // nearest first
  std::set<std::uint32_t> seen;
};

// distance: of a row to the query. Two rows are expanded at a time.
template <typename Distance>
Traversal beam_search(MatrixView<const std::int32_t> edges, const std::vector<std::uint32_t>& seeds,
                      std::size_t width, const Distance& distance) {
  Traversal found;
  std::set<std::pair<std::uint64_t, std::uint32_t>> beam;
  std::set<std::uint32_t> expanded;
  const auto meet = [&](const std::vector<std::uint32_t>& rows) {
    for (const std::uint32_t row : rows) beam.emplace(distance(row), row);
    while (beam.size() > width) beam.erase(std::prev(beam.end()));
  };
  const auto fresh = [&](auto rows) {
    std::vector<std::uint32_t> unseen;
    for (const auto row : rows)
      if (row >= 0 && found.seen.insert(static_cast<std::uint32_t>(row)).second)
        unseen.push_back(static_cast<std::uint32_t>(row));
    return unseen;
  };
  meet(fresh(std::vector<std::int64_t>(seeds.begin(), seeds.end())));
  while (true) {
    std::vector<std::uint32_t> next;
    for (const auto& [key, row] : beam)
      if (next.size() < 2 && !expanded.contains(row)) next.push_back(row);
    if (next.empty()) break;
    std::vector<std::uint32_t> met;
    for (const std::uint32_t row : next) {
      expanded.insert(row);
      const std::vector<std::uint32_t> unseen =
          fresh(std::vector<std::int64_t>(edges.row(row).begin(), edges.row(row).end()));
      met.insert(met.end(), unseen.begin(), unseen.end());
    }
    meet(met);
  }
  for (const auto& [key, row] : beam) found.beam.push_back(row);
  return found;
}

}  // namespace nearwise::oracle
