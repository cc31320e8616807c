#include "cluster/hierarchy.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "backend/stages.h"
#include "cluster/centroid_search.h"
#include "cluster/training.h"
#include "core/checked.h"
#include "core/memory.h"
#include "ops/gather_rows.h"
#include "ops/memory_limit.h"

namespace nearwise::cluster {
namespace {

// The rows of each first-level cluster, ascending.
class Parts {
 public:
  Parts(const Context& context, const RowsView& rows, const KMeans& first_level, Metric metric)
      : members_(*context.state().budget, rows.rows()), ends_(first_level.centroids.rows() + 1, 0) {
    Buffer<std::uint32_t> nearest(*context.state().budget, rows.rows());
    CentroidSearch(context, {.rows = rows, .max_centroids = first_level.centroids.rows(), .metric = metric})
        .nearest(first_level.centroids, nearest.span(), {}, nullptr);
    for (const std::uint32_t part : nearest.span()) ++ends_[part + 1];
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    std::vector<std::size_t> next(ends_.begin(), ends_.end() - 1);
    for (std::size_t row = 0; row < rows.rows(); ++row)
      members_[next[nearest[row]]++] = static_cast<std::uint32_t>(row);
  }

  std::size_t count() const { return ends_.size() - 1; }
  // The rows of this part and those before.
  std::size_t end_of(std::size_t part) const { return ends_[part + 1]; }
  std::span<const std::uint32_t> of(std::size_t part) const {
    return members_.span().subspan(ends_[part], ends_[part + 1] - ends_[part]);
  }

 private:
  Buffer<std::uint32_t> members_;
  std::vector<std::size_t> ends_;  // [parts + 1], from 0
};

// Clusters per part: one if it has rows, and the others in proportion to the remaining rows; never more than
// its rows.
std::vector<std::size_t> shares_of(const Parts& parts, std::size_t rows, std::size_t clusters) {
  std::vector<std::size_t> shares(parts.count(), 0);
  for (std::size_t i = 0; i < parts.count(); ++i) shares[i] = parts.of(i).empty() ? 0 : 1;
  const std::size_t taken = std::accumulate(shares.begin(), shares.end(), std::size_t{0});
  const std::size_t rest = clusters - taken;
  if (rest == 0) return shares;
  struct Remainder {
    std::size_t size;
    std::size_t part;
  };
  std::vector<Remainder> remainders;
  std::size_t dealt = 0;
  for (std::size_t i = 0; i < parts.count(); ++i) {
    if (shares[i] == 0) continue;
    // Both factors have 32 bits, so the product does not overflow.
    const std::size_t product = rest * (parts.of(i).size() - 1);
    shares[i] += product / (rows - taken);
    dealt += product / (rows - taken);
    remainders.push_back({product % (rows - taken), i});
  }
  std::ranges::stable_sort(remainders, std::greater<>(), &Remainder::size);
  for (std::size_t i = 0; dealt < rest; ++i, ++dealt) ++shares[remainders[i].part];
  return shares;
}

// Of the second level, for a part of this many rows.
std::uint64_t part_bytes(const Context& context, const RowsView& rows, std::size_t part_rows,
                         std::size_t clusters, const KMeansOptions& options) {
  const RowsView part = rows.slice(0, part_rows);
  return part_rows * rows.dim() * element_size(rows.type()) + buffer_bytes(0, 1) +
         training_bytes(context, part, std::min(clusters, part_rows), options);
}

// Parts are known after the first level only. A limit for parts of up to this many of the average size is
// tried, and a larger part then refused; a refusal names a limit for parts that are rarely exceeded.
constexpr std::size_t common_parts = 4;
constexpr std::size_t rare_parts = 16;

void check_limit(const char* operation, const Context& context, const RowsView& rows, std::size_t clusters,
                 std::size_t first_clusters, std::uint64_t result_bytes, const KMeansOptions& options) {
  const auto bytes = [&](std::size_t parts, std::uint64_t times) {
    const std::size_t part_rows = std::min(rows.rows(), parts * divide_up(rows.rows(), first_clusters));
    const std::size_t part_clusters = std::min(clusters, parts * divide_up(clusters, first_clusters));
    return result_bytes + std::max(training_bytes(context, rows, first_clusters, options),
                                   2 * buffer_bytes(rows.rows(), sizeof(std::uint32_t)) +
                                       times * part_bytes(context, rows, part_rows, part_clusters, options));
  };
  const MemoryBudget& budget = *context.state().budget;
  // Twice: if clusters are few for its rows, a smaller part copies a sample and trains on it.
  if (bytes(common_parts, 1) > budget.available())
    refuse_limit(operation, budget.limit(), budget.used() + bytes(rare_parts, 2));
}

}  // namespace

KMeans train_hierarchy(const Context& context, const RowsView& rows, std::size_t clusters,
                       const KMeansOptions& options) {
  constexpr const char* operation = "train_hierarchical_kmeans";
  const auto first_clusters = static_cast<std::size_t>(std::sqrt(static_cast<double>(clusters)));
  const std::uint64_t result_bytes =
      buffer_bytes(clusters * rows.dim(), sizeof(float)) + clusters * sizeof(std::size_t);
  check_limit(operation, context, rows, clusters, first_clusters, result_bytes, options);
  const Reservation reservation(*context.state().budget, result_bytes);
  const double first_cost = training_cost(rows, first_clusters, options);
  Stages stages(context, "train_kmeans");
  // Parts have as many rows together, and as many clusters each, but small searches are less efficient.
  constexpr double parts_cost = 3;
  const KMeans first_level =
      train(stages.next(first_cost, parts_cost * first_cost), rows, first_clusters, options);
  const Parts parts(context, rows, first_level, options.metric);
  const std::vector<std::size_t> shares = shares_of(parts, rows.rows(), clusters);

  KMeans result{Matrix<float>(clusters, rows.dim()), {}, {0.0}, true};
  for (std::size_t i = 0; i < parts.count(); ++i) {
    if (shares[i] == 0) continue;
    const std::span<const std::uint32_t> members = parts.of(i);
    check_memory(operation, context, part_bytes(context, rows, members.size(), shares[i], options));
    const GatheredRows gathered(context, rows, members);
    const auto later_rows = static_cast<double>(rows.rows() - parts.end_of(i));
    const KMeans part = train(stages.next(static_cast<double>(members.size()), later_rows), gathered.view(),
                              shares[i], options);
    std::copy_n(part.centroids.data(), shares[i] * rows.dim(),
                result.centroids.row(result.sizes.size()).data());
    result.sizes.insert(result.sizes.end(), part.sizes.begin(), part.sizes.end());
    result.errors[0] += part.errors.back();
    result.converged = result.converged && part.converged;
  }
  stages.finish();
  return result;
}

}  // namespace nearwise::cluster
