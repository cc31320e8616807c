#include "plan/partition/exact_sample.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/check.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"

namespace nearwise::plan {

void take_sample(const Context& context, const GraphWork& work) {
  const PlanInput input = work.input(context);
  graph::RecallSample::Exact exact;
  const std::size_t degree = std::min(work.options.degree, work.shape.rows - 1);
  if (degree != 0)
    exact = graph::RecallSample(context, input.all(), work.options.degree, work.options.metric,
                                work.shape.measured_rows)
                .exact();
  ContainerWriter writer(work.file_of(sample_name), "graph_sample");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("nearest", MatrixView<const Id>(exact.nearest.data(), exact.limits.size(),
                                                       std::max<std::size_t>(1, degree)));
  writer.write_section("limits", MatrixView<const float>(exact.limits.data(), exact.limits.size(), 1));
  writer.commit();
}

graph::RecallSample load_sample(const Context& context, const GraphWork& work, const PlanInput& input) {
  const ContainerReader reader = ContainerReader::open(work.file_of(sample_name));
  const auto nearest = reader.section("nearest").rows<Id>();
  const auto limits = reader.section("limits").rows<float>();
  const std::size_t degree = std::min(work.options.degree, work.shape.rows - 1);
  if (limits.rows() != work.shape.measured_rows || nearest.rows() != limits.rows() ||
      nearest.cols() != degree)
    fail(ErrorCode::corrupt, "{}: expected {} neighbours of {} rows, found {} of {}", reader.source(), degree,
         work.shape.measured_rows, nearest.cols(), nearest.rows());
  const std::span<const Id> ids(nearest.data(), nearest.rows() * degree);
  if (std::ranges::any_of(ids,
                          [&](Id id) { return id < 0 || static_cast<std::size_t>(id) >= work.shape.rows; }))
    fail(ErrorCode::corrupt, "{}: a neighbour is not a row", reader.source());
  const auto sampled = [&](std::size_t i) {
    return graph::RecallSample::row(context.seed(), work.shape.rows, work.shape.measured_rows, i);
  };
  return {context,
          input.rows_at(work.shape.measured_rows, sampled),
          work.options.degree,
          work.options.metric,
          work.shape.measured_rows,
          {.nearest = {ids.begin(), ids.end()}, .limits = {limits.data(), limits.data() + limits.rows()}}};
}

}  // namespace nearwise::plan
