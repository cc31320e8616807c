// The definition of selection, executed: a stable sort of every whole row, in doubles.
//
// Nothing here comes from src/, so that a mistake of the library cannot be repeated by what checks it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

#include "nearwise/matrix.h"
#include "nearwise/select_k.h"
#include "nearwise/types.h"

namespace nearwise::oracle {

struct SelectionAnswer {
  std::size_t rows = 0;
  std::size_t k = 0;
  std::vector<Id> ids;        // [rows, k]
  std::vector<float> values;  // [rows, k]
};

// id_of(row, column). Columns enter the sort in their order, so that a stable sort leaves equals there.
inline SelectionAnswer select_k(MatrixView<const float> values, std::size_t k, Order order,
                                const std::function<Id(std::size_t, std::size_t)>& id_of) {
  SelectionAnswer answer{values.rows(), k, {}, {}};
  for (std::size_t row = 0; row < values.rows(); ++row) {
    std::vector<std::size_t> columns(values.cols());
    for (std::size_t column = 0; column < columns.size(); ++column) columns[column] = column;
    std::stable_sort(columns.begin(), columns.end(), [&](std::size_t left, std::size_t right) {
      const double left_value = values(row, left);
      const double right_value = values(row, right);
      if (std::isnan(left_value) != std::isnan(right_value)) return std::isnan(right_value);
      if (!std::isnan(left_value) && left_value != right_value)
        return order == Order::smallest ? left_value < right_value : left_value > right_value;
      return id_of(row, left) < id_of(row, right);
    });
    const float infinity = std::numeric_limits<float>::infinity();
    for (std::size_t rank = 0; rank < k; ++rank) {
      const bool real = rank < columns.size();
      answer.ids.push_back(real ? id_of(row, columns[rank]) : no_id);
      answer.values.push_back(real                       ? values(row, columns[rank])
                              : order == Order::smallest ? infinity
                                                         : -infinity);
    }
  }
  return answer;
}

}  // namespace nearwise::oracle
