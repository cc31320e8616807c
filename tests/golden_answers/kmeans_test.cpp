// k-means: trained, in parts, hierarchical, balanced, by mini-batches; and rows assigned to centroids.
#include "nearwise/kmeans.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "nearwise/kmeans_parts.h"

namespace nearwise::golden {
namespace {

using support::Rows;

constexpr Metric kmeans_metrics[] = {Metric::sqeuclidean, Metric::inner_product, Metric::cosine};

void expect_kmeans(const std::string& name, const KMeans& trained) {
  expect(name, [&](Digest& digest) {
    digest.add(trained.centroids);
    digest.add(trained.sizes);
    digest.add(trained.errors);
    digest.add(trained.converged);
  });
}

TEST(GoldenKMeans, TrainOnEveryTypeAndMetric) {
  std::size_t number = 0;
  for (const Metric metric : kmeans_metrics)
    for (const ElementType type : every_type) {
      if (!is_due(number++, 4)) continue;
      const Rows rows = make_rows(900, 19, 21, type);
      for (const Context& context : every_context())
        expect_kmeans(name_of("kmeans", type, metric),
                      train_kmeans(context, rows, 20, {.metric = metric, .iterations = 6}));
    }
}

TEST(GoldenKMeans, TrainWithEveryOption) {
  std::size_t number = 0;
  for (const Metric metric : kmeans_metrics) {
    if (!is_due(number++, 3)) continue;
    const std::string ending = std::string(name(metric));
    const Rows rows = make_rows(900, 32, 22);
    const auto expect_trained = [&](const std::string& name, KMeansOptions options) {
      options.metric = metric;
      expect_kmeans("kmeans." + name + "." + ending, train_kmeans(context(), rows, 24, options));
    };
    expect_trained("random", {.iterations = 5, .seeding = Seeding::random});
    expect_trained("initial", {.iterations = 5, .initial = rows.view().slice(100, 24)});
    expect_trained("least_rows", {.iterations = 5, .min_cluster_size = 20});
    expect_trained("balance", {.iterations = 5, .balance = 1.2});
    expect_trained("batch", {.iterations = 8, .batch_size = 300});
    expect_trained("to_the_end", {.iterations = 40, .tolerance = 0});
    expect_kmeans("kmeans.hierarchical." + ending,
                  train_hierarchical_kmeans(context(), rows, 64, {.metric = metric, .iterations = 4}));
  }
}

TEST(GoldenKMeans, Assign) {
  for (const ElementType type : every_type)
    for (const Metric metric : every_metric) {
      const Rows rows = make_rows(700, 19, 23, type);
      const Rows centroids = make_rows(31, 19, 24);
      const std::string name = name_of("assign", type, metric);
      for (const Context& context : every_context())
        expect_answer(name, assign(context, rows, centroids, {.metric = metric}));
      expect_answer(name + ".balance",
                    assign(context(), rows, centroids, {.metric = metric, .balance = 1.25}));
    }
}

void add_to(ClusterSums& sums, const ClusterSums& others) {
  for (std::size_t i = 0; i < sums.sums.rows() * sums.sums.cols(); ++i)
    sums.sums.data()[i] += others.sums.data()[i];
  for (std::size_t i = 0; i < sums.sizes.size(); ++i) {
    sums.sizes[i] += others.sizes[i];
    sums.errors[i] += others.errors[i];
  }
}

TEST(GoldenKMeans, Parts) {
  const Rows rows = make_rows(600, 19, 25);
  for (const Metric metric : kmeans_metrics) {
    const std::string ending = std::string(name(metric));
    Matrix<float> centroids = seed_kmeans(context(), rows, 16, {.metric = metric});
    expect_answer("kmeans_parts.seeds." + ending, centroids);
    // Of two equal centroids the second gets no rows.
    std::ranges::copy(centroids.row(3), centroids.row(9).begin());
    const KMeansBlock blocks[] = {{rows.view().slice(0, 350), 0, metric},
                                  {rows.view().slice(350, 250), 350, metric}};
    ClusterSums sums = sum_clusters(context(), blocks[0], centroids);
    add_to(sums, sum_clusters(context(), blocks[1], centroids));
    expect("kmeans_parts.sums." + ending, [&](Digest& digest) {
      digest.add(sums.sums);
      digest.add(sums.sizes);
      digest.add(sums.errors);
    });
    const Matrix<float> moved = move_centroids(sums, centroids, metric);
    expect_answer("kmeans_parts.moved." + ending, moved);
    const std::vector<ClusterSplit> splits = choose_splits(sums);
    ASSERT_FALSE(splits.empty());
    std::vector<SplitRow> drawn;
    for (const KMeansBlock& block : blocks)
      for (const SplitRow& row : draw_split_rows(context(), block, centroids, moved, splits, 2))
        drawn.push_back(row);
    expect("kmeans_parts.splits." + ending, [&](Digest& digest) {
      for (const ClusterSplit& split : splits) {
        digest.add(split.cluster);
        digest.add(split.rows);
      }
      for (const SplitRow& row : drawn) {
        digest.add(row.cluster);
        digest.add(row.row);
      }
    });
    expect("kmeans_parts.split_times." + ending, [&](Digest& digest) {
      for (const SplitRow& row : drawn) digest.add(row.time);
    });
  }
}

}  // namespace
}  // namespace nearwise::golden
