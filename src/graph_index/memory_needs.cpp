#include "graph_index/memory_needs.h"

#include <algorithm>

#include "backend/context_state.h"
#include "backend/graph_search.h"
#include "cluster/training.h"
#include "codes/scalar_codec.h"
#include "core/distance.h"
#include "graph/build/nn_descent.h"
#include "graph_index/edges/build_edges.h"
#include "graph_index/entry_tree.h"
#include "graph_index/graph_index_state.h"
#include "graph_index/train_codec.h"
#include "graph_index/update/compact_graph.h"
#include "ops/exact_knn.h"
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

// Of prune_edges(): on each thread the candidates of a row, up to `most`, and the codes of the kept ones.
std::uint64_t pruning_bytes(const Context& context, const GraphRows& rows, std::uint64_t most) {
  constexpr std::uint64_t candidate_bytes = 16;
  return static_cast<std::uint64_t>(context.threads()) *
         (most * candidate_bytes + rows.edges.cols() * rows.codec->row_bytes());
}

// On a device, codes and edges are copied there.
std::uint64_t copied_bytes(const Context& context, const GraphRows& rows, std::size_t count) {
  return context.place().kind == DeviceKind::cpu ? 0 : 2 * capacity_bytes(rows, count);
}

// Edges of removed rows, which rows with edges to them take over, of all rows.
std::uint64_t inherited_edges(const Context& context, const GraphRows& rows, const RowBits& live) {
  std::uint64_t removed = 0;
  for (std::size_t row = 0; row < rows.count(); ++row) {
    if (row % 4096 == 0) context.state().cancel.check();
    if (!live.contains(row)) continue;
    for (const std::int32_t target : rows.edges.row(row)) {
      if (target == no_edge) break;
      removed += live.contains(static_cast<std::size_t>(target)) ? 0 : 1;
    }
  }
  return removed * rows.edges.cols();
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

std::uint64_t capacity_bytes(const GraphRows& rows, std::size_t count) {
  const ScalarCodec& codec = *rows.codec;
  const bool are_codes = are_vectors_codes(codec, rows.vectors.type());
  return buffer_bytes(count, codec.row_bytes()) + buffer_bytes(count, codec.nibble_row_bytes()) +
         buffer_bytes(count, rows.edges.cols() * sizeof(std::int32_t)) +
         buffer_bytes(are_codes ? 0 : count, row_bytes_of(rows.vectors)) + buffer_bytes(count, sizeof(Id));
}

std::uint64_t inserting_bytes(const Context& context, const GraphRows& rows, std::size_t count,
                              std::size_t batch) {
  const ScalarCodec& codec = *rows.codec;
  const std::uint64_t degree = rows.edges.cols();
  const std::uint64_t near = degree / 2;  // new rows among the neighbours of one
  const RowsView codes(nullptr, ElementType::u8, batch, codec.code_dim(), codec.row_bytes());
  const std::uint64_t neighbors =
      batch * (degree + near + 1) * sizeof(Id) +
      std::max(batch * degree * result_bytes,
               batch * near * result_bytes +
                   least_knn_bytes(context, codes, codes, near + 1, Metric::sqeuclidean));
  const std::uint64_t lists = batch * (2 * degree + near + 1) * sizeof(std::int32_t);
  const std::uint64_t reversed =
      batch * (degree + 1) * (sizeof(std::uint64_t) + sizeof(std::uint32_t)) + batch;
  // Rows of the graph that new ones lead to, and the new ones.
  const std::uint64_t changed = std::min<std::uint64_t>(count, batch * (degree + 1)) + batch;
  return neighbors + lists + reversed +
         changed * ((degree + 1) * sizeof(std::int32_t) + sizeof(std::uint64_t)) +
         pruning_bytes(context, rows, batch + 2 * degree) + working_bytes + threads_bytes(context, count) +
         copied_bytes(context, rows, count);
}

std::uint64_t connecting_bytes(const Context& context, const GraphRows& rows, std::size_t count) {
  const RowsView codes(nullptr, ElementType::u8, count, rows.codec->code_dim(), rows.codec->row_bytes());
  const std::uint64_t reverse =
      2 * (count + 1) * sizeof(std::uint64_t) + count * rows.edges.cols() * sizeof(std::int32_t);
  return std::max(entry_tree_bytes(context, codes), connecting_bytes(count) + reverse) + working_bytes +
         threads_bytes(context, count) + copied_bytes(context, rows, count);
}

std::uint64_t compacting_bytes(const Context& context, const GraphRows& rows, const RowBits& live,
                               std::size_t added) {
  const std::size_t count = rows.count() + added;
  const std::uint64_t degree = rows.edges.cols();
  const std::uint64_t inherited =
      std::min(inherited_edges(context, rows, live), compacted_at_once * degree * degree) *
      sizeof(std::uint32_t);
  const std::uint64_t pruning = compacted_at_once * sizeof(std::uint64_t) + inherited +
                                pruning_bytes(context, rows, degree * (degree + 2));
  return 2 * count * sizeof(std::uint32_t) + std::max(pruning, connecting_bytes(context, rows, count));
}

}  // namespace nearwise::graph_index
