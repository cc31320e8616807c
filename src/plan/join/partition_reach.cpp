#include "plan/join/partition_reach.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/plain_distance.h"
#include "graph/partition/partition_search.h"

namespace nearwise::plan {
namespace {

// Rounding to f32 takes 2^-24 of a distance, its f64 sum less than 2^-32. What is left of 2^-22 covers the
// f64 arithmetic here.
constexpr double relative_slack = 0x1p-22;
// Of subnormal distances, which f32 rounds to a multiple of 2^-149.
constexpr double least_error = 0x1p-148;
constexpr double largest = std::numeric_limits<float>::max();
// For conditions computed in f64 from values of the same sign.
constexpr double outward = 1 + 0x1p-40;

// 1 - cos is a difference: its error is not relative to it. Sums of `dim` products in 8 lanes are within
// (dim / 8 + 5) 2^-53 of the norms' product; this is 16 times as much.
double cosine_error(std::size_t dim) { return static_cast<double>(dim + 64) * 0x1p-52; }

// Infinity beyond the largest f32.
float rounded_up(double value) {
  if (value > largest) return std::numeric_limits<float>::infinity();
  const auto nearest = static_cast<float>(value);
  return static_cast<double>(nearest) < value
             ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
             : nearest;
}

}  // namespace

PartitionReach::PartitionReach(Metric metric, float threshold, std::size_t dim)
    : metric_(graph::partition_metric(metric)),
      scale_(metric == Metric::cosine ? 2 : 1),
      precision_(metric == Metric::cosine ? scale_ * cosine_error(dim) : least_error),
      radius_(0) {
  const double most = std::max(0.0, static_cast<double>(threshold));  // none is below 0
  radius_ = outward * (metric == Metric::euclidean ? most * (1 + relative_slack) + least_error
                                                   : std::sqrt(upper(most)));
}

double PartitionReach::upper(double reported) const {
  return scale_ * reported * (1 + relative_slack) + precision_;
}
double PartitionReach::lower(double reported) const {
  // Beyond the largest f32, infinity is reported.
  return std::max(0.0, scale_ * std::min(reported, largest) * (1 - relative_slack) - precision_);
}

double PartitionReach::farthest(float home) const { return outward * (radius_ + std::sqrt(upper(home))); }

// For a vector x at home in P, next to a home Q: reported(x, P) <= reported(x, Q) = v, so that the true
// difference is at most upper(v) - lower(v) = 2 (slack * scale * v + precision), and lower(v) is at most the
// square of farthest.
double PartitionReach::tie(double farthest) const {
  return 4 * (relative_slack * farthest * farthest + precision_);
}

// With A = |y - c_Q|^2 and B = |y - c_P|^2, |c_P - c_Q| <= sqrt(A) + sqrt(B) makes of
// B - A <= 2 radius |c_P - c_Q| + tie the bound (sqrt(B) - radius)^2 <= (sqrt(A) + radius)^2 + tie.
// The bound of B with the `between` of the two may be lower.
float PartitionReach::limit(float home, float between) const {
  const double far = farthest(home);
  const double root = radius_ + std::sqrt(far * far + tie(far));
  const double square =
      std::min(root * root, upper(home) + 2 * radius_ * std::sqrt(static_cast<double>(between)) + tie(far));
  const double reported = outward * (square + precision_) / (scale_ * (1 - relative_slack));
  if (!(far * far < largest / 4 && reported < largest / 2)) return std::numeric_limits<float>::infinity();
  return std::nextafter(static_cast<float>(reported), std::numeric_limits<float>::infinity());
}

bool PartitionReach::reaches(float home, float other, float between) const {
  const double far = farthest(home);
  // Of the vector x infinity might be reported: its home may be any partition.
  if (!(far * far < largest / 4)) return true;
  const bool is_beyond = lower(other) - upper(home) >
                         outward * (2 * radius_ * std::sqrt(static_cast<double>(between)) + tie(far));
  return !is_beyond;
}

float PartitionReach::between(std::span<const float> left, std::span<const float> right) const {
  const std::size_t dim = left.size();
  const auto as_double = [](float value) { return static_cast<double>(value); };
  if (metric_ != Metric::cosine) {
    return rounded_up(upper(sum_over(dim, [&](std::size_t i) {
      const double difference = as_double(left[i]) - as_double(right[i]);
      return difference * difference;
    })));
  }
  const double left_norm =
      sum_over(dim, [&](std::size_t i) { return as_double(left[i]) * as_double(left[i]); });
  const double right_norm =
      sum_over(dim, [&](std::size_t i) { return as_double(right[i]) * as_double(right[i]); });
  const double products =
      sum_over(dim, [&](std::size_t i) { return as_double(left[i]) * as_double(right[i]); });
  return rounded_up(upper(std::max(0.0, 1 - products / std::sqrt(left_norm * right_norm))));
}

}  // namespace nearwise::plan
