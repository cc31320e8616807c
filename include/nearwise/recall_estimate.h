// A recall measured on a sample, with its 95 % confidence interval.
#pragma once

#include <cstddef>
#include <span>

#include "nearwise/export.h"

namespace NEARWISE_EXPORT nearwise {

// A neighbour counts as found if it is no farther than the k-th exact one; in a calibration of an Ivf, if it
// is one of the k exact ones.
struct RecallEstimate {
  double value = 0;
  // Wilson's interval. Both ends equal `value` if the sample is the whole data set or the search was exact.
  double low = 0;
  double high = 0;
  std::size_t rows = 0;  // sampled vectors or queries

  friend bool operator==(const RecallEstimate&, const RecallEstimate&) = default;
};

// The mean of `recalls`: one number from 0 to 1 for each query, at least one. Queries count as a sample of
// many more.
RecallEstimate estimate_recall(std::span<const double> recalls);

}  // namespace nearwise
