#include "plan/partition/choose_cells.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "graph/build/cells.h"
#include "nearwise/kmeans.h"
#include "plan/partition/cell_search.h"

namespace nearwise::plan {
namespace {

// As few as in memory: cells need not be good, only not bad.
constexpr std::size_t iterations = 4;
// A row in one more cell is a place in files, a list to be scanned for and rows to be looked at closely: as much as so many pairs,
// of which each row has as many as its cells have members. 3M rows of the synthetic set took 32 s in 3.3 cells of 1,000 rows
// each, 28 s in 2.6 of 1,600, 24 s in 1.7 of 2,200.
constexpr double pairs_of_copy = 10'000;
// Larger cells are cut, and rows that were foreseen to meet do not.
constexpr auto whole_cell_rows = static_cast<double>(graph::most_cell_rows);

struct Trial {
  ChosenCells cells;
  double cost = 0;    // of a row, in pairs
  bool whole = true;  // as good as all meetings take place

  bool will_do() const { return cells.chosen.is_enough && whole; }
  bool is_better_than(const Trial& other) const {
    if (will_do() != other.will_do()) return will_do();
    return will_do() ? cost < other.cost : cells.chosen.foreseen > other.cells.chosen.foreseen;
  }
};

Matrix<float> train(const Context& context, Metric metric, const RowsView& sample, std::size_t cells) {
  const KMeansOptions options = {.metric = metric, .iterations = iterations, .tolerance = 0};
  const auto training = cells <= GraphShape::flat_cells ? train_kmeans : train_hierarchical_kmeans;
  // As many for each, however many cells: the sample is for the most.
  const std::size_t step = std::max<std::size_t>(1, sample.rows() / (cells * GraphShape::rows_per_cell));
  const RowsView some(sample.data(), sample.type(), sample.rows() / step, sample.dim(),
                      sample.stride_bytes() * step);
  return training(context, some, cells, options).centroids;
}

void weigh(const GraphWork& work, Trial& trial) {
  std::vector<std::size_t> members(trial.cells.centroids.rows());
  for (const std::uint32_t cell : trial.cells.weighed.span())
    if (cell != no_row) ++members[cell];
  const std::size_t weighing = trial.cells.weighed.size() / trial.cells.chosen.rule.overlap;
  const auto rows = static_cast<double>(weighing);
  const double rows_of_each = static_cast<double>(work.shape.rows) / rows;
  double cut = 0;  // share of meetings that do not take place, about
  for (const std::size_t weighed : members) {
    if (weighed == 0) continue;
    const auto count = static_cast<double>(weighed);
    const double all = count * rows_of_each;
    trial.cost += count / rows * (pairs_of_copy + std::min(all, whole_cell_rows));
    cut += count / rows * std::max(0.0, 1 - whole_cell_rows / all);
  }
  trial.whole = cut <= share_for_cuts * (1 - work.options.recall);
}

Trial make_trial(const Context& context, const GraphWork& work, std::size_t pass, const RowsView& sample,
                 const RowsView& weighing, std::size_t count) {
  const Metric metric = metric_of_cells(work.options.metric);
  Trial trial;
  ChosenCells& cells = trial.cells;
  cells.centroids = train(context, metric, sample, count);
  if (work.shape.has_regions(count))
    cells.regions = Regions::make(context, cells.centroids, sample, work.shape.overlap, metric);
  else
    cells.regions.centres = Matrix<float>(0, work.shape.dim);
  const CellSearch search(context, cells.centroids, cells.regions.view(), metric);
  cells.chosen = choose_rule(context, work, pass, search);
  cells.weighed = Buffer<std::uint32_t>(*context.state().budget, weighing.rows() * cells.chosen.rule.overlap);
  search.find(weighing, cells.chosen.rule, cells.weighed.span());
  weigh(work, trial);
  return trial;
}

}  // namespace

// From the largest cells on, which are trained in no time, twice as many each time while costs fall.
ChosenCells choose_cells(const Context& context, const GraphWork& work, std::size_t pass,
                         const RowsView& sample, const RowsView& weighing) {
  std::size_t count = work.shape.least_cells;
  Trial best = make_trial(context, work, pass, sample, weighing, count);
  double cost = best.cost;
  bool falls = true;
  while (count < work.shape.cells && (falls || !best.will_do())) {
    count = std::min(2 * count, work.shape.cells);
    Trial next = make_trial(context, work, pass, sample, weighing, count);
    falls = next.cost < std::exchange(cost, next.cost);
    if (next.is_better_than(best)) best = std::move(next);
  }
  return std::move(best.cells);
}

}  // namespace nearwise::plan
