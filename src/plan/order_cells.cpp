#include "plan/order_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nearwise::plan {
namespace {

// Steps towards the longest axis: it need not be found exactly.
constexpr int axis_steps = 4;
// Of the cells, a half has at least so many, whatever their mass: bounds the depth.
constexpr std::size_t least_part = 8;

class Bisection {
 public:
  Bisection(MatrixView<const float> centroids, std::span<const std::uint32_t> mass)
      : centroids_(centroids),
        mass_(mass),
        mean_(centroids.cols()),
        axis_(centroids.cols()),
        next_(centroids.cols()),
        along_(centroids.rows()) {}

  void order(std::span<std::uint32_t> cells) {
    if (cells.size() <= 2) return;
    if (!find_axis(cells)) return;  // all in one place
    for (const std::uint32_t cell : cells) along_[cell] = product(cell);
    std::ranges::sort(cells, [&](std::uint32_t left, std::uint32_t right) {
      return along_[left] != along_[right] ? along_[left] < along_[right] : left < right;
    });
    const std::size_t half = half_by_mass(cells);
    order(cells.first(half));
    order(cells.subspan(half));
  }

 private:
  // Of the cell's place from the mean, with the axis.
  double product(std::uint32_t cell) const {
    double sum = 0;
    for (std::size_t i = 0; i < mean_.size(); ++i) sum += (centroids_(cell, i) - mean_[i]) * axis_[i];
    return sum;
  }

  // Power iteration, from the cell that is farthest from the mean. False: there is no axis.
  bool find_axis(std::span<const std::uint32_t> cells) {
    std::ranges::fill(mean_, 0.0);
    for (const std::uint32_t cell : cells)
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += centroids_(cell, i);
    for (double& value : mean_) value /= static_cast<double>(cells.size());
    double farthest = 0;
    for (const std::uint32_t cell : cells) {
      double distance = 0;
      for (std::size_t i = 0; i < mean_.size(); ++i) {
        next_[i] = centroids_(cell, i) - mean_[i];
        distance += next_[i] * next_[i];
      }
      if (distance <= farthest) continue;
      farthest = distance;
      axis_ = next_;
    }
    if (farthest == 0) return false;
    for (int step = 0; step < axis_steps; ++step) {
      std::ranges::fill(next_, 0.0);
      for (const std::uint32_t cell : cells) {
        const double weight = product(cell);
        for (std::size_t i = 0; i < mean_.size(); ++i) next_[i] += weight * (centroids_(cell, i) - mean_[i]);
      }
      const double norm = std::sqrt(std::inner_product(next_.begin(), next_.end(), next_.begin(), 0.0));
      if (!(norm > 0) || !std::isfinite(norm)) return true;  // the last one will do
      std::ranges::transform(next_, axis_.begin(), [norm](double value) { return value / norm; });
    }
    return true;
  }

  std::size_t half_by_mass(std::span<const std::uint32_t> cells) const {
    std::uint64_t all = 0;
    for (const std::uint32_t cell : cells) all += mass_[cell];
    std::uint64_t before = 0;
    std::size_t half = 0;
    while (half < cells.size() && 2 * (before + mass_[cells[half]]) <= all) before += mass_[cells[half++]];
    const std::size_t least = std::max<std::size_t>(1, cells.size() / least_part);
    return std::clamp(half, least, cells.size() - least);
  }

  const MatrixView<const float> centroids_;
  const std::span<const std::uint32_t> mass_;
  std::vector<double> mean_;
  std::vector<double> axis_;
  std::vector<double> next_;
  std::vector<double> along_;
};

}  // namespace

std::vector<std::uint32_t> order_cells(MatrixView<const float> centroids,
                                       std::span<const std::uint32_t> mass) {
  std::vector<std::uint32_t> order(centroids.rows());
  std::iota(order.begin(), order.end(), 0U);
  Bisection(centroids, mass).order(order);
  return order;
}

std::vector<std::uint64_t> cut_order(std::span<const std::uint32_t> order,
                                     std::span<const std::uint32_t> mass, std::size_t groups) {
  std::uint64_t all = 0;
  for (const std::uint32_t cell : order) all += mass[cell];
  std::vector<std::uint64_t> ends;
  std::uint64_t sum = 0;
  std::size_t cell = 0;
  for (std::size_t group = 1; group < groups; ++group) {
    while (cell < order.size() && sum * groups < all * group) sum += mass[order[cell++]];
    ends.push_back(cell);
  }
  ends.push_back(order.size());
  return ends;
}

}  // namespace nearwise::plan
