// The tasks of a graph by overlapping partitions: their sizes, the files between them, and the work of each.
//
//   input    all vectors                           -> checksums of the file
//   sample   sampled rows, all vectors             -> the sample's exact neighbours
//   train    other rows, the sample                -> partitions: centroids in groups, and the overlap rule
//   assign   a block of rows, the partitions       -> its rows by group and partition
//   build    a group: its rows of all blocks       -> neighbours found within the group
//   merge    a block: the results of all groups    -> the best neighbours so far of its rows
//   measure  the sample, all blocks                -> the recall, and whether another pass is needed
//   finish   all blocks                            -> the graph
//
// All but the first two and the last run once per pass; every pass trains other partitions. A task depends on
// its input files and on GraphWork alone, and writes the same bytes at any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "graph/build/builder.h"
#include "graph/partition/partition_search.h"
#include "nearwise/plan.h"
#include "plan/engine/plan_input.h"

namespace nearwise::plan {

struct GraphShape {
  std::size_t rows = 0;
  std::size_t dim = 0;
  ElementType type = ElementType::f32;
  std::size_t overlap = 1;         // partitions of a row, at most; `train` chooses
  std::size_t min_partitions = 1;  // of a pass; `train` chooses a number between these
  std::size_t partitions = 1;
  std::size_t sampled_rows = 0;  // training rows of the partitions
  std::size_t groups = 1;        // of partitions
  std::size_t batch_rows = 0;    // rows of a group in memory at a time, at most
  std::size_t block_rows = 0;
  std::size_t blocks = 1;
  std::size_t measured_rows = 0;  // of the recall sample
  // With more partitions, super-partitions are trained.
  std::size_t compared_partitions = 4096;
  graph::Tuning tuning;

  // Up to this number partitions are trained in one level of k-means, more in two. Seeds are far from each
  // other, so that one level gives a dense cluster one partition, where two give it as many as it has rows
  // for.
  static constexpr std::size_t flat_partitions = 32;
  // Training rows per partition. With 32, as in memory, rows cost 2 % fewer pairs and training takes twice as
  // long.
  static constexpr std::size_t rows_per_partition = 16;
  // Sampled rows whose neighbours' partitions are searched at a time: all of them together fill one search
  // tile.
  static std::size_t predicted_rows(std::size_t degree) {
    return std::clamp<std::size_t>(graph::PartitionSearch::tile_rows / (degree + 1), 1, 1024);
  }
  // Rows sampled to estimate the sizes of partitions and groups.
  static constexpr std::size_t size_sample_rows = std::size_t{1} << 16;

  bool has_super_partitions(std::size_t count) const { return count > compared_partitions; }
  std::size_t row_bytes() const { return dim * element_size(type); }
  std::size_t first_row(std::size_t block) const { return block * block_rows; }
  std::size_t rows_of(std::size_t block) const { return std::min(block_rows, rows - first_row(block)); }
};

// A view without data, for memory estimates of `rows` rows like those of the file.
inline RowsView shaped(const GraphShape& shape, std::size_t rows) {
  return {nullptr, shape.type, rows, shape.dim, shape.row_bytes()};
}

// Share of the memory limit that tasks plan with; the rest covers allocations outside the budget.
inline constexpr double share_of_limit = 0.94;
inline std::uint64_t usable_memory(std::uint64_t limit) {
  return static_cast<std::uint64_t>(share_of_limit * static_cast<double>(limit));
}

// Size of the recall sample of a file.
std::size_t measured_rows_of(std::size_t rows);

// Throws Error(out_of_memory) if the limit is too small.
GraphShape shape_of(const Context& context, const RowsView& rows, const GraphPlanOptions& options);

// Upper bounds on the budget, in bytes.
std::uint64_t sample_memory(const GraphShape& shape, const GraphPlanOptions& options);
std::uint64_t train_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options);
std::uint64_t assign_memory(const GraphShape& shape);
std::uint64_t build_memory(const Context& context, const GraphShape& shape, const GraphPlanOptions& options);
std::uint64_t merge_memory(const GraphShape& shape, const GraphPlanOptions& options);
std::uint64_t measure_memory(const GraphShape& shape, const GraphPlanOptions& options);

struct GraphWork {
  PlanFiles files;
  GraphPlanOptions options;
  GraphShape shape;
  // The graph is one of these instead of the vectors; `shape` is theirs.
  CodeRows codes = {};

  // Upper bound; later passes run if the recall is not reached.
  std::size_t passes() const { return options.method == GraphPlanMethod::pairs ? 1 : 3; }

  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
  PlanInput input(const Context& context) const {
    return codes.file.empty() ? PlanInput(context, files) : PlanInput(context, codes);
  }
  KnnGraphOptions graph_options() const {
    return {.degree = options.degree, .metric = options.metric, .target_recall = options.target_recall};
  }
};

// Tests pass shapes other than shape_of().
Plan plan_of(const Context& context, const GraphWork& work);

inline constexpr const char* sample_name = "sample";
std::string train_name(std::size_t pass);
std::string assign_name(std::size_t pass, std::size_t block);
std::string build_name(std::size_t pass, std::size_t group);
std::string merge_name(std::size_t pass, std::size_t block);
std::string measure_name(std::size_t pass);
inline constexpr const char* finish_name = "finish";

void take_sample(const Context& context, const GraphWork& work);
void train_partitions(const Context& context, const GraphWork& work, std::size_t pass);
void assign_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block);
void build_group(const Context& context, const GraphWork& work, std::size_t pass, std::size_t group);
void merge_block(const Context& context, const GraphWork& work, std::size_t pass, std::size_t block);
void measure_graph(const Context& context, const GraphWork& work, std::size_t pass);
void publish_graph(const Context& context, const GraphWork& work);

// The outcome of measure_graph().
GraphRound measured_round(const GraphWork& work, std::size_t pass);
bool reached(const GraphWork& work, std::size_t pass);
// The pass whose lists are the graph's, after all passes that are needed.
std::size_t last_pass(const GraphWork& work);

// Row and partition numbers in files have 32 bits. The highest bit of a partition marks the row's nearest
// one.
inline constexpr std::uint32_t no_row = 0xFFFFFFFF;
inline constexpr std::uint32_t nearest_partition = 0x80000000;

}  // namespace nearwise::plan
