#include "graph/build/cells.h"

#include <algorithm>

#include "backend/context_state.h"
#include "cluster/training.h"
#include "core/check.h"
#include "core/cluster_members.h"
#include "graph/build/random_streams.h"
#include "graph/build/row_sample.h"
#include "nearwise/exact.h"
#include "nearwise/kmeans.h"

namespace nearwise::graph {
namespace {

// Rows that each centroid is trained on, and how often: cells need not be good, only not bad.
constexpr std::size_t rows_per_cell = 32;
constexpr std::size_t iterations = 4;
// Rows whose cells are searched at a time.
constexpr std::size_t tile_rows = 1 << 16;

Metric metric_of_cells(Metric metric) { return metric == Metric::euclidean ? Metric::sqeuclidean : metric; }

Matrix<float> train_centroids(const Context& context, const RowsView& rows, const CellOptions& options) {
  const auto draw = [&](Draw use) { return random_stream(context.seed(), use, options.attempt); };
  const RowSample sample(context, rows, std::min(rows.rows(), options.cells * rows_per_cell),
                         draw(Draw::cell_rows));
  const RowSample initial(context, sample.view(), options.cells, draw(Draw::centroids));
  return train_kmeans(context, sample.view(), options.cells,
                      {.metric = metric_of_cells(options.metric),
                       .iterations = iterations,
                       .tolerance = 0,
                       .initial = initial.view()})
      .centroids;
}

}  // namespace

Cells::Cells(const Context& context, const RowsView& rows, const CellOptions& options)
    : cells_(options.cells),
      overlap_(std::min(options.overlap, options.cells)),
      kept_(overlap_),
      rows_(rows.rows()),
      of_row_(*context.state().budget, rows_ * overlap_),
      members_(*context.state().budget, rows_ * overlap_) {
  const Matrix<float> centroids = train_centroids(context, rows, options);
  // In tiles: the answer takes three times the bytes of what is kept.
  for (std::size_t first = 0; first < rows_; first += tile_rows) {
    const std::size_t count = std::min(tile_rows, rows_ - first);
    const Neighbors nearest = knn(context, rows.slice(first, count), centroids, overlap_,
                                  {.metric = metric_of_cells(options.metric)});
    std::ranges::transform(nearest.ids.data(), nearest.ids.data() + count * overlap_,
                           of_row_.data() + first * overlap_,
                           [](Id id) { return static_cast<std::uint32_t>(id); });
  }
}

std::uint64_t Cells::bytes(const Context& context, const RowsView& rows, const CellOptions& options) {
  const std::size_t sampled = std::min(rows.rows(), options.cells * rows_per_cell);
  const RowsView sample(rows.data(), rows.type(), sampled, rows.dim(),
                        rows.dim() * element_size(rows.type()));
  const std::uint64_t training =
      RowSample::bytes(rows, sampled) + RowSample::bytes(rows, options.cells) +
      cluster::training_bytes(context, sample, options.cells, {.metric = metric_of_cells(options.metric)});
  const std::size_t tile = std::min(tile_rows, rows.rows());
  const std::uint64_t answers = tile * options.overlap * (sizeof(Id) + sizeof(float));
  // What a search needs beside its answers to be worth its while.
  const std::uint64_t searching = (options.cells + tile) * (rows.dim() * sizeof(float) + 1024) + (8 << 20);
  return std::uint64_t{2} * rows.rows() * options.overlap * sizeof(std::uint32_t) +
         options.cells * rows.dim() * sizeof(float) + std::max(training, answers + searching);
}

bool Cells::share(std::size_t row, std::size_t other, std::size_t nearest) const {
  const auto mine = of_row_.span().subspan(row * overlap_, nearest);
  const auto others = of_row_.span().subspan(other * overlap_, nearest);
  return std::ranges::find_first_of(mine, others) != mine.end();
}

void Cells::keep(std::size_t nearest) {
  NEARWISE_ASSERT(nearest >= 1 && nearest <= overlap_);
  kept_ = nearest;
}

void Cells::order_rows(std::span<std::uint32_t> order) {
  // Members are not known yet: their place serves.
  const std::span<std::uint32_t> first_cell = members_.span().first(rows_);
  for (std::size_t row = 0; row < rows_; ++row) first_cell[row] = of_row_[row * overlap_];
  std::vector<std::uint64_t> ends(cells_);
  sort_by_cluster(first_cell, order, ends);
}

Groups Cells::groups(std::span<const std::uint32_t> order) {
  std::vector<std::uint64_t> ends(cells_ + 1);
  for (std::size_t row = 0; row < rows_; ++row)
    for (std::size_t i = 0; i < kept_; ++i) ++ends[of_row_[row * overlap_ + i] + 1];
  for (std::size_t cell = 0; cell < cells_; ++cell) ends[cell + 1] += ends[cell];
  for (std::size_t place = 0; place < order.size(); ++place)
    for (std::size_t i = 0; i < kept_; ++i)
      members_[ends[of_row_[order[place] * overlap_ + i]]++] = static_cast<std::uint32_t>(place);
  // Filling moved every cell's begin to its end.
  std::uint64_t begin = 0;
  for (std::size_t cell = 0; cell < cells_; ++cell) {
    while (begin < ends[cell]) {
      const std::uint64_t members = std::min<std::uint64_t>(most_cell_rows, ends[cell] - begin);
      begin += members;
      ends_.push_back(begin);
      fresh_.push_back(static_cast<std::uint32_t>(members));
    }
  }
  return {members_.span().first(rows_ * kept_), ends_, fresh_};
}

Groups Cells::groups_of_sides(std::span<const std::uint32_t> order, std::size_t left_rows) {
  Groups groups = this->groups(order);
  std::uint64_t begin = 0;
  for (std::size_t group = 0; group < ends_.size(); ++group) {
    const auto members = members_.span().subspan(begin, ends_[group] - begin);
    // Not of std::ranges: what that returns is beyond clang 14.
    const auto right = std::stable_partition(members.begin(), members.end(),
                                             [&](std::uint32_t place) { return order[place] < left_rows; });
    fresh_[group] = static_cast<std::uint32_t>(right - members.begin());
    begin = ends_[group];
  }
  groups.apart = true;
  return groups;
}

}  // namespace nearwise::graph
