#include "cluster/balance.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "cluster/centroid_search.h"
#include "core/checked.h"
#include "core/memory.h"
#include "ops/gather_rows.h"

namespace nearwise::cluster {
namespace {

// Scattered rows gathered per search.
constexpr std::size_t batch_size = 8192;

// Rooms and sizes; followers, open clusters and those asked.
std::uint64_t list_bytes(std::size_t clusters) {
  return clusters * (2 * sizeof(std::size_t) + 3 * sizeof(std::uint32_t));
}

CentroidSearchArgs search_args(const RowsView& batch, std::size_t clusters, ElementType centroid_type,
                               Metric metric) {
  return {.rows = batch,
          .max_centroids = clusters,
          .centroid_type = centroid_type,
          .metric = metric,
          .distances = true};
}

class Balancing {
 public:
  Balancing(const Context& context, const BalanceArgs& args)
      : context_(context),
        args_(args),
        lists_(budget(), list_bytes(args.centroids.rows())),
        rooms_(args.centroids.rows(), args.max_rows),
        followers_(args.centroids.rows()) {
    std::iota(followers_.begin(), followers_.end(), 0U);
  }

  void run() {
    std::span<std::uint32_t> waiting = take(crowded_rows());
    while (!waiting.empty()) {
      context_.state().cancel.check();
      // In memory or file order.
      std::ranges::sort(waiting);
      ask(waiting);
      waiting = take(waiting);
    }
  }

 private:
  MemoryBudget& budget() const { return *context_.state().budget; }

  // Accepts all proposals to clusters with enough room; returns the rows of the others.
  std::span<std::uint32_t> crowded_rows() {
    std::vector<std::size_t> sizes(rooms_.size(), 0);
    for (const std::uint32_t cluster : args_.nearest) ++sizes[cluster];
    std::size_t count = 0;
    for (std::size_t row = 0; row < args_.nearest.size(); ++row)
      if (sizes[args_.nearest[row]] > args_.max_rows)
        args_.scratch[count++] = static_cast<std::uint32_t>(row);
    for (std::size_t c = 0; c < rooms_.size(); ++c)
      if (sizes[c] <= args_.max_rows) rooms_[c] -= sizes[c];
    return args_.scratch.first(count);
  }

  bool comes_before(std::uint32_t left, std::uint32_t right) const {
    if (args_.nearest[left] != args_.nearest[right]) return args_.nearest[left] < args_.nearest[right];
    const float distance = args_.distances[left];
    const float other = args_.distances[right];
    if (distance != other) return (args_.metric == Metric::inner_product) == (distance > other);
    return left < right;
  }

  // Every row proposes to centroid `nearest`, or to one equal to it. Returns the refused rows.
  std::span<std::uint32_t> take(std::span<std::uint32_t> asking) {
    std::ranges::sort(asking,
                      [&](std::uint32_t left, std::uint32_t right) { return comes_before(left, right); });
    std::size_t refused = 0;
    std::uint32_t asked = 0;    // by the previous row
    std::uint32_t cluster = 0;  // the same, or the equal centroid being filled
    for (const std::uint32_t row : asking) {
      if (args_.nearest[row] != asked) cluster = asked = args_.nearest[row];
      while (rooms_[cluster] == 0 && followers_[cluster] != cluster) cluster = followers_[cluster];
      if (rooms_[cluster] == 0) {
        asking[refused++] = row;
      } else {
        --rooms_[cluster];
        args_.nearest[row] = cluster;
      }
    }
    return asking.first(refused);
  }

  // Centroids with room; of several equal ones only the first, to which the others are linked.
  std::vector<std::uint32_t> open_centroids() {
    std::vector<std::uint32_t> open;
    for (std::size_t c = 0; c < rooms_.size(); ++c)
      if (rooms_[c] > 0) open.push_back(static_cast<std::uint32_t>(c));
    const std::size_t bytes = row_bytes_of(args_.centroids);
    const auto compare = [&](std::uint32_t left, std::uint32_t right) {
      return std::memcmp(args_.centroids.row(left), args_.centroids.row(right), bytes);
    };
    std::ranges::sort(open, [&](std::uint32_t left, std::uint32_t right) {
      const int difference = compare(left, right);
      return difference != 0 ? difference < 0 : left < right;
    });
    std::size_t distinct = 0;
    bool follows = false;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::uint32_t cluster = open[i];
      const bool followed = i + 1 < open.size() && compare(cluster, open[i + 1]) == 0;
      followers_[cluster] = followed ? open[i + 1] : cluster;
      if (!follows) open[distinct++] = cluster;
      follows = followed;
    }
    open.resize(distinct);
    std::ranges::sort(open);
    return open;
  }

  // Finds the nearest open centroid of every row.
  void ask(std::span<const std::uint32_t> waiting) {
    const std::vector<std::uint32_t> open = open_centroids();
    const GatheredRows centroids(context_, args_.centroids, open);
    const std::size_t most = std::min(batch_size, waiting.size());
    const std::size_t row_bytes = row_bytes_of(args_.rows);
    Buffer<std::byte> gathered(budget(), most * row_bytes);
    Buffer<std::uint32_t> ids(budget(), most);
    Buffer<float> distances(budget(), most);
    for (std::size_t first = 0; first < waiting.size(); first += most) {
      const auto rows = waiting.subspan(first, std::min(most, waiting.size() - first));
      gather_rows(context_, args_.rows, rows, gathered.data());
      const RowsView batch(gathered.data(), args_.rows.type(), rows.size(), args_.rows.dim(), row_bytes);
      CentroidSearch(context_, search_args(batch, open.size(), args_.centroids.type(), args_.metric))
          .nearest(centroids.view(), ids.span().first(rows.size()), distances.span().first(rows.size()),
                   nullptr);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        args_.nearest[rows[i]] = open[ids[i]];
        args_.distances[rows[i]] = distances[i];
      }
    }
  }

  const Context& context_;
  const BalanceArgs& args_;
  const Reservation lists_;
  std::vector<std::size_t> rooms_;        // [clusters] remaining room in rows
  std::vector<std::uint32_t> followers_;  // [clusters] the next equal centroid; itself if none
};

}  // namespace

std::size_t max_cluster_rows(std::size_t rows, std::size_t clusters, double balance) {
  const double share = static_cast<double>(rows) / static_cast<double>(clusters);
  const double most = std::min(balance * share, static_cast<double>(rows));
  return std::max(divide_up(rows, clusters), static_cast<std::size_t>(most));
}

std::uint64_t balance_bytes(const Context& context, const RowsView& rows, std::size_t clusters,
                            ElementType centroid_type, Metric metric) {
  const std::size_t most = std::min(batch_size, rows.rows());
  return list_bytes(clusters) + buffer_bytes(clusters * rows.dim() * element_size(centroid_type), 1) +
         buffer_bytes(most * row_bytes_of(rows), 1) + buffer_bytes(most, sizeof(std::uint32_t)) +
         buffer_bytes(most, sizeof(float)) +
         CentroidSearch::min_bytes(context,
                                   search_args(rows.slice(0, most), clusters, centroid_type, metric));
}

void balance_clusters(const Context& context, const BalanceArgs& args) { Balancing(context, args).run(); }

}  // namespace nearwise::cluster
