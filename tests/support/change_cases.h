// What tests of changed graphs share: numbers that force a way, and the rows that a removal keeps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "graph/change/change.h"
#include "support/graph_cases.h"

namespace nearwise::support {

// Partitions, however few rows are concerned.
inline graph::Tuning by_partitions(std::size_t degree) {
  graph::Tuning tuning = small_partitions(degree);
  tuning.list = degree;
  tuning.max_compared_rows = 0;
  return tuning;
}

// Rows that are concerned meet all others, however many they are.
inline graph::Tuning by_comparing(std::size_t degree) {
  graph::Tuning tuning = small_partitions(degree);
  tuning.list = degree;
  tuning.max_compared_rows = std::numeric_limits<std::size_t>::max();
  return tuning;
}

// Every step-th of so many numbers.
inline std::vector<Id> every(std::size_t count, std::size_t step) {
  std::vector<Id> numbers;
  for (std::size_t number = step - 1; number < count; number += step)
    numbers.push_back(static_cast<Id>(number));
  return numbers;
}

class Kept {
 public:
  Kept(RowsView rows, std::span<const Id> removed)
      : kept_(rows.rows() - removed.size(), rows.dim() * element_size(rows.type())),
        rows_(kept_.data(), rows.type(), kept_.rows(), rows.dim(), kept_.cols()) {
    std::size_t count = 0;
    for (std::size_t row = 0; row < rows.rows(); ++row)
      if (std::ranges::find(removed, static_cast<Id>(row)) == removed.end())
        std::memcpy(kept_.row(count++).data(), rows.row(row), kept_.cols());
  }

  RowsView rows() const { return rows_; }

 private:
  Matrix<std::byte> kept_;
  RowsView rows_;
};

}  // namespace nearwise::support
