// measure: the recall after a pass. finish: writes the graph of all blocks to the output.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "graph/metadata.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "io/container/metadata.h"
#include "plan/pairs/pair_work.h"
#include "plan/partition/exact_sample.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/partial_neighbors.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t written_rows = 1024;  // rows per write

Id to_id(std::uint32_t row) { return row == no_row ? no_id : Id{row}; }

RecallEstimate measure(const Context& context, const GraphWork& work,
                       const std::vector<MergedBlock>& blocks) {
  if (work.shape.rows == 1) return {.value = 1, .low = 1, .high = 1, .rows = 1};
  const PlanInput input = work.input(context);
  const graph::RecallSample sample = load_sample(context, work, input);
  const auto neighbors = [&](std::size_t row) {
    return blocks[row / work.shape.block_rows].ids.row(row % work.shape.block_rows);
  };
  // Computes the distances of all neighbours of the sample.
  const std::size_t degree = work.options.degree;
  input.rows_at(sample.size() * degree, [&](std::size_t i) {
    const std::uint32_t id = neighbors(sample.row(i / degree))[i % degree];
    return id == no_row ? sample.row(i / degree) : id;
  });
  return sample.estimate([&](std::uint32_t row) {
    std::vector<Id> ids;
    for (const std::uint32_t id : neighbors(row)) ids.push_back(to_id(id));
    return ids;
  });
}

void write_ids(ContainerWriter& writer, const MatrixView<const std::uint32_t>& ids) {
  std::vector<Id> wide(std::min(written_rows, ids.rows()) * ids.cols());
  for (std::size_t first = 0; first < ids.rows(); first += written_rows) {
    const std::size_t count = std::min(written_rows, ids.rows() - first) * ids.cols();
    std::transform(ids.row(first).data(), ids.row(first).data() + count, wide.begin(), to_id);
    writer.append(std::as_bytes(std::span(wide).first(count)));
  }
}

// The best neighbours of all rows after a pass, in blocks or shards.
std::vector<MergedBlock> all_neighbors(const GraphWork& work, std::size_t pass) {
  return work.options.method == GraphPlanMethod::pairs ? paired_shards(work) : merged_blocks(work, pass);
}

}  // namespace

void measure_graph(const Context& context, const GraphWork& work, std::size_t pass) {
  const std::vector<MergedBlock> blocks = all_neighbors(work, pass);
  std::uint64_t updates = 0;
  for (const MergedBlock& block : blocks) updates += block.updates;
  const RecallEstimate recall = measure(context, work, blocks);
  ContainerWriter writer(work.file_of(measure_name(pass)), "graph_recall");
  writer.write_metadata({{"updates", updates}, {"recall", encode(recall)}});
  writer.commit();
}

GraphRound measured_round(const GraphWork& work, std::size_t pass) {
  const ContainerReader reader = ContainerReader::open(work.file_of(measure_name(pass)));
  const std::uint64_t updates = count_in(reader, "updates", most_updates(work, work.shape.rows));
  const nlohmann::json metadata = reader.metadata();
  try {
    return {
        .round = pass, .updates = updates, .recall = decode_recall(metadata.at("recall"), work.shape.rows)};
  } catch (const std::exception& error) {
    fail(ErrorCode::corrupt, "{}: metadata: {}", reader.source(), error.what());
  }
}

bool reached(const GraphWork& work, std::size_t pass) {
  return measured_round(work, pass).recall.low >= work.options.target_recall;
}

std::size_t last_pass(const GraphWork& work) {
  std::size_t pass = 0;
  while (pass + 1 < work.passes() && !reached(work, pass)) ++pass;
  return pass;
}

void publish_graph(const Context& context, const GraphWork& work) {
  GraphReport report = {.method = GraphMethod::nn_descent, .recall = {}, .reached = false, .rounds = {}};
  const std::size_t last = last_pass(work);
  for (std::size_t pass = 0; pass <= last; ++pass) report.rounds.push_back(measured_round(work, pass));
  report.recall = report.rounds.back().recall;
  report.reached = report.recall.low >= work.options.target_recall;
  const std::vector<MergedBlock> blocks = all_neighbors(work, last);
  ContainerWriter writer(work.files.output, std::string(graph::container_kind));
  writer.write_metadata(graph::encode_metadata(work.options.metric, report, work.options.provenance));
  const Context::State& state = context.state();
  ProgressMeter progress(state.options.progress, state.clock, "plan_graph", 2 * blocks.size());
  writer.begin_section("ids", container::Element::i64, {.columns = work.options.degree});
  for (const MergedBlock& block : blocks) {
    state.cancel.check();
    write_ids(writer, block.ids);
    progress.add(1);
  }
  writer.begin_section("distances", container::Element::f32, {.columns = work.options.degree});
  for (const MergedBlock& block : blocks) {
    state.cancel.check();
    writer.append(
        std::as_bytes(std::span(block.distances.data(), block.distances.rows() * work.options.degree)));
    progress.add(1);
  }
  writer.commit();
}

}  // namespace nearwise::plan
