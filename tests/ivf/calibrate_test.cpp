// The measured defaults of an inverted file, against a count of the truth by the oracle.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "io/reseal.h"
#include "io/temporary_folder.h"
#include "nearwise/ivf.h"
#include "nearwise/storage.h"
#include "oracle/knn.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using support::error_of;
using support::Kind;
using support::Problem;

constexpr std::size_t base_rows = 600;

const Context& one_thread() {
  static const Context context = Context::cpu({.threads = 1, .seed = 5});
  return context;
}

const Problem& problem() {
  static const Problem made = support::make_problem({.kind = Kind::normal,
                                                     .rows = base_rows,
                                                     .queries = 5,
                                                     .dim = 12,
                                                     .base_layout = support::Layout::dense,
                                                     .seed = 81});
  return made;
}

// Every row is searched for: nothing is left to the drawing of a sample.
constexpr CalibrationOptions every_row = {.queries = base_rows};

// 10-recall@10 of all rows of `ids` as queries, none being its own neighbour.
double recall_by_oracle(const Ivf& index, RowsView base, std::size_t probes, std::size_t candidates) {
  const oracle::Answer truth = oracle::knn(base, base, 11, index.metric());
  const Neighbors found =
      index.search(one_thread(), base, 11,
                   {.probes = probes,
                    .codes_only = candidates == 0,
                    .candidates = candidates != 0 ? std::optional(candidates) : std::nullopt});
  std::size_t hits = 0;
  for (std::size_t row = 0; row < base.rows(); ++row) {
    const auto first_ten = [&](const Id* ids) {
      std::vector<Id> others;
      for (std::size_t i = 0; i < 11; ++i)
        if (ids[i] != static_cast<Id>(row) && others.size() < 10) others.push_back(ids[i]);
      return others;
    };
    const std::vector<Id> answers = first_ten(found.ids.row(row).data());
    for (const Id id : first_ten(truth.ids.data() + row * 11))
      hits += std::ranges::find(answers, id) != answers.end() ? 1U : 0U;
  }
  return static_cast<double>(hits) / static_cast<double>(base.rows() * 10);
}

class IvfMeasure : public testing::TestWithParam<Metric> {};
INSTANTIATE_TEST_SUITE_P(Metric, IvfMeasure, testing::ValuesIn(support::every_metric), support::metric_name);

TEST_P(IvfMeasure, FlatFindsTheFewestProbes) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.metric = GetParam(), .lists = 20});
  index.add(one_thread(), problem().base);
  EXPECT_FALSE(index.calibration());
  const Calibration measured = index.calibrate(one_thread(), problem().base, every_row);
  EXPECT_TRUE(measured.reached());
  EXPECT_EQ(measured.probes, index.probes());
  EXPECT_FALSE(measured.candidates);
  EXPECT_EQ(measured.recall.rows, base_rows);
  EXPECT_EQ(measured.neighbors, 10U);
  EXPECT_EQ(measured.rows, base_rows);
  EXPECT_GT(measured.probes, 2U);
  EXPECT_DOUBLE_EQ(measured.recall.value, recall_by_oracle(index, problem().base, measured.probes, 0));
  EXPECT_DOUBLE_EQ(measured.recall_without_rerank.value, measured.recall.value);
  EXPECT_GE(measured.recall.value, 0.9);
  EXPECT_LT(recall_by_oracle(index, problem().base, measured.probes - 1, 0), 0.9);
}

TEST_P(IvfMeasure, ProductCodesWithReranking) {
  Ivf index = Ivf::train(one_thread(), problem().base,
                         {.metric = GetParam(), .lists = 10, .encoding = Pq{.code_bytes = 3, .bits = 4}});
  index.add(one_thread(), problem().base);
  const Calibration measured = index.calibrate(one_thread(), problem().base, every_row);
  EXPECT_TRUE(measured.reached());
  EXPECT_GE(measured.candidates, 25U);
  EXPECT_EQ(index.candidates(), measured.candidates);
  EXPECT_DOUBLE_EQ(measured.recall.value,
                   recall_by_oracle(index, problem().base, measured.probes, *measured.candidates));
  EXPECT_LT(recall_by_oracle(index, problem().base, measured.probes - 1, *measured.candidates), 0.9);
  EXPECT_DOUBLE_EQ(measured.recall_without_rerank.value,
                   recall_by_oracle(index, problem().base, measured.probes, 0));
  EXPECT_LT(measured.recall_without_rerank.value, measured.recall.value);
  // A search that names nothing is the measured one.
  const Neighbors named = index.search(one_thread(), problem().queries, 10,
                                       {.probes = measured.probes, .candidates = measured.candidates});
  EXPECT_TRUE(support::same(support::as_expected(named), index.search(one_thread(), problem().queries, 10)));
}

// Codes of 2 bytes for 12 dimensions do not find 9 of 10, however many lists are probed: it is said, and the
// probes are those that find as large a share of what all lists find.
TEST(IvfMeasureLimits, WhatCannotBeReachedIsSaid) {
  Ivf index =
      Ivf::train(one_thread(), problem().base, {.lists = 10, .encoding = Pq{.code_bytes = 2, .bits = 4}});
  index.add(one_thread(), problem().base);
  CalibrationOptions options = every_row;
  options.rerank = false;
  const Calibration measured = index.calibrate(one_thread(), problem().base, options);
  EXPECT_FALSE(measured.reached());
  EXPECT_FALSE(measured.candidates);
  const double most = recall_by_oracle(index, problem().base, 10, 0);
  EXPECT_LT(most, 0.9);
  EXPECT_GE(measured.recall.value, 0.9 * most);
  EXPECT_DOUBLE_EQ(measured.recall.value, recall_by_oracle(index, problem().base, measured.probes, 0));
  EXPECT_LT(measured.probes, 10U);
  EXPECT_LT(recall_by_oracle(index, problem().base, measured.probes - 1, 0), 0.9 * most);
}

TEST(IvfMeasureLimits, NeverOneProbeUnlessThereIsOneList) {
  // Far apart: one list would do.
  const Problem apart =
      support::make_problem({.kind = Kind::exact_duplicates, .rows = 300, .queries = 1, .dim = 6, .seed = 3});
  Ivf two = Ivf::train(one_thread(), apart.base, {.lists = 5});
  EXPECT_GE(two.probes(), 2U);
  two.add(one_thread(), apart.base);
  EXPECT_GE(two.calibrate(one_thread(), apart.base, {.target_recall = 0.01}).probes, 2U);
  Ivf one = Ivf::train(one_thread(), apart.base, {.lists = 1});
  one.add(one_thread(), apart.base);
  const Calibration measured = one.calibrate(one_thread(), apart.base);
  EXPECT_EQ(measured.probes, 1U);
  EXPECT_EQ(measured.recall.value, 1);
}

// What is measured on some rows is to hold for all of them. Would catch: a target that the sample alone must
// reach, which half of all samples flatter.
TEST(IvfMeasureLimits, TheTargetHoldsForRowsThatWereNotDrawn) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 40});
  index.add(one_thread(), problem().base);
  std::size_t held = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Context context = Context::cpu({.threads = 1, .seed = seed});
    const Calibration measured = index.calibrate(context, problem().base, {.queries = 40});
    EXPECT_TRUE(measured.reached());
    held += recall_by_oracle(index, problem().base, measured.probes, 0) >= 0.9 ? 1U : 0U;
  }
  EXPECT_GE(held, 9U);
}

// A target without room for a margin: all there is.
TEST(IvfMeasureLimits, AllOfIt) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 8});
  index.add(one_thread(), problem().base);
  const Calibration measured =
      index.calibrate(one_thread(), problem().base, {.target_recall = 1, .queries = 100});
  EXPECT_EQ(measured.recall.value, 1);
  EXPECT_TRUE(measured.reached());
}

TEST(IvfMeasureThreads, TheSampleAndTheAnswerAreTheSeeds) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 15, .encoding = Pq{.code_bytes = 4}});
  index.add(one_thread(), problem().base);
  const auto measured = [&](int threads, std::uint64_t seed, std::uint64_t limit) {
    return index.calibrate(Context::cpu({.threads = threads, .memory_limit = limit, .seed = seed}),
                           problem().base, {.target_recall = 0.8, .queries = 60});
  };
  const Calibration one = measured(1, 7, 0);
  EXPECT_EQ(one.recall.rows, 60U);
  EXPECT_EQ(one, measured(3, 7, 4 << 20));
  EXPECT_NE(one, measured(1, 8, 0));
  EXPECT_EQ(error_of([&] { measured(1, 7, 10'000); }).code(), ErrorCode::out_of_memory);
}

// Would catch: a truth that holds rows which the index does not.
TEST(IvfMeasureLimits, RowsThatAreNotInTheIndexAreNotMissed) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 8});
  index.add(one_thread(), problem().base);
  std::vector<Id> gone;
  for (Id id = 0; id < static_cast<Id>(base_rows); ++id)
    if (id % 4 != 1) gone.push_back(id);
  index.remove(one_thread(), gone);
  CalibrationOptions all = every_row;
  all.target_recall = 1;
  const Calibration measured = index.calibrate(one_thread(), problem().base, all);
  EXPECT_EQ(measured.recall.value, 1);
  EXPECT_EQ(measured.recall.rows, 150U);
  EXPECT_EQ(measured.rows, 150U);
}

TEST(IvfMeasureLimits, FewRows) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 4});
  const auto measure = [&] { return index.calibrate(one_thread(), problem().base); };
  EXPECT_EQ(error_of(measure).code(), ErrorCode::invalid_argument);
  index.add(one_thread(), RowsView(problem().base).slice(0, 1));
  EXPECT_EQ(error_of(measure).code(), ErrorCode::invalid_argument);
  index.add(one_thread(), RowsView(problem().base).slice(1, 3));
  const Calibration measured = measure();
  EXPECT_EQ(measured.recall.rows, 4U);
  EXPECT_EQ(measured.neighbors, 3U);
  EXPECT_TRUE(measured.reached());
}

TEST(IvfMeasureLimits, WrongArgumentsAreNamed) {
  Ivf index = Ivf::train(one_thread(), problem().base, {.lists = 4});
  index.add(one_thread(), problem().base);
  const RowsView base = problem().base;
  const auto refuses = [&](const RowsView& rows, const CalibrationOptions& options, const std::string& text) {
    const Error error = error_of([&] { index.calibrate(one_thread(), rows, options); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    EXPECT_FALSE(index.calibration());
  };
  refuses(base.slice(0, 599), {}, "a row for every id, got 599 rows for ids up to 599");
  refuses(base, {.target_recall = 0}, "target_recall must be above 0");
  refuses(base, {.target_recall = 1.5}, "got 1.5");
  refuses(base, {.target_recall = std::numeric_limits<double>::quiet_NaN()}, "target_recall must be above 0");
  refuses(base, {.queries = 0}, "queries must be at least 1");
  const Problem narrow = support::make_problem({.rows = 600, .queries = 1, .dim = 3, .seed = 1});
  refuses(narrow.base, {}, "dimension");
}

TEST(IvfMeasureLimits, OneStepBuildsMeasure) {
  const Ivf index = Ivf::build(one_thread(), problem().base, {.lists = 12, .encoding = Pq{.code_bytes = 4}},
                               CalibrationOptions{.queries = 50});
  EXPECT_EQ(index.size(), base_rows);
  ASSERT_TRUE(index.calibration());
  EXPECT_EQ(index.calibration()->recall.rows, 50U);
  EXPECT_EQ(index.calibration()->probes, index.probes());
  Ivf steps = Ivf::train(one_thread(), problem().base, {.lists = 12, .encoding = Pq{.code_bytes = 4}});
  steps.add(one_thread(), problem().base);
  EXPECT_EQ(steps.calibrate(one_thread(), problem().base, {.queries = 50}), *index.calibration());
  // One row has no neighbour to find, and is an index all the same.
  const Ivf lonely = Ivf::build(one_thread(), RowsView(problem().base).slice(0, 1));
  EXPECT_EQ(lonely.size(), 1U);
  EXPECT_FALSE(lonely.calibration());
}

TEST(IvfMeasureLimits, WhoSetsProbesHasNotMeasuredThem) {
  Ivf index = Ivf::build(one_thread(), problem().base, {.lists = 12});
  ASSERT_TRUE(index.calibration());
  EXPECT_EQ(index.empty_copy().calibration(), index.calibration());
  index.set_probes(3);
  EXPECT_FALSE(index.calibration());
}

TEST(IvfMeasureFile, ComesBack) {
  const testing_io::TemporaryFolder folder;
  const Ivf index =
      Ivf::build(one_thread(), problem().base, {.lists = 12, .encoding = Pq{.code_bytes = 2, .bits = 4}});
  save(index, folder / "index.nw");
  const Ivf loaded = load_ivf(one_thread(), folder / "index.nw");
  EXPECT_EQ(loaded.calibration(), index.calibration());
  EXPECT_EQ(loaded.candidates(), index.candidates());
  const ContainerInfo info = inspect(folder / "index.nw");
  EXPECT_EQ(info.metadata.at("calibration.recall.rows"), "500");
  EXPECT_EQ(info.metadata.at("candidates"), std::to_string(index.candidates()));
}

// An index need not be calibrated; numbers that no calibration gives are damage.
TEST(IvfMeasureFile, WhatIsMissingAndWhatIsWrong) {
  const testing_io::TemporaryFolder folder;
  Ivf index = Ivf::build(one_thread(), problem().base, {.lists = 12});
  save(index, folder / "index.nw");
  const std::vector<std::byte> good = testing_io::read_all(folder / "index.nw");
  const auto with = [&](const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    std::vector<std::byte> changed = good;
    const auto* const begin = reinterpret_cast<const std::byte*>(from.data());
    const auto place = std::search(changed.begin(), changed.end(), begin, begin + from.size());
    ASSERT_NE(place, changed.end()) << from;
    std::transform(to.begin(), to.end(), place, [](char letter) { return static_cast<std::byte>(letter); });
    testing_io::reseal(changed);
    testing_io::write_all(folder / "changed.nw", changed);
  };
  with("\"calibration\"", "\"kalibration\"");
  EXPECT_FALSE(load_ivf(one_thread(), folder / "changed.nw").calibration());
  for (const auto& [from, to] :
       {std::pair{"\"candidates\":100", "\"candidates\":0  "},
        std::pair{"\"candidates\":100", "\"candidatez\":100"}, std::pair{"\"rows\":500", "\"rows\":\"5\""},
        std::pair{"\"rows\":500", "\"rows\":-50"},
        std::pair{"\"target_recall\":0.9", "\"target_recall\":9.0"},
        std::pair{"\"target_recall\":0.9", "\"target_recall\":\"1\""}}) {
    with(from, to);
    EXPECT_EQ(error_of([&] { load_ivf(one_thread(), folder / "changed.nw"); }).code(), ErrorCode::corrupt)
        << to;
  }
}

}  // namespace
}  // namespace nearwise
