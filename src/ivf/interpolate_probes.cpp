// Probes for numbers of neighbours between those that were calibrated.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "core/checked.h"
#include "ivf/ivf_state.h"
#include "ops/knn_plan.h"

namespace nearwise {
namespace {

// The calibrated numbers of neighbours on both sides of k; k = 0: none.
struct Around {
  struct Point {
    std::size_t k = 0;
    std::size_t probes = 0;
    bool is_reached = false;
  };
  Point below;  // or equal
  Point above;  // or equal
};

Around around(const Calibration& calibration, std::size_t k) {
  Around found;
  const auto consider = [&](std::size_t neighbors, std::size_t probes, const RecallEstimate& recall) {
    const Around::Point point = {neighbors, probes, recall.value >= calibration.target_recall};
    if (neighbors <= k && neighbors > found.below.k) found.below = point;
    if (neighbors >= k && (found.above.k == 0 || neighbors < found.above.k)) found.above = point;
  };
  consider(calibration.neighbors, calibration.probes, calibration.recall);
  for (const RecallAtK& other : calibration.other_k) consider(other.k, other.probes, other.recall);
  return found;
}

// log2(k), linear between powers of two: std::log2 may differ between machines in the last bit.
double scale_of(std::size_t k) {
  const int exponent = static_cast<int>(std::bit_width(k)) - 1;
  return exponent - 1 + std::ldexp(static_cast<double>(k), -exponent);
}

}  // namespace

bool Calibration::reached(std::size_t k) const {
  const Around found = around(*this, k);
  if (found.above.k == 0) return found.below.is_reached && found.below.k + 1 >= rows;
  return found.above.is_reached && (found.below.k == 0 || found.below.is_reached);
}

std::size_t ivf::calibrated_probes(const Calibration& calibration, std::size_t k, std::size_t lists) {
  // Only all lists hold all vectors.
  if (k >= calibration.rows || k > max_shard_rows) return lists;
  const auto [below, above] = around(calibration, k);
  if (above.k == 0) return std::min(lists, divide_up(below.probes * k, below.k));
  if (below.k == 0 || below.k == above.k) return above.probes;
  const double share = (scale_of(k) - scale_of(below.k)) / (scale_of(above.k) - scale_of(below.k));
  const double more = static_cast<double>(above.probes) - static_cast<double>(below.probes);
  return static_cast<std::size_t>(std::ceil(static_cast<double>(below.probes) + share * more));
}

}  // namespace nearwise
