#include "plan/ivf/index_shape.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "backend/context_state.h"
#include "ivf/defaults.h"
#include "ivf/ivf_state.h"
#include "ivf/memory_needs.h"
#include "ivf/storage/vector_store.h"
#include "quantize/codec.h"

namespace nearwise::plan {
namespace {

// Vectors per list to train on that no memory limit goes below.
constexpr std::size_t min_training_rows_per_list = 32;
// Working memory of a search for centroids, and small allocations.
constexpr std::uint64_t working_bytes = std::uint64_t{16} << 20;
// Fewer vectors are not worth a file; more would lose too much work in an interruption.
constexpr std::size_t min_block_rows = 4096;
constexpr std::size_t max_block_rows = 4'000'000;

std::uint64_t centroid_bytes(const RowsView& rows, const IvfOptions& settled) {
  return *settled.lists * rows.dim() * sizeof(float);
}

std::size_t code_bytes(const RowsView& rows, const IvfOptions& settled) {
  return quantize::code_bytes(settled.encoding, rows.dim(), rows.type());
}

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IvfOptions& settled) {
  return centroid_bytes(rows, settled) + ivf::training_bytes(context, rows, settled) + working_bytes;
}

// Of an added vector: its list; its code and id, both while encoding and in the list, where it is kept.
std::uint64_t bytes_of_added_row(const RowsView& rows, const IvfOptions& settled) {
  return sizeof(std::uint32_t) + 2 * code_bytes(rows, settled) + 2 * sizeof(Id) + vector_bytes(rows, settled);
}

// Of the vectors encoded at a time: residuals, codes and nearest lists.
std::uint64_t batch_bytes(std::size_t dim, std::size_t code_bytes) {
  return ivf::added_batch_rows * (dim * sizeof(float) + code_bytes + sizeof(Id) + sizeof(float));
}

// Of a training vector: itself, its widest packed form, and its norms. The same on every machine, unlike the
// need of a backend, which depends on threads and instruction set.
std::uint64_t bytes_of_training_row(const RowsView& rows) {
  return rows.dim() * (element_size(rows.type()) + sizeof(float)) + 64;
}

// Of a task that adds this many vectors.
std::uint64_t block_bytes(const RowsView& rows, const IvfOptions& settled, std::size_t block_rows) {
  return centroid_bytes(rows, settled) + batch_bytes(rows.dim(), code_bytes(rows, settled)) + working_bytes +
         block_rows * bytes_of_added_row(rows, settled);
}

std::uint64_t needed_bytes(const Context& context, const RowsView& rows, const IvfOptions& settled) {
  return context.state().budget->used() +
         std::max(training_bytes(context, rows, settled), block_bytes(rows, settled, min_block_rows));
}

IvfOptions settled_within(std::uint64_t limit, const RowsView& rows, const IvfOptions& options) {
  IvfOptions settled = ivf::resolve("plan_index", options, rows);
  const std::size_t lists = *settled.lists;
  const std::size_t fitting_per_list = limit / 2 / bytes_of_training_row(rows) / lists;
  settled.training_rows =
      std::min(*settled.training_rows, std::max(min_training_rows_per_list, fitting_per_list) * lists);
  return settled;
}

struct Settled {
  IvfOptions options;
  std::uint64_t limit = 0;
};

// The options within a limit that they keep: this one, or the next that suffices. With more memory there are
// more training vectors.
Settled settled_from(std::uint64_t limit, const Context& context, const RowsView& rows,
                     const IvfOptions& options) {
  Settled settled = {settled_within(limit, rows, options), limit};
  for (std::uint64_t needed = 0; (needed = needed_bytes(context, rows, settled.options)) > settled.limit;)
    settled = {settled_within(needed, rows, options), needed};
  return settled;
}

}  // namespace

std::size_t vector_bytes(const RowsView& rows, const IvfOptions& settled) {
  if (std::holds_alternative<Flat>(settled.encoding)) return 0;
  return ivf::VectorStore::bytes(settled.vectors, rows.type(), rows.dim());
}

IvfOptions settle(const Context& context, const RowsView& rows, const IvfOptions& options) {
  Settled settled = settled_from(context.memory_limit(), context, rows, options);
  if (settled.limit > context.memory_limit())
    refuse_limit("plan_index", context.memory_limit(), settled.limit);
  return std::move(settled.options);
}

std::uint64_t least_limit(const Context& context, const RowsView& rows, const IvfOptions& options) {
  return settled_from(0, context, rows, options).limit;
}

std::size_t block_rows(const Context& context, const RowsView& rows, const IvfOptions& settled) {
  const std::uint64_t fitting =
      (context.memory_limit() - block_bytes(rows, settled, 0)) / 2 / bytes_of_added_row(rows, settled);
  return std::min<std::uint64_t>(rows.rows(),
                                 std::clamp<std::uint64_t>(fitting, min_block_rows, max_block_rows));
}

}  // namespace nearwise::plan
