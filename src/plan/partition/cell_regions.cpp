#include "plan/partition/cell_regions.h"

#include <algorithm>
#include <cmath>

#include "cluster/training.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t iterations = 4;
// As small as rows can still be compared with all of them. Of well-separated clusters large ones have unions, whose means are all
// alike, so that one of them may be nearest for very many rows: of 10,000 cells a row saw 3,100 with 312 regions, 1,800 with 1,250.
constexpr std::size_t cells_of_region = 8;
constexpr std::size_t many_regions = 2048;
// Of very many cells so many times the square root: then there are about as many regions as cells near one.
constexpr std::size_t regions_of_root = 4;
// Rows by which it is told how many regions a cell has to be near, and the share of their cells that is found then.
constexpr std::size_t most_asked = 2048;
constexpr double share_found = 0.985;

// The least number of its nearest regions that a cell is near, with which a share of the sample's cells is found.
// nearest: of cells, [cells, most]; region_of and exact: of the sample, [rows, 1] regions and [rows, overlap] cells.
std::size_t enough_regions(const Neighbors& nearest, const Neighbors& region_of, const Neighbors& exact) {
  std::vector<std::size_t> needed;
  needed.reserve(exact.ids.rows() * exact.ids.cols());
  for (std::size_t row = 0; row < exact.ids.rows(); ++row)
    for (const Id cell : exact.ids.row(row)) {
      const auto regions = nearest.ids.row(static_cast<std::size_t>(cell));
      const auto found = std::ranges::find(regions, region_of.ids(row, 0));
      needed.push_back(std::min(regions.size(), static_cast<std::size_t>(found - regions.begin()) + 1));
    }
  const auto last = static_cast<std::ptrdiff_t>(share_found * static_cast<double>(needed.size() - 1));
  std::nth_element(needed.begin(), needed.begin() + last, needed.end());
  return needed[static_cast<std::size_t>(last)];
}

// Without those that are no cell's nearest. nearest: of cells, [cells, 1].
Matrix<float> with_cells(const Matrix<float>& centres, const Neighbors& nearest) {
  std::vector<bool> has_cell(centres.rows());
  for (std::size_t cell = 0; cell < nearest.ids.rows(); ++cell)
    has_cell[static_cast<std::size_t>(nearest.ids(cell, 0))] = true;
  Matrix<float> kept(static_cast<std::size_t>(std::ranges::count(has_cell, true)), centres.cols());
  std::size_t place = 0;
  for (std::size_t region = 0; region < centres.rows(); ++region)
    if (has_cell[region]) std::ranges::copy(centres.row(region), kept.row(place++).begin());
  return kept;
}

}  // namespace

std::size_t Regions::most_regions(std::size_t cells) {
  const auto root = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(cells))));
  return std::clamp(cells / cells_of_region, root, std::max(many_regions, regions_of_root * root));
}

std::size_t Regions::most_near(std::size_t cells) {
  return std::min(cells, std::max<std::size_t>(4096, most_of_cell * most_regions(cells)));
}

std::uint64_t Regions::bytes(const Context& context, std::size_t cells, std::size_t dim,
                             std::size_t overlap) {
  constexpr std::uint64_t answer = sizeof(Id) + sizeof(float);
  const std::size_t regions = most_regions(cells);
  const RowsView centroids(nullptr, ElementType::f32, cells, dim, dim * sizeof(float));
  const std::uint64_t packed = (cells + most_asked) * (dim * sizeof(float) + 1024);
  return regions * dim * sizeof(float) + cells * most_of_cell * (answer + sizeof(std::uint32_t)) +
         std::max(cluster::training_bytes(context, centroids, regions, {}),
                  packed + most_asked * (dim * sizeof(float) + (overlap + 1) * answer));
}

Regions Regions::make(const Context& context, MatrixView<const float> centroids, const RowsView& sample,
                      std::size_t overlap, Metric metric) {
  const Matrix<float> centres = train_kmeans(context, centroids, most_regions(centroids.rows()),
                                             {.metric = metric, .iterations = iterations, .tolerance = 0})
                                    .centroids;
  Regions made;
  made.centres = with_cells(centres, knn(context, centroids, centres, 1, {.metric = metric}));
  const std::size_t regions = made.centres.rows();
  const Neighbors nearest =
      knn(context, centroids, made.centres, std::min(regions, most_of_cell), {.metric = metric});
  const graph::RowSample some(context, sample, std::min(sample.rows(), most_asked),
                              graph::random_stream(context.seed(), graph::Draw::centroids, 1));
  const std::size_t enough =
      enough_regions(nearest, knn(context, some.view(), made.centres, 1, {.metric = metric}),
                     knn(context, some.view(), centroids, overlap, {.metric = metric}));
  // Those that have it as their nearest first, then as the next: where there are too many, the last are left out.
  const std::size_t most = most_near(centroids.rows());
  std::vector<std::vector<std::uint32_t>> near(regions);
  for (std::size_t i = 0; i < enough; ++i)
    for (std::uint32_t cell = 0; cell < centroids.rows(); ++cell)
      if (auto& cells = near[static_cast<std::size_t>(nearest.ids(cell, i))]; cells.size() < most)
        cells.push_back(cell);
  for (const auto& cells : near) {
    made.cells.insert(made.cells.end(), cells.begin(), cells.end());
    made.ends.push_back(made.cells.size());
  }
  return made;
}

}  // namespace nearwise::plan
