// The recall of inverted files for other numbers of neighbours than 10.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <vector>

#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "ivf/ivf_state.h"
#include "nearwise/exact.h"
#include "nearwise/ivf.h"
#include "support/error_of.h"
#include "support/filter_cases.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;

constexpr std::size_t base_rows = 4000;
constexpr double target = 0.9;

Context one_thread() { return Context::cpu({.threads = 1, .seed = 5}); }

// Queries of the distribution of the base, none of them in it.
const support::Problem& problem() {
  static const support::Problem made = support::make_problem(
      {.kind = support::Kind::normal, .rows = base_rows, .queries = 400, .dim = 12, .seed = 83});
  return made;
}

double recall_of(const Neighbors& found, const Neighbors& truth) {
  std::size_t hits = 0;
  for (std::size_t query = 0; query < truth.ids.rows(); ++query) {
    std::vector<Id> ids(found.ids.row(query).begin(), found.ids.row(query).end());
    std::ranges::sort(ids);
    for (const Id id : truth.ids.row(query)) hits += std::ranges::binary_search(ids, id) ? 1 : 0;
  }
  return static_cast<double>(hits) / static_cast<double>(truth.ids.rows() * truth.ids.cols());
}

double recall_at(const Ivf& index, std::size_t k, const IvfSearchOptions& options = {}) {
  return recall_of(index.search(one_thread(), problem().queries, k, options),
                   knn(one_thread(), problem().queries, problem().base, k,
                       {.metric = index.metric(), .short_rows = ShortRows::pad, .filter = options.filter}));
}

class EveryEncoding : public testing::TestWithParam<std::tuple<std::string, Encoding>> {};
INSTANTIATE_TEST_SUITE_P(Ivf, EveryEncoding,
                         testing::Values(std::tuple("Flat", Encoding(Flat{})),
                                         std::tuple("Pq", Encoding(Pq{.code_bytes = 4})),
                                         std::tuple("Lsq", Encoding(Lsq{.code_bytes = 4, .rounds = 2}))),
                         [](const auto& tested) { return std::get<0>(tested.param); });

TEST_P(EveryEncoding, UnseenQueriesReachTheTarget) {
  const Ivf index =
      Ivf::build(one_thread(), problem().base, {.lists = 100, .encoding = std::get<1>(GetParam())},
                 CalibrationOptions{.target_recall = target});
  ASSERT_TRUE(index.calibration()->reached());
  for (const std::size_t k : {1UL, 3UL, 10UL, 30UL, 60UL, 100UL}) {
    SCOPED_TRACE(k);
    EXPECT_TRUE(index.calibration()->reached(k));
    EXPECT_GE(recall_at(index, k), target - 0.005);
  }
  // As many lists as for 10 are not enough, and all are more than it takes.
  EXPECT_LT(recall_at(index, 100, {.probes = index.probes()}), target - 0.01);
  EXPECT_LT(index.probes(100), index.lists());
  EXPECT_FALSE(index.calibration()->reached(101));
  EXPECT_GE(recall_at(index, 300), target - 0.005);  // said to be unknown, but not less
}

TEST_P(EveryEncoding, UnderAFilterToo) {
  const Ivf index =
      Ivf::build(one_thread(), problem().base, {.lists = 100, .encoding = std::get<1>(GetParam())},
                 CalibrationOptions{.target_recall = target});
  std::vector<std::uint8_t> mask(base_rows);
  for (std::size_t id = 0; id < base_rows; ++id) mask[id] = id % 2 == 0 ? 1 : 0;
  const Filter filter = Filter::mask(mask);
  for (const std::size_t k : {1UL, 10UL, 100UL})
    EXPECT_GE(recall_at(index, k, {.filter = filter}), target - 0.005) << k;
}

Calibration calibration(std::vector<RecallAtK> other_k) {
  const RecallEstimate good = {.value = 0.95, .low = 0.9, .high = 1, .rows = 10};
  return {.probes = 20,
          .recall = good,
          .recall_without_rerank = good,
          .target_recall = 0.9,
          .neighbors = 10,
          .rows = 50'000,
          .other_k = std::move(other_k)};
}

RecallAtK at(std::size_t k, std::size_t probes, double recall = 0.95) {
  return {.k = k, .probes = probes, .recall = {.value = recall, .low = 0, .high = 1, .rows = 10}};
}

TEST(CalibratedProbes, GrowWithK) {
  const Calibration measured = calibration({at(1, 20), at(100, 65)});
  const auto probes = [&](std::size_t k) { return ivf::calibrated_probes(measured, k, 1000); };
  for (std::size_t k = 1; k <= 10; ++k) EXPECT_EQ(probes(k), 20U);
  EXPECT_EQ(probes(100), 65U);
  for (std::size_t k = 11; k <= 1500; ++k) EXPECT_GE(probes(k), probes(k - 1));
  // Above the power law through both: 20 (65 / 20)^0.5 = 36.06.
  EXPECT_GE(probes(32), 37U);
  EXPECT_LE(probes(32), 45U);
  EXPECT_EQ(probes(1000), 650U);
  EXPECT_EQ(probes(2000), 1000U);
  EXPECT_EQ(probes(50'000), 1000U);
  EXPECT_EQ(probes(~std::size_t{0}), 1000U);
}

TEST(CalibratedProbes, OneNeighbourMayBeTheHardest) {
  const Calibration measured = calibration({at(1, 60)});
  const auto probes = [&](std::size_t k) { return ivf::calibrated_probes(measured, k, 1000); };
  EXPECT_EQ(probes(1), 60U);
  EXPECT_EQ(probes(10), 20U);
  for (std::size_t k = 2; k <= 10; ++k) EXPECT_LE(probes(k), probes(k - 1));
  EXPECT_GT(probes(5), 20U);
}

// Files of format 1.0 have no other k.
TEST(CalibratedProbes, WithTenNeighboursOnly) {
  const Calibration measured = calibration({});
  EXPECT_EQ(ivf::calibrated_probes(measured, 1, 1000), 20U);
  EXPECT_EQ(ivf::calibrated_probes(measured, 10, 1000), 20U);
  EXPECT_EQ(ivf::calibrated_probes(measured, 15, 1000), 30U);
  EXPECT_TRUE(measured.reached(3));
  EXPECT_TRUE(measured.reached());
  EXPECT_FALSE(measured.reached(11));
}

TEST(CalibrationReached, ByTheNextKBelowAndAbove) {
  const Calibration missed = calibration({at(1, 20), at(100, 65, 0.89)});
  EXPECT_TRUE(missed.reached(1));
  EXPECT_TRUE(missed.reached(10));
  EXPECT_FALSE(missed.reached(11));
  EXPECT_FALSE(missed.reached(100));
  const Calibration first = calibration({at(1, 20, 0.89), at(100, 65)});
  EXPECT_FALSE(first.reached(1));
  EXPECT_FALSE(first.reached(9));
  EXPECT_TRUE(first.reached(10));
  EXPECT_TRUE(first.reached(100));
  EXPECT_FALSE(first.reached(101));
  Calibration all = calibration({at(100, 65)});
  all.rows = 101;
  EXPECT_TRUE(all.reached(101));
  EXPECT_TRUE(all.reached(5000));
}

TEST(CalibrateK, TheLargestIsChosen) {
  Ivf index = Ivf::build(one_thread(), problem().base, {.lists = 100});
  ASSERT_EQ(index.calibration()->other_k.size(), 2U);
  EXPECT_EQ(index.calibration()->other_k[0].k, 1U);
  EXPECT_EQ(index.calibration()->other_k[1].k, 100U);
  const std::size_t ten = index.probes();
  const Calibration wide = index.calibrate(one_thread(), {.target_recall = target, .largest_k = 400});
  EXPECT_EQ(wide.other_k.back().k, 400U);
  EXPECT_EQ(wide.probes, ten);
  EXPECT_TRUE(wide.reached(400));
  EXPECT_GE(recall_at(index, 400), target - 0.005);
  const Calibration narrow = index.calibrate(one_thread(), {.largest_k = 5});
  EXPECT_EQ(narrow.other_k.size(), 1U);
  const Error error = error_of([&] { index.calibrate(one_thread(), {.largest_k = 0}); });
  EXPECT_NE(std::string(error.what()).find("largest_k must be 1 to"), std::string::npos);
}

TEST(CalibrateK, FewVectorsAreAllMeasured) {
  const RowsView few = RowsView(problem().base).slice(0, 50);
  const Ivf index = Ivf::build(one_thread(), few, {.lists = 5});
  EXPECT_EQ(index.calibration()->other_k.back().k, 49U);
  EXPECT_TRUE(index.calibration()->reached(1000));
  const Neighbors found = index.search(one_thread(), problem().queries, 60);
  for (std::size_t query = 0; query < found.ids.rows(); ++query)
    EXPECT_EQ(std::ranges::count(found.ids.row(query), no_id), 10);
  const Ivf two = Ivf::build(one_thread(), few.slice(0, 2), {.lists = 1});
  EXPECT_TRUE(two.calibration()->other_k.empty());
}

TEST(CalibrateKFile, ComesBackOrIsDamaged) {
  const testing_io::TemporaryFolder folder;
  const Ivf index = Ivf::build(one_thread(), problem().base, {.lists = 100});
  save(index, folder / "index.nw");
  const Ivf loaded = load_ivf(one_thread(), folder / "index.nw");
  EXPECT_EQ(loaded.calibration(), index.calibration());
  EXPECT_EQ(loaded.probes(100), index.probes(100));
  const std::vector<std::byte> good = testing_io::read_all(folder / "index.nw");
  for (const auto& [from, to] :
       {std::pair{"\"k\":100", "\"k\":001"}, std::pair{"\"k\":100", "\"k\":1  "},
        std::pair{"\"k\":100", "\"k\":10 "}, std::pair{"\"k\":1,", "\"k\":0,"},
        std::pair{"\"k\":100", "\"l\":100"}, std::pair{"\"k\":100", "\"k\":-10"},
        std::pair{"\"neighbors\":10", "\"neighbors\":0 "}, std::pair{"\"other_k\":[", "\"other_k\":3}"}}) {
    std::vector<std::byte> changed = good;
    const auto* const text = reinterpret_cast<const std::byte*>(from);
    const auto place = std::search(changed.begin(), changed.end(), text, text + std::string(from).size());
    ASSERT_NE(place, changed.end()) << from;
    std::ranges::transform(std::string(to), place,
                           [](char letter) { return static_cast<std::byte>(letter); });
    testing_io::reseal(changed);
    testing_io::write_all(folder / "changed.nw", changed);
    EXPECT_EQ(error_of([&] { load_ivf(one_thread(), folder / "changed.nw"); }).code(), ErrorCode::corrupt)
        << to;
  }
}

}  // namespace
}  // namespace nearwise
