#include "graph/build/recall_sample.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/float_environment.h"
#include "core/plain_distance.h"
#include "core/proportion_interval.h"
#include "graph/build/random_streams.h"
#include "nearwise/exact.h"

namespace nearwise::graph {
namespace {

constexpr std::size_t task_rows = 64;

}  // namespace

RecallSample::RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
                           std::size_t count, std::size_t among)
    : context_(context),
      rows_(rows),
      metric_(metric),
      degree_(std::min(degree, rows.rows() - 1)),
      sample_(context, rows.slice(0, among), std::min(count, among),
              random_stream(context.seed(), Draw::recall)) {
  exact_.limits.resize(sample_.view().rows());
  const Neighbors nearest = knn(context, sample_.view(), rows, degree_ + 1, {.metric = metric});
  exact_.nearest.reserve(size() * degree_);
  for (std::size_t i = 0; i < size(); ++i) {
    // Without the row itself, wherever it stands; among many duplicates it may not be there at all.
    std::size_t kept = 0;
    for (std::size_t rank = 0; kept < degree_; ++rank) {
      if (nearest.ids(i, rank) == static_cast<Id>(sample_.number(i))) continue;
      exact_.nearest.push_back(nearest.ids(i, rank));
      exact_.limits[i] = sort_key(metric, nearest.distances(i, rank));
      ++kept;
    }
  }
}

RecallSample::RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
                           std::size_t count, Exact exact)
    : context_(context),
      rows_(rows),
      metric_(metric),
      degree_(std::min(degree, rows.rows() - 1)),
      sample_(context, rows, std::min(count, rows.rows()), random_stream(context.seed(), Draw::recall)),
      exact_(std::move(exact)) {
  NEARWISE_ASSERT(size() == sample_.view().rows() && exact_.nearest.size() == size() * degree_);
}

std::uint64_t RecallSample::bytes(const RowsView& rows, std::size_t degree, std::size_t count) {
  return RowSample::bytes(rows, std::min(count, rows.rows())) +
         std::min(count, rows.rows()) * (degree + 1) * (2 * sizeof(Id) + sizeof(float));
}

std::size_t RecallSample::found(std::size_t index, std::vector<Id> ids) const {
  // A neighbour counts once, and the row itself never.
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::erase_if(ids, [&](Id id) { return id == no_id || id == static_cast<Id>(sample_.number(index)); });
  std::vector<double> own(rows_.dim());
  std::vector<double> other(rows_.dim());
  row_to_double(sample_.view(), index, own.data());
  const double norm = sum_of_squares(own);
  const auto counted = std::ranges::count_if(ids, [&](Id id) {
    row_to_double(rows_, static_cast<std::size_t>(id), other.data());
    return sort_key(metric_, plain_distance(metric_, own, norm, other)) <= exact_.limits[index];
  });
  return std::min(static_cast<std::size_t>(counted), degree_);
}

RecallEstimate RecallSample::estimate(
    const std::function<std::vector<Id>(std::uint32_t row)>& neighbors) const {
  return estimate_by_index([&](std::size_t index) { return neighbors(sample_.number(index)); });
}

RecallEstimate RecallSample::predict(
    const std::function<bool(std::uint32_t row, std::uint32_t other)>& joined) const {
  return estimate_by_index([&](std::size_t index) {
    std::vector<Id> found;
    std::ranges::copy_if(nearest(index), std::back_inserter(found), [&](Id id) {
      return joined(sample_.number(index), static_cast<std::uint32_t>(id));
    });
    return found;
  });
}

RecallEstimate RecallSample::estimate_by_index(
    const std::function<std::vector<Id>(std::size_t index)>& neighbors) const {
  std::vector<std::size_t> counts(size());
  context_.state().threads->for_each(divide_up(counts.size(), task_rows), [&](std::size_t task) {
    const DefaultFloatEnvironment environment;
    for (std::size_t i = task * task_rows; i < std::min(counts.size(), (task + 1) * task_rows); ++i)
      counts[i] = found(i, neighbors(i));
  });
  return estimate_of(counts);
}

RecallEstimate RecallSample::estimate_of(std::span<const std::size_t> counts) const {
  // In whole numbers: the mean is rounded once.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint64_t count : counts) {
    sum += count;
    squares += count * count;
  }
  const auto trials = static_cast<double>(counts.size() * degree_);
  const double mean = static_cast<double>(sum) / trials;
  const double mean_square = static_cast<double>(squares) / trials / static_cast<double>(degree_);
  RecallEstimate estimate = interval_of(mean, std::max(0.0, mean_square - mean * mean), counts.size());
  if (counts.size() == rows_.rows()) estimate.low = estimate.high = mean;
  return estimate;
}

RecallEstimate interval_of(double mean, double variance, std::size_t count) {
  const auto [low, high] = proportion_interval(mean, variance, count);
  return {.value = mean, .low = low, .high = high, .rows = count};
}

}  // namespace nearwise::graph
