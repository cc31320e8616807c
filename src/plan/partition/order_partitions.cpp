#include "plan/partition/order_partitions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace nearwise::plan {
namespace {

constexpr int axis_steps = 4;        // power iterations; an approximate axis suffices
constexpr std::size_t min_part = 8;  // each half has at least one in 8 partitions, which bounds the depth

class Bisection {
 public:
  Bisection(const CancelFlag& cancel, MatrixView<const float> centroids, std::span<const double> mass)
      : cancel_(cancel),
        centroids_(centroids),
        mass_(mass),
        mean_(centroids.cols()),
        axis_(centroids.cols()),
        next_(centroids.cols()),
        along_(centroids.rows()) {}

  // Appends the sizes of the groups to `sizes`.
  void cut(std::span<std::uint32_t> partitions, std::size_t groups, std::vector<std::uint64_t>& sizes) {
    if (groups == 1) {
      sizes.push_back(partitions.size());
      return;
    }
    sort(partitions);
    const std::size_t left = groups / 2;
    const std::size_t part =
        part_by_mass(partitions, static_cast<double>(left) / static_cast<double>(groups));
    cut(partitions.first(part), left, sizes);
    cut(partitions.subspan(part), groups - left, sizes);
  }

  void order(std::span<std::uint32_t> partitions) {
    if (partitions.size() <= 2 || !sort(partitions)) return;
    const std::size_t half = part_by_mass(partitions, 0.5);
    order(partitions.first(half));
    order(partitions.subspan(half));
  }

 private:
  // Sorts along the principal axis. False if all centroids coincide.
  bool sort(std::span<std::uint32_t> partitions) {
    if (partitions.size() < 2 || !find_axis(partitions)) return false;
    cancel_.check();
    for (const std::uint32_t partition : partitions) along_[partition] = product(partition);
    std::ranges::sort(partitions, [&](std::uint32_t left, std::uint32_t right) {
      return along_[left] != along_[right] ? along_[left] < along_[right] : left < right;
    });
    return true;
  }

  // Projection of a centroid on the axis.
  double product(std::uint32_t partition) const {
    double sum = 0;
    for (std::size_t i = 0; i < mean_.size(); ++i) sum += (centroids_(partition, i) - mean_[i]) * axis_[i];
    return sum;
  }

  // Power iteration, starting from the centroid farthest from the mean. False if all coincide.
  bool find_axis(std::span<const std::uint32_t> partitions) {
    std::ranges::fill(mean_, 0.0);
    for (const std::uint32_t partition : partitions)
      for (std::size_t i = 0; i < mean_.size(); ++i) mean_[i] += centroids_(partition, i);
    for (double& value : mean_) value /= static_cast<double>(partitions.size());
    double farthest = 0;
    for (const std::uint32_t partition : partitions) {
      double distance = 0;
      for (std::size_t i = 0; i < mean_.size(); ++i) {
        next_[i] = centroids_(partition, i) - mean_[i];
        distance += next_[i] * next_[i];
      }
      if (distance <= farthest) continue;
      farthest = distance;
      axis_ = next_;
    }
    if (farthest == 0) return false;
    for (int step = 0; step < axis_steps; ++step) {
      cancel_.check();
      std::ranges::fill(next_, 0.0);
      for (const std::uint32_t partition : partitions) {
        const double weight = product(partition);
        for (std::size_t i = 0; i < mean_.size(); ++i)
          next_[i] += weight * (centroids_(partition, i) - mean_[i]);
      }
      const double norm = std::sqrt(std::inner_product(next_.begin(), next_.end(), next_.begin(), 0.0));
      if (!(norm > 0) || !std::isfinite(norm)) return true;  // keeps the previous axis
      std::ranges::transform(next_, axis_.begin(), [norm](double value) { return value / norm; });
    }
    return true;
  }

  std::size_t part_by_mass(std::span<const std::uint32_t> partitions, double share) const {
    if (partitions.size() < 2) return partitions.size();
    double all = 0;
    for (const std::uint32_t partition : partitions) all += mass_[partition];
    double before = 0;
    std::size_t part = 0;
    while (part < partitions.size() && before + mass_[partitions[part]] / 2 <= share * all)
      before += mass_[partitions[part++]];
    const std::size_t least = std::max<std::size_t>(1, partitions.size() / min_part);
    return std::clamp(part, least, partitions.size() - least);
  }

  const CancelFlag& cancel_;
  const MatrixView<const float> centroids_;
  const std::span<const double> mass_;
  std::vector<double> mean_;
  std::vector<double> axis_;
  std::vector<double> next_;
  std::vector<double> along_;
};

}  // namespace

PartitionGroups cut_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                               std::span<const double> mass, std::size_t groups) {
  PartitionGroups cut;
  cut.order.resize(centroids.rows());
  std::iota(cut.order.begin(), cut.order.end(), 0U);
  Bisection(cancel, centroids, mass).cut(cut.order, groups, cut.ends);
  std::partial_sum(cut.ends.begin(), cut.ends.end(), cut.ends.begin());
  return cut;
}

void order_partitions(const CancelFlag& cancel, MatrixView<const float> centroids,
                      std::span<const double> mass, PartitionGroups& groups) {
  Bisection bisection(cancel, centroids, mass);
  std::uint64_t begin = 0;
  for (const std::uint64_t end : groups.ends) {
    bisection.order(std::span(groups.order).subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace nearwise::plan
