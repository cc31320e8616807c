#include "graph_index/memory_needs.h"

#include <algorithm>

#include "backend/graph_search.h"
#include "cluster/training.h"
#include "codes/scalar_codec.h"
#include "core/distance.h"
#include "graph/build/nn_descent.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/train_codec.h"
#include "ops/gather_rows.h"

namespace nearwise::graph_index {
namespace {

// A search of few vectors, tables, and what threads hold while they prune.
constexpr std::uint64_t working_bytes = std::uint64_t{4} << 20;
constexpr std::uint64_t thread_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t result_bytes = sizeof(Id) + sizeof(float);

// Vectors of the sample: copies, exact neighbours of few and of many, and the results of a trial.
std::uint64_t calibration_bytes(const RowsView& rows, const GraphCalibrationOptions& options) {
  const std::size_t queries =
      options.queries.rows() != 0 ? options.queries.rows() : std::min(options.sample, rows.rows());
  return queries * (2 * row_bytes_of(rows) + 3 * (many_neighbors + 1) * result_bytes);
}

// Of one search: bits of seen rows, and the rows to clear.
std::uint64_t scratch_bytes(std::size_t rows) {
  return rows / 8 + std::min<std::uint64_t>(rows, 1 << 16) * sizeof(std::uint32_t);
}

std::uint64_t threads_bytes(const Context& context, std::size_t rows) {
  return static_cast<std::uint64_t>(context.threads()) *
         (thread_bytes + graph_searches_per_thread * scratch_bytes(rows));
}

}  // namespace

std::uint64_t entry_tree_bytes(const Context& context, const RowsView& codes) {
  const std::size_t leaves = EntryTree::leaf_count(codes.rows());
  const RowsView sample = codes.slice(0, EntryTree::training_rows(codes.rows()));
  return 2 * sample.rows() * codes.dim() + 2 * leaves * codes.dim() * sizeof(float) +
         sample.rows() * 2 * sizeof(std::uint32_t) + cluster::training_bytes(context, sample, leaves, {});
}

std::uint64_t calibrating_bytes(const Context& context, const RowsView& rows,
                                const GraphCalibrationOptions& calibration) {
  return calibration_bytes(rows, calibration) + working_bytes + threads_bytes(context, rows.rows());
}

std::uint64_t building_bytes(const Context& context, const RowsView& rows, const GraphIndexOptions& options,
                             const std::optional<GraphCalibrationOptions>& calibration,
                             std::optional<std::size_t> given_length) {
  const ScalarCodec codec = {.metric = options.metric, .dim = rows.dim()};
  const std::uint64_t count = rows.rows();
  const RowsView codes(nullptr, ElementType::u8, count, codec.code_dim(), codec.row_bytes());
  const std::uint64_t code_bytes = count * codec.row_bytes();
  const bool are_codes = rows.type() == ElementType::u8 && is_euclidean(options.metric);
  const std::uint64_t nibble_bytes = count >= min_nibble_rows ? count * codec.nibble_query_size() / 2 : 0;
  const std::uint64_t id_bytes = options.ids.empty() ? 0 : count * (sizeof(Id) + sizeof(std::uint32_t));
  const std::uint64_t kept =
      code_bytes + (are_codes ? 0 : count * row_bytes_of(rows)) + nibble_bytes + id_bytes;

  const std::size_t length = given_length.value_or(std::min<std::size_t>(options.degree, count - 1));
  const std::uint64_t lists = count * length * sizeof(std::int32_t);
  const std::uint64_t building =
      given_length || length == 0
          ? 0
          : count * length * result_bytes +
                graph::building_bytes(context, codes,
                                      {.degree = length, .target_recall = options.graph_recall});
  const std::uint64_t edges = count * options.degree * sizeof(std::int32_t);
  // On a device, codes are pruned, and searched with the edges, where they are copied to.
  const bool is_copied = context.place().kind != DeviceKind::cpu;
  const std::uint64_t pruned_copy = is_copied ? code_bytes : 0;
  const std::uint64_t searched_copy = is_copied ? code_bytes + nibble_bytes + edges : 0;
  const std::uint64_t reverse = (count + 1) * sizeof(std::uint64_t) + edges;
  const std::uint64_t pruning =
      lists + edges + reverse + pruned_copy + std::max<std::uint64_t>(edges, count * sizeof(std::uint64_t));
  const std::uint64_t entries = edges + entry_tree_bytes(context, codes);
  const std::uint64_t connecting = edges + connecting_bytes(count) + reverse + count * sizeof(std::uint64_t);
  const std::uint64_t calibrating =
      edges + searched_copy + (calibration ? calibration_bytes(rows, *calibration) : 0);
  return std::max(codec_training_bytes(rows, options.metric),
                  kept + std::max({lists + building, pruning, entries, connecting, calibrating})) +
         working_bytes + threads_bytes(context, count);
}

}  // namespace nearwise::graph_index
