#include "quantize/training_rows.h"

#include <algorithm>
#include <cstring>

#include "backend/context_state.h"
#include "cluster/draw_rows.h"
#include "core/checked.h"
#include "core/math/random.h"

namespace nearwise::quantize {
namespace {

constexpr std::size_t task_rows = 4096;
// A random stream that k-means, which uses the same seed, does not use (cluster/random_streams.h).
constexpr std::uint64_t stream = 7;

bool takes_all(const RowsView& rows, std::size_t most) { return most == 0 || rows.rows() <= most; }

std::size_t row_bytes(const RowsView& rows) { return rows.dim() * element_size(rows.type()); }

}  // namespace

std::uint64_t TrainingRows::bytes(const RowsView& rows, std::size_t most) {
  return takes_all(rows, most) ? 0 : buffer_bytes(most, row_bytes(rows));
}

RowsView TrainingRows::shape(const RowsView& rows, std::size_t most) {
  if (takes_all(rows, most)) return rows;
  return {rows.data(), rows.type(), most, rows.dim(), row_bytes(rows)};
}

TrainingRows::TrainingRows(const Context& context, const RowsView& rows, std::size_t most) : view_(rows) {
  if (takes_all(rows, most)) return;
  const std::size_t bytes = row_bytes(rows);
  gathered_ = Buffer<std::byte>(*context.state().budget, checked_multiply(most, bytes, "training rows"));
  const Random random(context.seed(), stream);
  context.state().threads->for_each(divide_up(most, task_rows), [&](std::size_t task) {
    context.state().cancel.check();
    for (std::size_t i = task * task_rows; i < std::min(most, (task + 1) * task_rows); ++i) {
      const std::size_t row = cluster::draw_from_part(random, rows.rows(), most, i);
      std::memcpy(gathered_.data() + i * bytes, rows.row(row), bytes);
    }
  });
  view_ = {gathered_.data(), rows.type(), most, rows.dim(), bytes};
}

}  // namespace nearwise::quantize
