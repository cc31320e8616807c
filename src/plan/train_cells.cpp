// train: centroids of a pass from a sample of the rows, those that are near each other gathered in groups of like size.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "graph/random_streams.h"
#include "graph/row_sample.h"
#include "io/container_writer.h"
#include "nearwise/kmeans.h"
#include "plan/graph_work.h"

namespace nearwise::plan {
namespace {

// As few as in memory: cells need not be good, only not bad.
constexpr std::size_t iterations = 4;
// So many cells are trained at once; more in two levels.
constexpr std::size_t most_flat_cells = 256;
// A group has at most so many times the cells of the mean.
constexpr double balance = 1.2;

Matrix<float> train(const Context& context, const GraphWork& work, std::size_t pass) {
  const VectorFile file = work.open();
  const graph::RowSample sample(context, file.rows(), work.shape.sampled_rows,
                                graph::random_stream(context.seed(), graph::Draw::cell_rows, pass));
  const KMeansOptions options = {
      .metric = metric_of_cells(work.options.metric), .iterations = iterations, .tolerance = 0};
  const auto training = work.shape.cells <= most_flat_cells ? train_kmeans : train_hierarchical_kmeans;
  return training(context, sample.view(), work.shape.cells, options).centroids;
}

std::vector<std::uint32_t> group_cells(const Context& context, const Matrix<float>& centroids,
                                       std::size_t groups, Metric metric) {
  std::vector<std::uint32_t> of_cell(centroids.rows(), 0);
  if (groups == 1) return of_cell;
  const KMeans coarse =
      train_kmeans(context, centroids, groups, {.metric = metric_of_cells(metric), .balance = balance});
  const Neighbors nearest =
      assign(context, centroids, coarse.centroids, {.metric = metric_of_cells(metric), .balance = balance});
  for (std::size_t cell = 0; cell < of_cell.size(); ++cell)
    of_cell[cell] = static_cast<std::uint32_t>(nearest.ids(cell, 0));
  return of_cell;
}

}  // namespace

void train_cells(const Context& context, const GraphWork& work, std::size_t pass) {
  const Matrix<float> centroids = train(context, work, pass);
  const std::vector<std::uint32_t> group_of =
      group_cells(context, centroids, work.shape.groups, work.options.metric);
  // Numbered again by group; within one as they were trained, near ones together.
  std::vector<std::uint32_t> order(centroids.rows());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t cell) { return group_of[cell]; });
  std::vector<std::uint64_t> ends(work.shape.groups);
  for (const std::uint32_t group : group_of) ++ends[group];
  std::partial_sum(ends.begin(), ends.end(), ends.begin());

  ContainerWriter writer(work.file_of(train_name(pass)), "graph_cells");
  writer.write_metadata(nlohmann::json::object());
  writer.write_section("group_ends", MatrixView<const std::uint64_t>(ends.data(), ends.size(), 1));
  writer.begin_section("centroids", container::Element::f32, {.columns = centroids.cols()});
  for (const std::uint32_t cell : order) writer.append(std::as_bytes(centroids.row(cell)));
  writer.commit();
}

}  // namespace nearwise::plan
