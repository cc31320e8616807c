// Plans, run to their end: the file they publish.
#include "nearwise/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "golden_answers/data.h"
#include "golden_answers/golden.h"
#include "io/temporary_folder.h"
#include "nearwise/plan_join.h"
#include "nearwise/vector_file.h"

namespace nearwise::golden {
namespace {

using testing_io::TemporaryFolder;

// Groups of cells, shards, blocks of rows, or pairs of blocks.
std::ptrdiff_t parts_of(const Plan& plan) {
  return std::ranges::count_if(plan.tasks(), [](const PlannedTask& task) {
    return !task.if_needed && (task.name.starts_with("build-") || task.name.starts_with("add-") ||
                               task.name.starts_with("prune-") || task.name.starts_with("join-"));
  });
}

class GoldenPlan : public ::testing::Test {
 protected:
  void write_rows(std::size_t rows, std::size_t dim, ElementType type = ElementType::f32) {
    vectors = folder / (std::string(name(type)) + ".npy");
    VectorWriter writer(vectors, type, dim);
    writer.append(make_rows(rows, dim, 81, type));
    writer.commit();
  }
  // least_parts: with fewer the test is about nothing.
  template <typename Make>
  void expect_plan(const std::string& name, std::uint64_t megabytes, std::ptrdiff_t least_parts,
                   const Make& make) {
    const Context limited = context({.threads = 2, .memory_limit = megabytes << 20, .seed = 7});
    const PlanFiles files = {vectors, folder / (name + ".work"), folder / (name + ".nw")};
    const auto run = [&] {
      if (std::filesystem::exists(files.output)) return;
      const Plan plan = make(limited, files);
      EXPECT_GE(parts_of(plan), least_parts) << name;
      plan.run(limited);
    };
    expect(name + ".sections", [&](Digest& digest) {
      run();
      digest.add_sections(files.output);
    });
    expect(name + ".bytes", [&](Digest& digest) {
      run();
      digest.add_file(files.output);
    });
  }
  void expect_graph(const std::string& name, std::uint64_t megabytes, const GraphPlanOptions& options) {
    expect_plan(name, megabytes, 2, [&](const Context& limited, const PlanFiles& files) {
      return plan_graph(limited, files, options);
    });
  }
  void expect_index(const std::string& name, std::uint64_t megabytes, const IndexPlanOptions& options,
                    std::ptrdiff_t least_blocks = 2) {
    expect_plan(name, megabytes, least_blocks, [&](const Context& limited, const PlanFiles& files) {
      return plan_index(limited, files, options);
    });
  }

  const TemporaryFolder folder;
  std::filesystem::path vectors;
};

TEST_F(GoldenPlan, GraphByPartitions) {
  write_rows(40'000, 8);
  expect_graph("plan_graph.partitions", 32,
               {.degree = 6, .target_recall = 0.9, .provenance = {{"rows", "made"}}});
  write_rows(40'000, 8, ElementType::u8);
  expect_graph("plan_graph.partitions.u8.cosine", 32,
               {.degree = 6, .metric = Metric::cosine, .target_recall = 0.9});
}

TEST_F(GoldenPlan, GraphByPairs) {
  write_rows(8'000, 8);
  expect_graph("plan_graph.pairs", 16, {.degree = 6, .target_recall = 0.9, .method = GraphPlanMethod::pairs});
  write_rows(8'000, 8, ElementType::i8);
  expect_graph(
      "plan_graph.pairs.i8.inner_product", 16,
      {.degree = 6, .metric = Metric::inner_product, .target_recall = 0.9, .method = GraphPlanMethod::pairs});
}

TEST_F(GoldenPlan, Index) {
  write_rows(50'000, 8);
  const CalibrationOptions measure = {.target_recall = 0.8, .queries = 100};
  expect_index("plan_index.flat", 19,
               {.index = IvfOptions{.metric = Metric::cosine, .lists = 40},
                .calibration = measure,
                .provenance = {{"rows", "made"}}});
  expect_index("plan_index.pq.8_bits", 20,
               {.index = IvfOptions{.lists = 40, .training_rows = 1600, .encoding = Pq{.code_bytes = 4}},
                .calibration = measure});
  expect_index(
      "plan_index.pq.4_bits", 19,
      {.index = IvfOptions{.lists = 40, .training_rows = 1600, .encoding = Pq{.code_bytes = 4, .bits = 4}},
       .calibration = measure});
  // Training takes so much memory that one block holds all rows.
  expect_index("plan_index.lsq.residual", 24,
               {.index = IvfOptions{.lists = 40,
                                    .training_rows = 1600,
                                    .encoding = Lsq{.code_bytes = 2, .rounds = 0, .encode_iterations = 1}},
                .calibration = measure},
               1);
}

TEST_F(GoldenPlan, GraphIndex) {
  const auto expect_graph_index = [&](const std::string& name, const GraphIndexPlanOptions& options) {
    expect_plan(name, 64, 3, [&](const Context& limited, const PlanFiles& files) {
      return plan_graph_index(limited, files, options);
    });
  };
  write_rows(70'000, 8);
  expect_graph_index("plan_graph_index.cosine", {.index = {.metric = Metric::cosine, .degree = 16},
                                                 .calibration = {.sample = 100},
                                                 .provenance = {{"rows", "made"}}});
  write_rows(70'000, 8, ElementType::u8);
  expect_graph_index("plan_graph_index.u8",
                     {.index = {.degree = 16, .graph_recall = 0.9}, .calibration = {.sample = 100}});
}

// What threshold_join() and dedup() of the same rows give is compared in plan/join/join_plan_test.cpp.
TEST_F(GoldenPlan, Joins) {
  write_rows(5'000, 8);
  expect_plan("plan_threshold_join", 18, 3, [&](const Context& limited, const PlanFiles& files) {
    return plan_threshold_join(limited, files, 1.5F, {.provenance = {{"rows", "made"}}});
  });
  expect_plan("plan_dedup.star", 18, 3, [&](const Context& limited, const PlanFiles& files) {
    return plan_dedup(limited, files, 1.5F, {.provenance = {{"rows", "made"}}});
  });
  write_rows(5'000, 8, ElementType::u8);
  expect_plan("plan_dedup.u8.cosine.connected", 18, 3, [&](const Context& limited, const PlanFiles& files) {
    return plan_dedup(
        limited, files, 0.01F,
        {.dedup = {
             .metric = Metric::cosine, .grouping = DuplicateGrouping::connected, .keep = KeptRow::medoid}});
  });
}

}  // namespace
}  // namespace nearwise::golden
