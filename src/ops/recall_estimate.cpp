#include "ops/recall_estimate.h"

#include <algorithm>
#include <cstdint>

#include "core/check.h"
#include "core/math/proportion_interval.h"

namespace nearwise {

RecallEstimate estimate_recall(std::span<const std::size_t> found, std::size_t k, std::size_t population) {
  // Integer sums, so that the mean is rounded once.
  std::uint64_t sum = 0;
  std::uint64_t squares = 0;
  for (const std::uint64_t count : found) {
    sum += count;
    squares += count * count;
  }
  const auto trials = static_cast<double>(found.size() * k);
  const double mean = static_cast<double>(sum) / trials;
  if (found.size() == population) return {.value = mean, .low = mean, .high = mean, .rows = found.size()};
  const double mean_square = static_cast<double>(squares) / trials / static_cast<double>(k);
  const auto [low, high] = proportion_interval(mean, std::max(0.0, mean_square - mean * mean), found.size());
  return {.value = mean, .low = low, .high = high, .rows = found.size()};
}

RecallEstimate estimate_recall(std::span<const double> recalls) {
  require(!recalls.empty(), "estimate_recall: at least 1 recall expected, got 0");
  double sum = 0;
  double squares = 0;
  for (const double recall : recalls) {
    require(recall >= 0 && recall <= 1, "estimate_recall: numbers from 0 to 1 expected, got {}", recall);
    sum += recall;
    squares += recall * recall;
  }
  const auto count = static_cast<double>(recalls.size());
  const double mean = sum / count;
  const auto [low, high] =
      proportion_interval(mean, std::max(0.0, squares / count - mean * mean), recalls.size());
  return {.value = mean, .low = low, .high = high, .rows = recalls.size()};
}

}  // namespace nearwise
