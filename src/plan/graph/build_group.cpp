// build: the members of a group's partitions meet, and then, where partitions alone are not enough for the recall, the neighbours of
// their neighbours until a sample of them shows it; batch by batch. What is written may be of rows that are in several batches
// and groups: merge takes the best.
#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "backend/context_state.h"
#include "graph/build/recall_sample.h"
#include "io/container/container_writer.h"
#include "plan/graph/group_rows.h"
#include "plan/graph/write_rows.h"
#include "plan/partition/trained_partitions.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {
namespace {

// Neighbours in other groups may be missed: of what may be missing, so much is left to them.
constexpr double share_left_to_groups = 0.7;

// Rounds of descent while they bring something and the recall is not there.
void run_nn_descent(const Context& context, const RowsView& rows, const GraphWork& work,
                    std::size_t nearest_rows, graph::Builder& builder) {
  if (nearest_rows == 0 || rows.rows() < 2) return;
  const graph::Tuning& tuning = work.shape.tuning;
  const double target = 1 - share_left_to_groups * (1 - work.options.recall);
  const graph::RecallSample sample(context, rows, work.options.degree, work.options.metric, tuning.measured,
                                   nearest_rows);
  double before = builder.recall(sample).value;
  for (std::size_t round = 0; round < tuning.rounds && before < target; ++round) {
    builder.descend();
    const double now = builder.recall(sample).value;
    if (now - before < (target - before) / 10) return;
    before = now;
  }
}

// In the order of rows.
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
  std::size_t count = 0;
  for (; batches.next(); ++count) {
    const Buffer<std::byte> gathered = batches.gather();
    const RowsView rows(gathered.data(), work.shape.type, batches.rows().size(), work.shape.dim,
                        work.shape.row_bytes());
    const Reservation result(*context.state().budget,
                             rows.rows() * options.degree * (sizeof(Id) + sizeof(float)));
    graph::Builder builder(context, rows, options, work.shape.tuning);
    builder.join(batches.pieces());
    if (!is_enough) run_nn_descent(context, rows, work, batches.nearest_rows(), builder);
    write(context, writer, count, batches, builder.finish());
  }
  writer.write_metadata({{"batches", count}});
  writer.commit();
}

}  // namespace nearwise::plan
