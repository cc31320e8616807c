#include "plan/index/index_shape.h"

#include <algorithm>
#include <variant>

#include "index/defaults.h"
#include "index/ivf_state.h"
#include "index/memory_needs.h"
#include "index/storage/vector_store.h"
#include "ops/memory_limit.h"
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
  return centroid_bytes(rows, settled) + index::training_bytes(context, rows, settled) + working_bytes;
}

// Of an added vector: its list; its code and id, both while encoding and in the list, where it is kept.
std::uint64_t bytes_of_added_row(std::size_t code_bytes, std::size_t vector_bytes) {
  return sizeof(std::uint32_t) + 2 * code_bytes + 2 * sizeof(Id) + vector_bytes;
}

// Of the vectors encoded at a time: residuals, codes and nearest lists.
std::uint64_t batch_bytes(std::size_t dim, std::size_t code_bytes) {
  return index::added_batch_rows * (dim * sizeof(float) + code_bytes + sizeof(Id) + sizeof(float));
}

// Of a training vector: itself, its widest packed form, and its norms. The same on every machine, unlike the
// need of a backend, which depends on threads and instruction set.
std::uint64_t bytes_of_training_row(const RowsView& rows) {
  return rows.dim() * (element_size(rows.type()) + sizeof(float)) + 64;
}

}  // namespace

std::size_t vector_bytes(const RowsView& rows, const IvfOptions& settled) {
  if (std::holds_alternative<Flat>(settled.encoding)) return 0;
  return index::VectorStore::bytes(settled.vectors, rows.type(), rows.dim());
}

IvfOptions settle(const Context& context, const RowsView& rows, const IvfOptions& options) {
  IvfOptions settled = index::resolve("plan_index", options, rows);
  const std::size_t lists = *settled.lists;
  const std::size_t fitting_per_list = context.memory_limit() / 2 / bytes_of_training_row(rows) / lists;
  settled.training_rows =
      std::min(*settled.training_rows, std::max(min_training_rows_per_list, fitting_per_list) * lists);
  check_memory("plan_index", context, training_bytes(context, rows, settled));
  return settled;
}

std::size_t block_rows(const Context& context, const RowsView& rows, const IvfOptions& settled) {
  const std::size_t bytes = code_bytes(rows, settled);
  const std::uint64_t fixed = centroid_bytes(rows, settled) + batch_bytes(rows.dim(), bytes) + working_bytes;
  const std::uint64_t row = bytes_of_added_row(bytes, vector_bytes(rows, settled));
  check_memory("plan_index", context, fixed + min_block_rows * row);
  const std::uint64_t fitting = (context.memory_limit() - fixed) / 2 / row;
  return std::min<std::uint64_t>(rows.rows(),
                                 std::clamp<std::uint64_t>(fitting, min_block_rows, max_block_rows));
}

}  // namespace nearwise::plan
