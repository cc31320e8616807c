// Counts in the files between the tasks of a graph: with right checksums, up to the bound that follows from
// the plan, and not beyond.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "io/changed_metadata.h"
#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/pairs/pair_work.h"
#include "plan/tasks/graph_work.h"
#include "plan/tasks/partial_neighbors.h"
#include "support/graph_cases.h"

namespace nearwise::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_rows = 300;
constexpr std::size_t file_degree = 4;

class WorkFileCounts : public ::testing::Test {
 protected:
  WorkFileCounts() {
    work_.files = {
        .vectors = folder_ / "rows.fbin", .work = folder_ / "work", .output = folder_ / "graph.nw"};
    const support::Rows rows(support::generate(support::Kind::normal, file_rows, 4, 3), ElementType::f32);
    VectorWriter writer(work_.files.vectors, ElementType::f32, 4);
    writer.append(rows.view());
    writer.commit();
  }

  // use() reads the task's file, in which the number at this place is changed.
  void expect_bound_in(const std::string& task, const std::string& place, std::uint64_t largest,
                       const std::function<void()>& use) const {
    const fs::path path = work_.file_of(task);
    const fs::path original = folder_ / "original.nw";
    constexpr auto over = fs::copy_options::overwrite_existing;
    fs::copy_file(path, original, over);
    testing_io::expect_bound(original, place, largest, [&](const fs::path& changed) {
      fs::copy_file(changed, path, over);
      use();
    });
    fs::copy_file(original, path, over);
  }

  const testing_io::TemporaryFolder folder_;
  const Context context_ = Context::cpu({.threads = 2, .memory_limit = std::uint64_t{40} << 20, .seed = 7});
  GraphWork work_;
};

TEST_F(WorkFileCounts, OfPartitionsAreBounded) {
  work_.options = {.degree = file_degree};
  work_.shape = shape_of(context_, VectorFile::open(work_.files.vectors).rows(), work_.options);
  plan_of(context_, work_).run(context_);

  const std::size_t block_rows = work_.shape.rows_of(0);
  expect_bound_in(merge_name(0, 0), "/updates", 2 * block_rows * file_degree,
                  [&] { MergedBlock(work_, 0, merge_name(0, 0)); });
  const auto measured = [&] { measured_round(work_, 0); };
  expect_bound_in(measure_name(0), "/updates", 2 * file_rows * file_degree, measured);
  expect_bound_in(measure_name(0), "/recall/rows", file_rows, measured);

  const fs::path group = work_.file_of(build_name(0, 0));
  nlohmann::json metadata = testing_io::metadata_of(group);
  metadata["batches"] = 1000;
  testing_io::copy_with_metadata(group, group, metadata);
  EXPECT_ERROR(PartialNeighbors(work_, 0, 0, file_rows), corrupt, "'batches' of at most");
}

TEST_F(WorkFileCounts, OfPairsAreBounded) {
  work_.options = {.degree = file_degree, .method = GraphPlanMethod::pairs};
  work_.shape = shape_of_pairs(context_, VectorFile::open(work_.files.vectors).rows(), work_.options);
  work_.shape.block_rows = file_rows / 2;
  work_.shape.blocks = 2;
  plan_of(context_, work_).run(context_);

  const std::size_t shard_rows = file_rows / 2;
  expect_bound_in(build_shard_name(0), "/updates", 2 * shard_rows * file_degree,
                  [&] { MergedBlock(work_, 0, build_shard_name(0)); });
  const Pairing pairing = {.left = 0, .right = 1};
  expect_bound_in(merge_pair_name(pairing), "/right_updates", 2 * shard_rows * file_degree,
                  [&] { MergedBlock(work_, 1, merge_pair_name(pairing), "right_"); });
  // Of two shards of the same size, the second tells whether they are exact.
  expect_bound_in(build_shard_name(1), "/exact_rows", shard_rows,
                  [&] { merge_pair(context_, work_, 0, pairing); });
}

}  // namespace
}  // namespace nearwise::plan
