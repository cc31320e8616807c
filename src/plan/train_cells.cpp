// train: centroids of a pass from a sample of the rows, near ones together, in groups of like numbers of members.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "io/container_writer.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"
#include "plan/graph_work.h"
#include "plan/order_cells.h"

namespace nearwise::plan {
namespace {

// As few as in memory: cells need not be good, only not bad.
constexpr std::size_t iterations = 4;
// So many cells are trained at once; more in two levels.
constexpr std::size_t most_flat_cells = 256;
// Rows of the sample by which the members of cells are told.
constexpr std::size_t most_weighing_rows = 65'536;

Matrix<float> train(const Context& context, const GraphWork& work, const RowsView& sample) {
  const KMeansOptions options = {
      .metric = metric_of_cells(work.options.metric), .iterations = iterations, .tolerance = 0};
  const auto training = work.shape.cells <= most_flat_cells ? train_kmeans : train_hierarchical_kmeans;
  return training(context, sample, work.shape.cells, options).centroids;
}

// [cells] members among some rows of the sample, and one more: no cell is without any.
std::vector<std::uint32_t> weigh(const Context& context, const GraphWork& work, const RowsView& sample,
                                 const Matrix<float>& centroids) {
  std::vector<std::uint32_t> mass(centroids.rows(), 1);
  const Metric metric = metric_of_cells(work.options.metric);
  const graph::RowSample some(context, sample, std::min(sample.rows(), most_weighing_rows),
                              graph::random_stream(context.seed(), graph::Draw::centroids));
  const Neighbors nearest = knn(context, some.view(), centroids, work.shape.overlap, {.metric = metric});
  for (std::size_t row = 0; row < nearest.ids.rows(); ++row)
    for (const Id cell : nearest.ids.row(row).first(near_cells(metric, nearest.distances.row(row))))
      ++mass[static_cast<std::size_t>(cell)];
  return mass;
}

}  // namespace

void train_cells(const Context& context, const GraphWork& work, std::size_t pass) {
  const VectorFile file = work.open();
  const graph::RowSample sample(context, file.rows(), work.shape.sampled_rows,
                                graph::random_stream(context.seed(), graph::Draw::cell_rows, pass));
  const Matrix<float> centroids = train(context, work, sample.view());
  const std::vector<std::uint32_t> mass = weigh(context, work, sample.view(), centroids);
  const std::vector<std::uint32_t> order = order_cells(centroids, mass);
  const std::vector<std::uint64_t> ends = cut_order(order, mass, work.shape.groups);

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_cells");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("group_ends", MatrixView<const std::uint64_t>(ends.data(), ends.size(), 1));
  writer.begin_section("centroids", container::Element::f32, {.columns = centroids.cols()});
  for (const std::uint32_t cell : order) writer.append(std::as_bytes(centroids.row(cell)));
  writer.commit();
}

}  // namespace nearwise::plan
