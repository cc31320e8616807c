// Indexes by plans: what a build in memory saves, in blocks, within the limit, and however it is stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "support/error_of.h"
#include "support/knn_cases.h"

namespace nearwise {
namespace {

using testing_io::read_all;
using testing_io::TemporaryFolder;
namespace fs = std::filesystem;

// So little that some ten thousand rows are several blocks.
constexpr std::uint64_t little_memory = std::uint64_t{19} << 20;

class IndexPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    const support::Rows rows(support::generate(support::Kind::normal, 60'000, 8, 3), ElementType::f32);
    VectorWriter writer(folder / "rows.fbin", ElementType::f32, 8);
    writer.append(rows.view());
    writer.commit();
  }
  Context context(int threads = 2) const {
    return Context::cpu({.threads = threads, .memory_limit = little_memory, .seed = 7});
  }
  Plan plan(const std::string& name, const IndexPlanOptions& options) const {
    return plan_index(context(), {folder / "rows.fbin", folder / name, folder / (name + ".nw")}, options);
  }

  const TemporaryFolder folder;
};

// Would catch: blocks lost, doubled or in another order, and codes that depend on the block.
TEST_F(IndexPlan, GivesWhatABuildInMemoryDoes) {
  const VectorFile file = VectorFile::open(folder / "rows.fbin");
  const Context unlimited = Context::cpu({.threads = 2, .seed = 7});
  const auto expect_same = [&](const std::string& name, const IndexPlanOptions& options, const Ivf& expected,
                               std::uint64_t memory = little_memory) {
    const Context own = Context::cpu({.threads = 2, .memory_limit = memory, .seed = 7});
    const Plan made =
        plan_index(own, {folder / "rows.fbin", folder / name, folder / (name + ".nw")}, options);
    const auto blocks = std::ranges::count_if(
        made.tasks(), [](const PlannedTask& task) { return task.name.starts_with("add-"); });
    if (memory == little_memory) {
      EXPECT_GE(blocks, 2) << name;  // or the test is about nothing
    }
    made.run(own);
    EXPECT_LE(own.memory_peak(), memory) << name;
    Ivf found = load_ivf(unlimited, folder / (name + ".nw"));
    EXPECT_EQ(found.calibration(), expected.calibration());
    EXPECT_EQ(found.provenance().at("base"), "rows");
    found.set_provenance(expected.provenance());
    save(found, folder / "found.nw");
    save(expected, folder / "expected.nw");
    EXPECT_EQ(read_all(folder / "found.nw"), read_all(folder / "expected.nw")) << name;
  };
  const IvfOptions product = {.lists = 60, .training_rows = 2400, .encoding = Pq{.code_bytes = 4, .bits = 4}};
  const IvfOptions flat = {.metric = Metric::cosine, .lists = 60, .training_rows = 2400};
  expect_same("product", {.index = product, .provenance = {{"base", "rows"}}},
              Ivf::build(unlimited, file.rows(), product));
  expect_same("flat", {.index = flat, .provenance = {{"base", "rows"}}},
              Ivf::build(unlimited, file.rows(), flat));
  const IvfOptions additive = {
      .lists = 20,
      .training_rows = 800,
      .encoding = Lsq{.code_bytes = 2, .rounds = 1, .train_iterations = 1, .encode_iterations = 1}};
  expect_same("additive", {.index = additive, .provenance = {{"base", "rows"}}},
              Ivf::build(unlimited, file.rows(), additive), std::uint64_t{48} << 20);
}

TEST_F(IndexPlan, GoesOnWhereItWasStopped) {
  const IndexPlanOptions options = {
      .index = IvfOptions{.lists = 60, .training_rows = 2400, .encoding = Pq{.code_bytes = 4, .bits = 4}}};
  plan("whole", options).run(context());
  const Plan stopped = plan("stopped", options);
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(stopped.run_task(context(1), stopped.tasks()[i].name), TaskOutcome::done);
  std::size_t before = 0;
  plan("stopped", options).run(context(1), [&](const PlannedTask&, TaskOutcome outcome) {
    before += outcome == TaskOutcome::done_before ? 1 : 0;
  });
  EXPECT_EQ(before, 2U);
  EXPECT_EQ(read_all(folder / "stopped.nw"), read_all(folder / "whole.nw"));
  // Other options are another plan.
  const IndexPlanOptions other = {
      .index = IvfOptions{.lists = 61, .training_rows = 2440, .encoding = Pq{.code_bytes = 4, .bits = 4}}};
  EXPECT_EQ(support::error_of([&] { plan("stopped", other).run(context()); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(IndexPlan, AChangedInputIsRefused) {
  const IndexPlanOptions options = {.index = IvfOptions{.lists = 60, .training_rows = 2400}};
  const Plan stopped = plan("work", options);
  for (const char* const name : {"input", "train"}) stopped.run_task(context(), name);
  auto bytes = read_all(folder / "rows.fbin");
  bytes[bytes.size() / 2] ^= std::byte{1};
  testing_io::write_all(folder / "rows.fbin", bytes);
  EXPECT_ERROR(stopped.run(context()), invalid_argument, "has changed since the plan began");
  bytes[bytes.size() / 2] ^= std::byte{1};
  testing_io::write_all(folder / "rows.fbin", bytes);
  stopped.run(context());
  plan("whole", options).run(context());
  EXPECT_EQ(read_all(folder / "work.nw"), read_all(folder / "whole.nw"));
}

// Would catch: training rows that fit by what a backend needs with so many threads, which made another plan
// of each number.
TEST_F(IndexPlan, IsTheSameAtAnyNumberOfThreads) {
  const PlanFiles files = {folder / "rows.fbin", folder / "threads", folder / "threads.nw"};
  const auto limited = [](int threads, const char* isa) {
    return Context::cpu({.threads = threads, .memory_limit = std::uint64_t{20} << 20, .seed = 7, .isa = isa});
  };
  const IndexPlanOptions options = {.index = IvfOptions{.lists = 1000, .iterations = 1}};
  for (const char* const name : {"input", "train"})
    plan_index(limited(1, ""), files, options).run_task(limited(1, ""), name);
  for (const int threads : {2, 8})
    EXPECT_TRUE(plan_index(limited(threads, "portable"), files, options).is_done("train"));
  // Fewer than were asked for, or the test is about nothing.
  const Ivf trained = load_ivf(Context::cpu(), folder / "threads" / "train.nw");
  EXPECT_EQ(trained.provenance().at("training").find("training_rows 256000"), std::string::npos);
}

TEST_F(IndexPlan, RefusesWhatCannotBe) {
  const auto code = [&](const IndexPlanOptions& options) {
    return support::error_of([&] { plan("no", options); }).code();
  };
  EXPECT_EQ(code({.index = IvfOptions{.lists = 70'000, .encoding = Pq{}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.index = IvfOptions{.encoding = Pq{.code_bytes = 9}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.index = IvfOptions{.encoding = Pq{.bits = 5}}}), ErrorCode::invalid_argument);
  EXPECT_EQ(code({.index = IvfOptions{.encoding = Lsq{.code_bytes = 33}}}), ErrorCode::invalid_argument);
  // 32 rows for each of 50,000 lists do not fit.
  EXPECT_EQ(code({.index = IvfOptions{.lists = 50'000, .encoding = Pq{}}}), ErrorCode::out_of_memory);
  const PlanFiles files = {folder / "rows.fbin", folder / "no", folder / "no.nw"};
  EXPECT_EQ(support::error_of([&] { plan_index(Context::cpu(), files); }).code(),
            ErrorCode::invalid_argument);
  EXPECT_FALSE(fs::exists(folder / "no"));
}

}  // namespace
}  // namespace nearwise
