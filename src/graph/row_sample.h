// A random sample of rows, copied to consecutive memory: one row from each of `count` equal parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/context_state.h"
#include "cluster/draw_rows.h"
#include "core/math/random.h"
#include "core/memory.h"
#include "nearwise/matrix.h"
#include "ops/gather_rows.h"

namespace nearwise::graph {

class RowSample {
 public:
  // count: at most the number of rows.
  RowSample(const Context& context, const RowsView& rows, std::size_t count, const Random& random)
      : numbers_(*context.state().budget, count) {
    for (std::size_t i = 0; i < count; ++i)
      numbers_[i] = static_cast<std::uint32_t>(draw(random, rows.rows(), count, i));
    gathered_ = GatheredRows(context, rows, numbers_.span());
  }

  // The row number of sample `index`.
  static std::size_t draw(const Random& random, std::size_t rows, std::size_t count, std::size_t index) {
    return cluster::draw_from_part(random, rows, count, index);
  }

  // Upper bound on the budget.
  static std::uint64_t bytes(const RowsView& rows, std::size_t count) {
    return count * (row_bytes_of(rows) + sizeof(std::uint32_t)) + 128;
  }

  const RowsView& view() const { return gathered_.view(); }
  std::uint32_t number(std::size_t index) const { return numbers_[index]; }

 private:
  Buffer<std::uint32_t> numbers_;
  GatheredRows gathered_;
};

}  // namespace nearwise::graph
