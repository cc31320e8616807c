// k-means in parts: sums against their definition, and whole trainings against train_kmeans.
#include "nearwise/kmeans_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "nearwise/error.h"
#include "support/kmeans_cases.h"

namespace nearwise {
namespace {

using support::Kind;
using support::Rows;
using support::same;

class KMeansParts : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, KMeansParts, testing::ValuesIn(support::kmeans_metrics),
                         support::metric_name);

std::vector<KMeansBlock> blocks_of(const RowsView& rows, Metric metric, std::size_t block_rows) {
  std::vector<KMeansBlock> blocks;
  for (std::size_t first = 0; first < rows.rows(); first += block_rows)
    blocks.push_back({rows.slice(first, std::min(block_rows, rows.rows() - first)), first, metric});
  return blocks;
}

void add(ClusterSums& to, const ClusterSums& from) {
  for (std::size_t i = 0; i < to.sums.rows() * to.sums.cols(); ++i) to.sums.data()[i] += from.sums.data()[i];
  for (std::size_t c = 0; c < to.sizes.size(); ++c) {
    to.sizes[c] += from.sizes[c];
    to.errors[c] += from.errors[c];
  }
}

// As the head of the header says.
KMeans train_in_blocks(const Context& context, const RowsView& rows, std::size_t clusters,
                       const KMeansOptions& options, std::size_t block_rows) {
  const std::vector<KMeansBlock> blocks = blocks_of(rows, options.metric, block_rows);
  KMeans result;
  result.centroids = seed_kmeans(context, rows, clusters, options);
  for (std::size_t iteration = 0; iteration < options.iterations && !result.converged; ++iteration) {
    ClusterSums sums = sum_clusters(context, blocks[0], result.centroids);
    for (std::size_t i = 1; i < blocks.size(); ++i)
      add(sums, sum_clusters(context, blocks[i], result.centroids));
    const double error = std::accumulate(sums.errors.begin(), sums.errors.end(), 0.0);
    result.converged =
        error == 0 || (!result.errors.empty() && result.errors.back() - error <= options.tolerance * error);
    result.errors.push_back(error);
    result.sizes.assign(sums.sizes.begin(), sums.sizes.end());
    Matrix<float> moved = move_centroids(sums, result.centroids, options.metric);
    if (!result.converged && iteration + 1 < options.iterations) {
      const std::vector<ClusterSplit> splits = choose_splits(sums);
      std::map<std::size_t, std::vector<std::pair<double, std::uint64_t>>> drawn;
      for (const KMeansBlock& block : blocks)
        for (const SplitRow& row :
             draw_split_rows(context, block, result.centroids, moved, splits, iteration))
          drawn[row.cluster].emplace_back(row.time, row.row);
      auto empty = std::ranges::find(sums.sizes, 0U);
      for (const ClusterSplit& split : splits) {
        std::ranges::sort(drawn[split.cluster]);
        drawn[split.cluster].resize(std::min(split.rows, drawn[split.cluster].size()));
        for (const auto& [time, row] : drawn[split.cluster]) {
          const Matrix<float> centroid =
              seed_kmeans(context, rows, 1, {.metric = options.metric, .initial = rows.slice(row, 1)});
          std::ranges::copy(centroid.row(0),
                            moved.row(static_cast<std::size_t>(empty - sums.sizes.begin())).begin());
          empty = std::ranges::find(empty + 1, sums.sizes.end(), 0U);
        }
      }
    }
    result.centroids = std::move(moved);
  }
  return result;
}

// The first rows as centroids. Sums of a cut into blocks of 50 rows are those of the oracle, in another
// order.
TEST_P(KMeansParts, SumsAreThoseOfTheDefinition) {
  std::uint64_t seed = 500;
  for (const ElementType type : support::every_type)
    for (const auto& [rows, dim, clusters] : {std::tuple<std::size_t, std::size_t, std::size_t>{200, 7, 5},
                                              {131, 16, 9},
                                              {70, 33, 3},
                                              {1, 1, 1}}) {
      const Rows data(support::generate(Kind::normal, rows, dim, ++seed), type, support::Layout::unaligned);
      const Matrix<float> centroids = seed_kmeans(
          Context::cpu(), data, clusters, {.metric = GetParam(), .initial = data.view().slice(0, clusters)});
      const oracle::Clustering expected = oracle::lloyd(data, data.view().slice(0, clusters), 1, GetParam());
      for (const Context& context : support::every_instruction_set()) {
        SCOPED_TRACE(testing::Message() << name(type) << " " << rows << " rows, " << context.isa());
        const std::vector<KMeansBlock> blocks = blocks_of(data, GetParam(), 50);
        ClusterSums sums = sum_clusters(context, blocks[0], centroids);
        for (std::size_t i = 1; i < blocks.size(); ++i)
          add(sums, sum_clusters(context, blocks[i], centroids));
        EXPECT_TRUE(std::ranges::equal(sums.sizes, expected.sizes));
        EXPECT_NEAR(std::accumulate(sums.errors.begin(), sums.errors.end(), 0.0), expected.errors[0],
                    1e-10 * expected.errors[0]);
        const Matrix<float> moved = move_centroids(sums, centroids, GetParam());
        for (std::size_t i = 0; i < clusters * dim; ++i)
          EXPECT_NEAR(moved.data()[i], expected.centroids[i], 1e-6 * std::abs(expected.centroids[i]) + 1e-9);
      }
    }
}

TEST_P(KMeansParts, OneBlockIsTrainKMeans) {
  for (const Kind kind : {Kind::normal, Kind::near_duplicates, Kind::exact_duplicates, Kind::zero_rows}) {
    SCOPED_TRACE(name(kind));
    const Rows data(support::generate(kind, 3000, 12, 20), ElementType::f32);
    for (const Seeding seeding : {Seeding::plus_plus, Seeding::random}) {
      const KMeansOptions options = {
          .metric = GetParam(), .iterations = 6, .tolerance = 0, .seeding = seeding};
      const Context context = Context::cpu({.seed = 5});
      EXPECT_TRUE(
          same(train_kmeans(context, data, 40, options), train_in_blocks(context, data, 40, options, 3000)));
    }
  }
}

// All centroids at one place: the first takes all rows, and the others are drawn from them, seven by the
// first split.
TEST_P(KMeansParts, EmptyClustersAreSplitByTheSameRule) {
  const std::size_t clusters = 8;
  const Rows data(support::separate_clusters(800, 10, clusters, 7), ElementType::f32);
  const Rows initial(support::repeated(support::separate_clusters(1, 10, 1, 8), clusters), ElementType::f32);
  const KMeansOptions options = {.metric = GetParam(), .iterations = 3, .tolerance = 0, .initial = initial};
  const KMeans expected = train_kmeans(Context::cpu(), data, clusters, options);
  ASSERT_EQ(expected.errors.size(), 3U);
  ASSERT_LT(expected.errors[1], 0.9 * expected.errors[0]);
  EXPECT_TRUE(same(expected, train_in_blocks(Context::cpu(), data, clusters, options, 800)));
  // Sums in other orders may round otherwise: who is drawn does not depend on it here.
  const KMeans parts = train_in_blocks(Context::cpu(), data, clusters, options, 77);
  EXPECT_EQ(parts.sizes, expected.sizes);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(parts.errors[i], expected.errors[i], 1e-4 * expected.errors[0]);
}

TEST_P(KMeansParts, TheSameBytesByThreadsInLittleMemory) {
  const Rows data(support::generate(Kind::near_duplicates, 9000, 8, 3), ElementType::f32);
  const KMeansOptions options = {.metric = GetParam(), .iterations = 4, .tolerance = 0};
  const KMeans expected = train_in_blocks(Context::cpu({.threads = 1}), data, 30, options, 2500);
  for (const int threads : {2, 5}) {
    const Context context = Context::cpu({.threads = threads, .memory_limit = 1'500'000});
    EXPECT_TRUE(same(expected, train_in_blocks(context, data, 30, options, 2500))) << threads;
  }
}

// Rows are searched in tiles of 65536, which are not kept: a block is looked at once.
TEST(KMeansPartsMemory, IsThatOfATileWhateverTheRows) {
  constexpr std::size_t tile = 65536;
  const Rows data(support::generate(Kind::normal, 4 * tile, 16, 1), ElementType::f32);
  const Matrix<float> centroids = seed_kmeans(Context::cpu(), data, 3);
  const auto peak = [&](std::size_t rows) {
    const Context context = Context::cpu({.threads = 1});
    sum_clusters(context, {data.view().slice(0, rows)}, centroids);
    return context.memory_peak();
  };
  EXPECT_LE(peak(4 * tile), peak(tile) + 3 * tile * 2 * sizeof(std::uint32_t) + 4096);
}

TEST(KMeansPartsArguments, AreNamed) {
  const Rows data(support::generate(Kind::normal, 50, 4, 1), ElementType::f32);
  const Matrix<float> centroids = seed_kmeans(Context::cpu(), data, 3);
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  const auto sum = [&](const KMeansBlock& block) { return sum_clusters(Context::cpu(), block, centroids); };
  EXPECT_EQ(sum({data.view().slice(0, 0)}).sizes, std::vector<std::uint64_t>(3, 0));
  EXPECT_NE(message([&] {
              sum({data, 0, Metric::euclidean});
            }).find("must be sqeuclidean"),
            std::string::npos);
  support::Values values = support::generate(Kind::normal, 50, 4, 1);
  values(17, 2) = std::numeric_limits<double>::infinity();
  const Rows broken(values, ElementType::f32);
  EXPECT_NE(message([&] { sum({broken, 1000}); }).find("row 1017 holds NaN or infinity"), std::string::npos);
  EXPECT_NE(message([&] { seed_kmeans(Context::cpu(), broken, 3); }).find("row 17 holds NaN or infinity"),
            std::string::npos);
  EXPECT_NE(message([&] {
              seed_kmeans(Context::cpu(), data, 51);
            }).find("seed_kmeans: there must be at most as many clusters as rows"),
            std::string::npos);
  for (const KMeansOptions& options :
       {KMeansOptions{.metric = Metric::euclidean}, KMeansOptions{.initial = data.view().slice(0, 2)}})
    EXPECT_TRUE(message([&] { seed_kmeans(Context::cpu(), data, 3, options); }).starts_with("seed_kmeans: "));
  EXPECT_TRUE(message([&] {
                train_hierarchical_kmeans(Context::cpu(), data, 51);
              }).starts_with("train_hierarchical_kmeans: "));
  EXPECT_NE(message([&] {
              sum_clusters(Context::cpu({.memory_limit = 1000}), {data}, centroids);
            }).find("sum_clusters: the memory limit of 1000 B is too small"),
            std::string::npos);
  const std::vector<ClusterSplit> beyond = {{3, 1}};
  EXPECT_NE(message([&] {
              draw_split_rows(Context::cpu(), {data}, centroids, centroids, beyond, 0);
            }).find("there are 3 clusters, got 1 rows of cluster 3"),
            std::string::npos);
}

}  // namespace
}  // namespace nearwise
