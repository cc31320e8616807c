// Plans of joins and deduplications of a file in a folder of their own, and what is saved of the results in
// memory.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/expect_error.h"
#include "io/temporary_folder.h"
#include "nearwise/plan_join.h"
#include "nearwise/vector_file.h"
#include "plan/join/join_work.h"
#include "support/problems.h"
#include "support/rows.h"

namespace nearwise {

inline constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

class JoinPlanTest : public ::testing::Test {
 protected:
  support::Rows make_file(support::Kind kind, std::size_t count, std::size_t dim,
                          ElementType type = ElementType::f32) {
    support::Rows rows(support::generate(kind, count, dim, 3 + count), type);
    write_file(rows);
    return rows;
  }
  void write_file(const RowsView& rows) {
    vectors = folder / fmt::format("{}.npy", name(rows.type()));
    VectorWriter writer(vectors, rows.type(), rows.dim());
    writer.append(rows);
    writer.commit();
  }
  Context context(int threads = 2) const {
    return Context::cpu({.threads = threads, .memory_limit = memory, .seed = 7});
  }
  PlanFiles files(const std::string& name) const {
    return {.vectors = vectors, .work = folder / name, .output = folder / (name + ".nw")};
  }
  // In blocks of block_rows; 0: as the memory limit allows.
  Plan join(const std::string& name, float threshold, const JoinPlanOptions& options,
            std::size_t block_rows = 0) const {
    plan::JoinWork work = plan::join_work(context(), files(name), threshold, options);
    if (block_rows != 0) work.block_rows = block_rows;
    return plan_of(context(), work);
  }
  Plan dedup(const std::string& name, float threshold, const DedupPlanOptions& options,
             std::size_t block_rows = 0) const {
    plan::JoinWork work = plan::dedup_work(context(), files(name), threshold, options);
    if (block_rows != 0) work.block_rows = block_rows;
    return plan_of(context(), work);
  }
  std::vector<std::byte> run(const Plan& plan, const std::string& name) const {
    const Context own = context();
    plan.run(own);
    EXPECT_LE(own.memory_peak(), memory);
    EXPECT_EQ(own.memory_used(), 0U);
    return result(name);
  }
  std::vector<std::byte> result(const std::string& name) const {
    return testing_io::read_all(folder / (name + ".nw"));
  }

  // What is saved of a result in memory.
  std::vector<std::byte> joined(RowsView rows, float threshold, Metric metric) const {
    save(SavedPairs{.pairs = threshold_join(Context::cpu(), rows, threshold, {.metric = metric}),
                    .metric = metric,
                    .threshold = threshold},
         folder / "expected.nw");
    return result("expected");
  }
  std::vector<std::byte> deduplicated(RowsView rows, float threshold, const DedupOptions& options) const {
    save(SavedDeduplication{.deduplication = nearwise::dedup(Context::cpu(), rows, threshold, options),
                            .metric = options.metric,
                            .threshold = threshold,
                            .grouping = options.grouping,
                            .keep = options.keep},
         folder / "expected.nw");
    return result("expected");
  }

  const testing_io::TemporaryFolder folder;
  std::filesystem::path vectors;
  std::uint64_t memory = 64 * mebibyte;
};

}  // namespace nearwise
