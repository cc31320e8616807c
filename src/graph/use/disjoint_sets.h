// Union-find over rows. The lowest row represents its set, so that the result does not depend on the order of
// unions. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/cancellable.h"

namespace nearwise::graph {

class DisjointSets {
 public:
  explicit DisjointSets(std::size_t rows) {
    CancellableSteps steps;
    parent_.reserve(rows);
    for (std::size_t row = 0; row < rows; ++row) {
      steps.add(1);
      parent_.push_back(static_cast<std::uint32_t>(row));
    }
  }

  // The lowest row of the set of `row`.
  std::uint32_t lowest(std::uint32_t row) {
    while (parent_[row] != row) row = parent_[row] = parent_[parent_[row]];
    return row;
  }

  void unite(std::uint32_t left, std::uint32_t right) {
    left = lowest(left);
    right = lowest(right);
    if (left > right) std::swap(left, right);
    parent_[right] = left;
  }

 private:
  std::vector<std::uint32_t> parent_;  // never above its row
};

}  // namespace nearwise::graph
