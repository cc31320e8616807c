// The definition of joining groups, executed: every row's list is sorted from all rows that it has met.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "oracle/knn.h"

namespace nearwise::oracle {

// The first `new_count` of `members` are compared with each other, unless bipartite, and with all the others.
struct JoinGroup {
  std::vector<std::uint32_t> members;
  std::size_t new_count = 0;
  bool bipartite = false;
};

// The `degree` best rows that every row has met, by distance and then by place; order: the row at each place.
inline std::vector<std::vector<Candidate>> join(RowsView rows, std::span<const std::uint32_t> order,
                                                std::span<const JoinGroup> groups, std::size_t degree,
                                                Metric metric) {
  const std::vector<double> values = to_doubles(rows);
  const auto at = [&](std::size_t place) {
    return std::span<const double>(values.data() + order[place] * rows.dim(), rows.dim());
  };
  std::vector<std::set<std::uint32_t>> met(rows.rows());
  for (const JoinGroup& group : groups)
    for (std::size_t i = 0; i < group.members.size(); ++i)
      for (std::size_t j = group.bipartite ? std::max(i + 1, group.new_count) : i + 1;
           j < group.members.size() && i < group.new_count; ++j) {
        met[group.members[i]].insert(group.members[j]);
        met[group.members[j]].insert(group.members[i]);
      }
  std::vector<std::vector<Candidate>> lists(rows.rows());
  for (std::size_t place = 0; place < rows.rows(); ++place) {
    for (const std::uint32_t other : met[place])
      lists[place].push_back({reported(metric, at(place), at(other)), static_cast<Id>(other)});
    std::ranges::sort(lists[place], [&](const Candidate& left, const Candidate& right) {
      return better(metric, left, right);
    });
    lists[place].resize(std::min(degree, lists[place].size()));
  }
  return lists;
}

}  // namespace nearwise::oracle
