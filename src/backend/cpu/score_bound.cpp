#include "backend/cpu/score_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/distance.h"

namespace nearwise::cpu {
namespace {

constexpr double f32_unit = 0x1p-24;       // half a unit in the last place, relative
constexpr double f32_smallest = 0x1p-149;  // what an underflowing f32 operation may lose
constexpr double f64_unit = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();

// Two values this far apart, relatively, are reported as different f32 numbers, also after a square root.
constexpr double report_blur = 0x1p-20;
// The same where the report is a denormal f32.
constexpr double report_floor = 0x1p-140;

// Lengths beyond this make squares overflow in f32.
constexpr double longest = 5e18;

bool is_euclidean(Metric metric) { return metric == Metric::sqeuclidean || metric == Metric::euclidean; }

// |(q - y) - (packed q - packed y)|: shifting by the centre rounds every element once.
double shift_error(double query_norm, double row_norm) { return 1.001 * f32_unit * (query_norm + row_norm); }

float round_up(double value) {
  if (value >= std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
  return std::nextafter(static_cast<float>(value), std::numeric_limits<float>::max());
}

}  // namespace

ScoreBound::ScoreBound(Metric metric, std::size_t dim) : metric_(metric), dim_(static_cast<double>(dim)) {
  // dim products and dim additions, each rounded, in whatever order; a few more for bias and norms.
  const double operations = dim_ + 4;
  product_error_ = operations * f32_unit / (1 - operations * f32_unit);
}

bool ScoreBound::holds_for(double query_norm, double row_norm) {
  return query_norm <= longest && row_norm <= longest;
}

// |computed score - score of the packed vectors in exact arithmetic|
double ScoreBound::score_error(double query_norm, double row_norm) const {
  const double underflow = (dim_ + 4) * f32_smallest;
  const double sums_in_f64 = (dim_ + 16) * 2 * f64_unit;  // norms and reported sums
  const double product = query_norm * row_norm;
  switch (metric_) {
    case Metric::sqeuclidean:
    case Metric::euclidean: {
      const double terms = product + row_norm * row_norm / 2;
      const double constants = (query_norm * query_norm + row_norm * row_norm) * sums_in_f64;
      return product_error_ * terms + constants + underflow;
    }
    case Metric::inner_product: return (product_error_ + sums_in_f64) * product + underflow;
    case Metric::cosine: break;
  }
  // Packed vectors have length 1 up to the rounding of their elements, as have the quotients reported.
  return 1.001 * product_error_ + 4 * f32_unit + 2 * sums_in_f64 + underflow;
}

double ScoreBound::limit_from_score(double query_norm, double row_norm, float score) const {
  const double high = static_cast<double>(score) + score_error(query_norm, row_norm);
  double value = high;
  if (is_euclidean(metric_)) {
    const double root =
        std::sqrt(std::max(0.0, query_norm * query_norm + 2 * high)) + shift_error(query_norm, row_norm);
    value = root * root;
  } else if (metric_ == Metric::cosine) {
    value = std::max(0.0, 1 + high);
  }
  return value + std::abs(value) * report_blur + report_floor;
}

double ScoreBound::limit_from_key(float key) const {
  double value = key;
  if (metric_ == Metric::euclidean) value *= value;
  return value + std::abs(value) * report_blur + report_floor;
}

float ScoreBound::cutoff(double query_norm, double row_norm, double limit) const {
  if (limit == infinity) return std::numeric_limits<float>::max();
  double score = limit;
  if (is_euclidean(metric_)) {
    const double root = std::sqrt(limit) + shift_error(query_norm, row_norm);
    score = (root * root - query_norm * query_norm) / 2;
  } else if (metric_ == Metric::cosine) {
    score = limit - 1;
  }
  return round_up(score + score_error(query_norm, row_norm) + std::abs(score) * 4 * f64_unit);
}

}  // namespace nearwise::cpu
