// Some of the rows, one after the other: one drawn from each of equal parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backend/context_state.h"
#include "cluster/draw_rows.h"
#include "core/checked.h"
#include "core/memory.h"
#include "core/random.h"
#include "nearwise/matrix.h"

namespace nearwise::graph {

class RowSample {
 public:
  // count: at most the number of rows.
  RowSample(const Context& context, const RowsView& rows, std::size_t count, const Random& random)
      : numbers_(*context.state().budget, count),
        gathered_(*context.state().budget, checked_multiply(count, row_bytes(rows), "build_knn_graph")),
        view_(gathered_.data(), rows.type(), count, rows.dim(), row_bytes(rows)) {
    for (std::size_t i = 0; i < count; ++i) {
      numbers_[i] = static_cast<std::uint32_t>(cluster::draw_from_part(random, rows.rows(), count, i));
      std::memcpy(gathered_.data() + i * row_bytes(rows), rows.row(numbers_[i]), row_bytes(rows));
    }
  }

  static std::uint64_t bytes(const RowsView& rows, std::size_t count) {
    return count * (row_bytes(rows) + sizeof(std::uint32_t)) + 128;
  }

  const RowsView& view() const { return view_; }
  std::uint32_t number(std::size_t index) const { return numbers_[index]; }

 private:
  static std::size_t row_bytes(const RowsView& rows) { return rows.dim() * element_size(rows.type()); }

  Buffer<std::uint32_t> numbers_;
  Buffer<std::byte> gathered_;
  RowsView view_;
};

}  // namespace nearwise::graph
