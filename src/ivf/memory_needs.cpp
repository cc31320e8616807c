#include "ivf/memory_needs.h"

#include <algorithm>
#include <variant>

#include "cluster/centroid_search.h"
#include "cluster/training.h"
#include "codes/codeword_tables.h"
#include "core/memory.h"
#include "ivf/storage/vector_store.h"
#include "quantize/codec.h"
#include "quantize/training_rows.h"

namespace nearwise::ivf {
namespace {

// Of a dozen buffers.
constexpr std::uint64_t alignment_bytes = 1024;

std::uint64_t tables_bytes(std::size_t dim, const Encoding& encoding) {
  if (std::holds_alternative<Flat>(encoding)) return 0;
  const Lsq* const lsq = std::get_if<Lsq>(&encoding);
  return CodewordTables::bytes(dim, lsq != nullptr ? lsq->code_bytes : 0);
}

// The search for the nearest centroids of some rows, with its result.
std::uint64_t assignment_bytes(const Context& context, const RowsView& rows, std::size_t lists) {
  return rows.rows() * (sizeof(Id) + sizeof(float) + sizeof(std::uint32_t)) +
         cluster::CentroidSearch::min_bytes(
             context, {.rows = rows, .max_centroids = lists, .distances = true, .once = true});
}

}  // namespace

std::uint64_t training_bytes(const Context& context, const RowsView& rows, const IvfOptions& options) {
  const RowsView sample = quantize::TrainingRows::shape(rows, *options.training_rows);
  const std::uint64_t of_lists = quantize::TrainingRows::bytes(rows, *options.training_rows) +
                                 cluster::training_bytes(context, sample, *options.lists, {});
  const std::uint64_t of_codec = quantize::codec_training_bytes(context, rows, options.encoding);
  return std::max(of_lists, of_codec) + tables_bytes(rows.dim(), options.encoding);
}

std::uint64_t adding_bytes(const Context& context, const RowsView& rows, const IndexShape& shape) {
  const RowsView batch = rows.slice(0, std::min(rows.rows(), added_batch_rows));
  const std::uint64_t encoding =
      shape.is_flat ? 0
                    : batch.rows() * (shape.dim * sizeof(float) + 2 * shape.code_bytes + sizeof(Id)) +
                          shape.encode_bytes;
  return rows.rows() * (sizeof(std::uint32_t) + sizeof(Id) + (shape.is_flat ? 0 : shape.code_bytes)) +
         std::max(assignment_bytes(context, batch, shape.lists), encoding) + alignment_bytes;
}

std::uint64_t table_bytes(const IvfInternals::State& state, std::size_t more, Id next_id) {
  if (const index::IdTable* const table = state.table.load()) return table->reserved_bytes(more, next_id);
  const std::uint64_t made = index::IdTable::bytes(state.rows.rows(), state.next_id);
  const std::uint64_t grown = index::IdTable::bytes(state.rows.rows() + more, next_id);
  return made + (more == 0 ? 0 : std::max(grown, made + made / 2)) + alignment_bytes;
}

std::uint64_t building_bytes(const Context& context, const RowsView& rows, const IvfOptions& options,
                             const std::optional<CalibrationOptions>& calibration) {
  const std::size_t code_bytes = quantize::code_bytes(options.encoding, rows.dim(), rows.type());
  const bool is_flat = std::holds_alternative<Flat>(options.encoding);
  const std::uint64_t entry_bytes =
      code_bytes + sizeof(Id) + (is_flat ? 0 : VectorStore::bytes(options.vectors, rows.type(), rows.dim()));
  // Lists are as long as they need to be; each of their buffers is rounded up.
  const std::uint64_t lists = rows.rows() * entry_bytes + *options.lists * 3 * 64;
  const RowsView batch = rows.slice(0, std::min(rows.rows(), added_batch_rows));
  const std::uint64_t filling =
      rows.rows() * sizeof(std::uint32_t) +
      std::max(assignment_bytes(context, batch, *options.lists),
               is_flat ? 0 : batch.rows() * (rows.dim() * sizeof(float) + 3 * code_bytes + sizeof(Id)));
  const std::uint64_t calibrating = calibration ? calibration_bytes(rows, *calibration) : 0;
  return std::max(training_bytes(context, rows, options),
                  tables_bytes(rows.dim(), options.encoding) + lists + std::max(filling, calibrating));
}

}  // namespace nearwise::ivf
