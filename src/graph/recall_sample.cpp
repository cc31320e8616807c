#include "graph/recall_sample.h"

#include <algorithm>
#include <span>

#include "backend/context_state.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/float_environment.h"
#include "core/plain_distance.h"
#include "graph/random_streams.h"
#include "nearwise/exact.h"
#include "ops/recall_estimate.h"

namespace nearwise::graph {
namespace {

constexpr std::size_t task_rows = 64;

}  // namespace

RecallSample::RecallSample(const Context& context, const RowsView& rows, std::size_t degree, Metric metric,
                           std::size_t count, std::size_t population)
    : context_(context),
      rows_(rows),
      metric_(metric),
      degree_(std::min(degree, rows.rows() - 1)),
      sample_(context, rows.slice(0, population), std::min(count, population),
              random_stream(context.seed(), Draw::recall)) {
  exact_.limits.resize(sample_.view().rows());
  const Neighbors nearest = knn(context, sample_.view(), rows, degree_ + 1, {.metric = metric});
  exact_.nearest.reserve(size() * degree_);
  for (std::size_t i = 0; i < size(); ++i) {
    // The row itself is skipped; with many duplicates it may be missing from its own answer.
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

std::size_t RecallSample::row(std::uint64_t seed, std::size_t rows, std::size_t count, std::size_t index) {
  return RowSample::draw(random_stream(seed, Draw::recall), rows, std::min(count, rows), index);
}

std::uint64_t RecallSample::bytes(const RowsView& rows, std::size_t degree, std::size_t count) {
  return RowSample::bytes(rows, std::min(count, rows.rows())) +
         std::min(count, rows.rows()) * (degree + 1) * (2 * sizeof(Id) + sizeof(float));
}

std::size_t RecallSample::count_found(std::size_t index, std::vector<Id> ids) const {
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
  std::vector<std::size_t> found(size());
  context_.state().threads->for_each(divide_up(found.size(), task_rows), [&](std::size_t task) {
    const DefaultFloatEnvironment environment;
    for (std::size_t i = task * task_rows; i < std::min(found.size(), (task + 1) * task_rows); ++i)
      found[i] = count_found(i, neighbors(row(i)));
  });
  return estimate(found);
}

RecallEstimate RecallSample::estimate(std::span<const std::size_t> found) const {
  return estimate_recall(found, degree_, rows_.rows());
}

}  // namespace nearwise::graph
