// Definitions over the edges of a small graph, executed: a dense table of the widths of all steps, and every
// path.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "nearwise/graph/knn_graph.h"

namespace nearwise::oracle {

using Table = std::vector<std::vector<double>>;

inline constexpr double no_step = std::numeric_limits<double>::infinity();

// Smaller is nearer for every metric.
inline double width_of(Metric metric, float distance) {
  return metric == Metric::inner_product ? -static_cast<double>(distance) : static_cast<double>(distance);
}

// [from][to]: the width of the step between two rows, whichever of the two has the other in its list.
inline Table steps_of(const KnnGraph& graph) {
  Table steps(graph.rows(), std::vector<double>(graph.rows(), no_step));
  for (std::size_t row = 0; row < graph.rows(); ++row)
    for (std::size_t i = 0; i < graph.degree(); ++i) {
      const Id id = graph.neighbors.ids(row, i);
      if (id == no_id) continue;
      const auto other = static_cast<std::size_t>(id);
      const double width = width_of(graph.metric, graph.neighbors.distances(row, i));
      steps[row][other] = std::min(steps[row][other], width);
      steps[other][row] = std::min(steps[other][row], width);
    }
  return steps;
}

// Floyd and Warshall: the least width that the widest step of a path must have.
inline Table narrowest_ways(Table widths) {
  for (std::size_t over = 0; over < widths.size(); ++over)
    for (std::size_t from = 0; from < widths.size(); ++from)
      for (std::size_t to = 0; to < widths.size(); ++to)
        widths[from][to] = std::min(widths[from][to], std::max(widths[from][over], widths[over][to]));
  return widths;
}

// Of all paths that meet no row twice the first by (widest step, steps, ids). For a handful of rows.
class EveryPath {
 public:
  EveryPath(const Table& steps, std::size_t from, std::size_t to) : steps_(steps), to_(to) {
    path_.push_back(from);
    walk(-no_step);
  }
  // Empty: there is none.
  const std::vector<std::size_t>& best() const { return std::get<2>(best_); }

 private:
  using Judged = std::tuple<double, std::size_t, std::vector<std::size_t>>;
  void walk(double widest) {
    if (path_.back() == to_) {
      const Judged judged = {widest, path_.size(), path_};
      if (best().empty() || judged < best_) best_ = judged;
      return;
    }
    for (std::size_t next = 0; next < steps_.size(); ++next) {
      const double width = steps_[path_.back()][next];
      if (width == no_step || std::find(path_.begin(), path_.end(), next) != path_.end()) continue;
      path_.push_back(next);
      walk(std::max(widest, width));
      path_.pop_back();
    }
  }
  const Table& steps_;
  const std::size_t to_;
  std::vector<std::size_t> path_;
  Judged best_;
};

// Which rows steps of at most `most` connect: every row takes the lowest label next to it until none changes,
// and groups of fewer than min_rows get -1. Numbers in the order of first rows.
inline std::vector<Id> groups(const Table& steps, double most, std::size_t min_rows) {
  std::vector<std::size_t> lowest(steps.size());
  for (std::size_t row = 0; row < steps.size(); ++row) lowest[row] = row;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t row = 0; row < steps.size(); ++row)
      for (std::size_t other = 0; other < steps.size(); ++other)
        if (steps[row][other] != no_step && steps[row][other] <= most && lowest[other] < lowest[row]) {
          lowest[row] = lowest[other];
          changed = true;
        }
  }
  std::vector<std::size_t> kept;
  for (std::size_t row = 0; row < steps.size(); ++row)
    if (lowest[row] == row &&
        static_cast<std::size_t>(std::count(lowest.begin(), lowest.end(), row)) >= min_rows)
      kept.push_back(row);
  std::vector<Id> labels;
  for (const std::size_t row : lowest) {
    const auto found = std::find(kept.begin(), kept.end(), row);
    labels.push_back(found == kept.end() ? no_id : found - kept.begin());
  }
  return labels;
}

}  // namespace nearwise::oracle
