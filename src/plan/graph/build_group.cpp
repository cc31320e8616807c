// build: compares rows within the partitions of a group, batch by batch, followed by NN-Descent if the
// partitions alone do not reach the target recall. A row may be in several batches and groups; merge keeps
// the best of its neighbours.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "backend/stages.h"
#include "graph/recall_sample.h"
#include "io/container/container_writer.h"
#include "plan/graph/group_rows.h"
#include "plan/partition/trained_partitions.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/write_rows.h"

namespace nearwise::plan {
namespace {

// Share of the recall slack (1 - target) that a group may use; the rest covers neighbours in other groups.
constexpr double group_slack = 0.7;

// NN-Descent iterations until the target is reached or an iteration closes less than a tenth of the gap.
void run_nn_descent(const Context& context, const RowsView& rows, const GraphWork& work,
                    std::size_t nearest_rows, graph::Builder& builder) {
  if (nearest_rows == 0 || rows.rows() < 2) return;
  const graph::Tuning& tuning = work.shape.tuning;
  const double target = 1 - group_slack * (1 - work.options.target_recall);
  const graph::RecallSample sample(context.without_progress(), rows, work.options.degree, work.options.metric,
                                   tuning.measured, nearest_rows);
  double before = builder.recall(sample).value;
  for (std::size_t round = 0; round < tuning.rounds && before < target; ++round) {
    builder.descend(context);
    const double now = builder.recall(sample).value;
    if (now - before < (target - before) / 10) return;
    before = now;
  }
}

// Writes the batch sorted by row number.
void write(const Context& context, ContainerWriter& writer, std::size_t batch, const GroupRows& group,
           const Neighbors& found) {
  const std::size_t degree = found.ids.cols();
  const auto section = [&](std::string_view name, container::Element element, std::size_t columns,
                           const auto& make) {
    writer.begin_section(fmt::format("{}_{}", name, batch), element, {.columns = columns});
    write_rows(context, writer, group.rows().size(), columns * container::element_bytes(element),
               [&](std::size_t i, std::byte* out) { make(group.by_row()[i], out); });
  };
  section("rows", container::Element::u32, 1, [&](std::uint32_t place, std::byte* out) {
    std::memcpy(out, &group.rows()[place], sizeof(std::uint32_t));
  });
  section("ids", container::Element::u32, degree, [&](std::uint32_t place, std::byte* out) {
    for (const Id id : found.ids.row(place)) {
      const std::uint32_t row = id == no_id ? no_row : group.rows()[static_cast<std::size_t>(id)];
      std::memcpy(out, &row, sizeof(row));
      out += sizeof(row);
    }
  });
  section("distances", container::Element::f32, degree, [&](std::uint32_t place, std::byte* out) {
    std::memcpy(out, found.distances.row(place).data(), degree * sizeof(float));
  });
}

}  // namespace

void build_group(const Context& context, const GraphWork& work, std::size_t pass, std::size_t group) {
  const KnnGraphOptions options = work.graph_options();
  const bool is_enough = TrainedPartitions(work, pass).is_enough;
  GroupRows batches(context, work, pass, group);
  ContainerWriter writer(work.file_of(build_name(pass, group)), "graph_group");
  Stages stages(context, "plan_graph");
  std::size_t count = 0;
  for (; batches.next(); ++count) {
    const auto members = static_cast<double>(batches.pieces().members.size());
    // NN-Descent takes about as long as all comparisons within partitions.
    const double descent = is_enough ? 0 : members;
    const double rest = static_cast<double>(batches.rest()) * (is_enough ? 1 : 2);
    const Buffer<std::byte> gathered = batches.gather();
    const RowsView rows(gathered.data(), work.shape.type, batches.rows().size(), work.shape.dim,
                        work.shape.row_bytes());
    const Reservation result(*context.state().budget,
                             rows.rows() * options.degree * (sizeof(Id) + sizeof(float)));
    graph::Builder builder(context, rows, options, work.shape.tuning);
    builder.join(stages.next(members, descent + rest), batches.pieces());
    if (!is_enough) run_nn_descent(stages.next(descent, rest), rows, work, batches.nearest_rows(), builder);
    write(context, writer, count, batches, builder.finish());
  }
  writer.write_metadata({{"batches", count}});
  writer.commit();
}

}  // namespace nearwise::plan
