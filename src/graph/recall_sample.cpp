#include "graph/recall_sample.h"

#include <algorithm>
#include <cmath>

#include "core/distance.h"
#include "graph/random_streams.h"
#include "nearwise/exact.h"

namespace nearwise::graph {

RecallSample::RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
                           std::size_t count)
    : all_rows_(rows.rows()),
      degree_(std::min(degree, rows.rows() - 1)),
      sample_(context, rows, std::min(count, rows.rows()), random_stream(context.seed(), Draw::recall)),
      limits_(sample_.view().rows()) {
  const Neighbors nearest = knn(context, sample_.view(), rows, degree_ + 1, {.metric = metric});
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    // Without the row itself, wherever it stands; among many duplicates it may not be there at all.
    const auto ids = nearest.ids.row(i);
    const bool there = std::ranges::find(ids, static_cast<Id>(row(i))) != ids.end();
    limits_[i] = sort_key(metric, nearest.distances(i, there ? degree_ : degree_ - 1));
    if (there && ids[degree_] == static_cast<Id>(row(i)))
      limits_[i] = sort_key(metric, nearest.distances(i, degree_ - 1));
  }
}

std::uint64_t RecallSample::bytes(const RowsView& rows, std::size_t degree, std::size_t count) {
  return RowSample::bytes(rows, std::min(count, rows.rows())) +
         std::min(count, rows.rows()) * (degree + 1) * (sizeof(Id) + sizeof(float));
}

RecallEstimate RecallSample::estimate(std::span<const std::size_t> found) const {
  // In whole numbers: the mean is rounded once.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::size_t given : found) {
    const std::uint64_t counted = std::min(given, degree_);
    sum += counted;
    squares += counted * counted;
  }
  const auto trials = static_cast<double>(found.size() * degree_);
  const double mean = static_cast<double>(sum) / trials;
  const double mean_square = static_cast<double>(squares) / trials / static_cast<double>(degree_);
  RecallEstimate estimate = interval_of(mean, std::max(0.0, mean_square - mean * mean), found.size());
  if (found.size() == all_rows_) estimate.low = estimate.high = mean;
  return estimate;
}

RecallEstimate interval_of(double mean, double variance, std::size_t count) {
  constexpr double z = 1.959963984540054;
  // Of numbers that are 0 or 1 the variance is mean * (1 - mean); the less they spread, the more trials each is worth.
  const double spread = mean * (1 - mean);
  const double trials = static_cast<double>(count) * (variance > 0 ? std::max(1.0, spread / variance) : 1.0);
  const double scale = 1 + z * z / trials;
  const double middle = (mean + z * z / (2 * trials)) / scale;
  const double half = z * std::sqrt(spread / trials + z * z / (4 * trials * trials)) / scale;
  return {.value = mean,
          // The rounding of the two must not leave the mean outside.
          .low = std::clamp(middle - half, 0.0, mean),
          .high = std::clamp(middle + half, mean, 1.0),
          .rows = count};
}

}  // namespace nearwise::graph
