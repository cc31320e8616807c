// k-means on a CUDA device: assignments, means, errors and whole trainings equal the CPU's, bit for bit.
#include "nearwise/kmeans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "backend/cuda/cuda_test.h"
#include "cluster/centroid_search.h"
#include "support/device_array.h"
#include "support/kmeans_cases.h"
#include "support/means_cases.h"
#include "support/memory_limits.h"

namespace nearwise {
namespace {

using gpu::error_of;
using support::Kind;
using support::Layout;
using support::Means;
using support::means_of;
using support::MeansCase;
using support::Problem;
using support::Rows;
using support::same;

const Context& cpu() {
  static const Context context = Context::cpu({.threads = 1});
  return context;
}

class CudaKMeans : public gpu::CudaTest, public testing::WithParamInterface<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metrics, CudaKMeans, testing::ValuesIn(support::kmeans_metrics),
                         support::metric_name);

TEST_P(CudaKMeans, MeansOfManyShapes) {
  constexpr std::array<std::size_t, 9> dims = {1, 2, 7, 8, 9, 33, 127, 128, 130};
  constexpr std::array<std::size_t, 5> clusters = {1, 2, 9, 40, 200};
  constexpr std::array kinds = {Kind::normal, Kind::cancelling, Kind::zero_rows, Kind::mixed_ranges};
  constexpr std::array layouts = {Layout::dense, Layout::padded, Layout::unaligned};
  const Context context = Context::cuda(0);
  for (std::uint64_t number = 0; number < 24; ++number) {
    if (!gpu::is_due(number)) continue;
    const Random random = support::random_for(number, support::Purpose::shapes);
    const auto choose = [&](std::uint64_t draw, const auto& from) {
      return from[static_cast<std::size_t>(random.below(draw, from.size()))];
    };
    const MeansCase made = {.rows = 1 + static_cast<std::size_t>(random.below(0, 150)),
                            .dim = choose(1, dims),
                            .clusters = choose(2, clusters),
                            .type = support::every_type[number % support::every_type.size()],
                            .layout = choose(3, layouts),
                            .kind = choose(4, kinds),
                            .metric = GetParam(),
                            .seed = number};
    EXPECT_EQ(means_of(context, made), means_of(cpu(), made)) << describe(made);
  }
}

// Pieces of 4096 rows, split by batches when memory is short.
TEST_P(CudaKMeans, MeansOfLargeClusters) {
  const MeansCase made = {
      .rows = 12'500, .dim = 2, .clusters = 3, .kind = Kind::cancelling, .metric = GetParam(), .seed = 5};
  const Means expected = means_of(cpu(), made);
  ASSERT_GT(expected.ends[0], 4096U);
  for (const std::uint64_t limit : {0, 400'000}) {
    const Context context = Context::cuda(0, {.memory_limit = limit});
    EXPECT_EQ(means_of(context, made), expected) << limit;
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

// Batches of a few rows, or of one.
TEST_P(CudaKMeans, MeansInLittleMemory) {
  const MeansCase made = {.rows = 70, .dim = 5, .clusters = 12, .metric = GetParam(), .seed = 6};
  const Means expected = means_of(cpu(), made);
  const Error refusal = error_of([&] { means_of(Context::cuda(0, {.memory_limit = 1}), made); });
  EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
  for (const std::uint64_t limit : {4'000, 6'000, 10'000}) {
    const Context context = Context::cuda(0, {.memory_limit = limit});
    EXPECT_EQ(means_of(context, made), expected) << limit;
    EXPECT_LE(context.memory_peak(), limit);
  }
}

// As in train_kmeans: the nearest centroid without distances.
std::vector<std::uint32_t> nearest_of(const Context& context, const Problem& problem, Metric metric) {
  const RowsView rows = problem.queries;
  const RowsView base = problem.base;
  std::vector<std::uint32_t> nearest(rows.rows(), 777);
  cluster::CentroidSearch search(
      context, {.rows = rows, .max_centroids = base.rows(), .centroid_type = base.type(), .metric = metric});
  search.nearest(base, nearest, {}, nullptr);
  return nearest;
}

TEST_P(CudaKMeans, AssignsEveryKindOfData) {
  std::uint64_t number = static_cast<std::uint64_t>(GetParam());
  for (const Kind kind : support::every_kind) {
    // Every metric tests another third of the data kinds with each of these.
    const char* const isa = std::array{"f32", "tf32", "bf16"}[++number % 3];
    const bool narrow = number % 4 == 0;
    const Problem problem = support::make_problem({.kind = kind,
                                                   .rows = narrow ? 3UL : 50UL,
                                                   .queries = 10,
                                                   .dim = narrow ? 1UL : 19UL,
                                                   .seed = number});
    EXPECT_EQ(nearest_of(Context::cuda(0, {.isa = isa}), problem, GetParam()),
              nearest_of(cpu(), problem, GetParam()))
        << isa << " " << name(kind) << " seed " << number;
  }
}

TEST_P(CudaKMeans, AssignsRowsOfEveryType) {
  for (const ElementType type : support::every_type)
    for (const std::size_t centroids : {1, 2, 60}) {
      const Problem problem = support::make_problem({.kind = Kind::exact_duplicates,
                                                     .rows = centroids,
                                                     .queries = 12,
                                                     .dim = 10,
                                                     .query_type = type,
                                                     .query_layout = Layout::unaligned,
                                                     .seed = centroids});
      const Context context = Context::cuda(0);
      EXPECT_EQ(nearest_of(context, problem, GetParam()), nearest_of(cpu(), problem, GetParam()))
          << name(type) << " " << centroids;
      const AssignOptions options = {.metric = GetParam()};
      EXPECT_TRUE(same(support::as_expected(assign(cpu(), problem.queries, problem.base, options)),
                       assign(context, problem.queries, problem.base, options)))
          << name(type) << " " << centroids;
    }
}

// Uncertified rows are gathered from host or device memory.
TEST_P(CudaKMeans, AssignsRowsOnTheDevice) {
  const std::size_t dim = 6, rows = 60;
  const Rows data(support::generate(Kind::integers, rows, dim, 4), ElementType::f32);
  const Rows centroids(support::generate(Kind::integers, 30, dim, 5), ElementType::f32);
  const auto* const elements = reinterpret_cast<const float*>(data.view().data());
  support::DeviceArray<float> copied(std::vector<float>(elements, elements + rows * dim));
  const RowsView on_device(copied.data(), ElementType::f32, rows, dim, dim * sizeof(float),
                           {DeviceKind::cuda, 0});
  const auto find = [&](const Context& context, const RowsView& view) {
    std::vector<std::uint32_t> nearest(rows, 777);
    cluster::CentroidSearch(context, {.rows = view, .max_centroids = 30, .metric = GetParam()})
        .nearest(centroids, nearest, {}, nullptr);
    return nearest;
  };
  EXPECT_EQ(find(Context::cuda(0), on_device), find(cpu(), data));
}

void expect_cpu_training(const Rows& data, std::size_t clusters, const KMeansOptions& options) {
  const Context context = Context::cuda(0, {.seed = 3});
  EXPECT_TRUE(same(train_kmeans(Context::cpu({.threads = 1, .seed = 3}), data, clusters, options),
                   train_kmeans(context, data, clusters, options)))
      << data.rows() << " rows in " << clusters << " clusters, " << name(options.metric);
  EXPECT_EQ(context.memory_used(), 0U);
}

TEST_P(CudaKMeans, TrainsToTheBytesOfTheCpu) {
  for (const auto& [rows, dim, clusters, type] :
       {std::tuple<std::size_t, std::size_t, std::size_t, ElementType>{80, 12, 12, ElementType::f32},
        {60, 1, 7, ElementType::f32},
        {40, 30, 1, ElementType::bf16},
        {50, 8, 20, ElementType::u8}})
    expect_cpu_training(Rows(support::generate(Kind::near_duplicates, rows, dim, rows), type), clusters,
                        {.metric = GetParam(), .iterations = 2, .tolerance = 0, .seeding = Seeding::random});
}

// Searches with distances, among one centroid at a time.
TEST_P(CudaKMeans, SeedsAsTheCpuDoes) {
  expect_cpu_training(Rows(support::generate(Kind::normal, 40, 5, 1), ElementType::f32), 4,
                      {.metric = GetParam(), .iterations = 1});
}

TEST_P(CudaKMeans, TrainsInTheLeastMemoryThatIsNamed) {
  const Rows data(support::generate(Kind::integers, 70, 6, 9), ElementType::f32);
  const KMeansOptions options = {
      .metric = GetParam(), .iterations = 2, .tolerance = 0, .seeding = Seeding::random};
  const Error refusal =
      error_of([&] { train_kmeans(Context::cuda(0, {.memory_limit = 1}), data, 9, options); });
  EXPECT_EQ(refusal.code(), ErrorCode::out_of_memory) << refusal.what();
  const std::uint64_t least = std::ranges::max(support::sizes_in(refusal.what()));
  const KMeans expected = train_kmeans(cpu(), data, 9, options);
  for (const std::uint64_t limit : {least, 2 * least}) {
    const Context context = Context::cuda(0, {.memory_limit = limit});
    EXPECT_TRUE(same(expected, train_kmeans(context, data, 9, options))) << limit;
    EXPECT_LE(context.memory_peak(), limit);
    EXPECT_EQ(context.memory_used(), 0U);
  }
}

using CudaHierarchy = gpu::CudaTest;

TEST_F(CudaHierarchy, TrainsTwoLevels) {
  const Rows data(support::generate(Kind::normal, 100, 5, 10), ElementType::f32);
  const KMeansOptions options = {.iterations = 2, .seeding = Seeding::random};
  EXPECT_TRUE(same(train_hierarchical_kmeans(cpu(), data, 9, options),
                   train_hierarchical_kmeans(Context::cuda(0), data, 9, options)));
}

}  // namespace
}  // namespace nearwise
