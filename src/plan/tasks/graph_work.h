// The tasks of a graph by overlapping partitions: sizes they share, the files between them, and the work of each.
//
//   sample   some rows, all vectors              -> their neighbours by exact search
//   train    other rows, the sample              -> partitions: centroids in groups, and which of them rows are in
//   assign   a block of rows, the partitions          -> their rows by group and partition
//   build    a group: its rows of all blocks     -> neighbours that they found in each other
//   merge    a block: what all groups found      -> its rows' best neighbours so far
//   measure  the sample, all blocks              -> the recall, and whether another pass is needed
//   finish   all blocks                          -> the graph
//
// All but the first and the last are made once in every pass, which has partitions of its own. Work takes nothing but files and
// this, and gives the same bytes at any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "graph/build/builder.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"

namespace nearwise::plan {

struct GraphShape {
  std::size_t rows = 0;
  std::size_t dim = 0;
  ElementType type = ElementType::f32;
  std::size_t overlap = 1;         // partitions that a row is in, at the most: train chooses
  std::size_t min_partitions = 1;  // of a pass, and at the most: train chooses
  std::size_t partitions = 1;
  std::size_t sampled_rows = 0;  // that they are trained on
  std::size_t groups = 1;        // of partitions
  std::size_t batch_rows = 0;    // of a group, the most that are in memory at a time
  std::size_t block_rows = 0;
  std::size_t blocks = 1;
  std::size_t measured_rows = 0;
  // Up to here rows are compared with all partitions; of more, with those of super-partitions.
  std::size_t compared_partitions = 4096;
  graph::Tuning tuning;

  // So many partitions are trained at once; more in two levels, where dense parts get as many partitions as they have rows for: seeds are
  // far from each other, and a dense cluster would get one.
  static constexpr std::size_t flat_partitions = 32;
  // Rows that a centroid is trained on: with 32, as in memory, rows cost 2 % less, and training takes twice as long.
  static constexpr std::size_t rows_per_partition = 16;
  // Rows whose partitions are searched at a time.
  static constexpr std::size_t tile_rows = std::size_t{1} << 16;
  // Of the sample, whose neighbours' partitions are searched at a time: with them no more than a tile.
  static std::size_t predicted_rows(std::size_t degree) {
    return std::clamp<std::size_t>(tile_rows / (degree + 1), 1, 1024);
  }
  // By which the sizes of groups are told.
  static constexpr std::size_t size_sample_rows = std::size_t{1} << 16;

  bool has_super_partitions(std::size_t of_partitions) const { return of_partitions > compared_partitions; }
  std::size_t row_bytes() const { return dim * element_size(type); }
  std::size_t first_row(std::size_t block) const { return block * block_rows; }
  std::size_t rows_of(std::size_t block) const { return std::min(block_rows, rows - first_row(block)); }
};

// So many rows like those of the file, for sums of memory: there is no data behind them.
inline RowsView shaped(const GraphShape& shape, std::size_t rows) {
  return {nullptr, shape.type, rows, shape.dim, shape.row_bytes()};
}

// A search needs so much beside its answers to be worth its while.
inline constexpr std::uint64_t search_bytes = std::uint64_t{8} << 20;

// Of the memory limit: the rest is for what is not counted on the budget.
inline constexpr double share_of_limit = 0.94;

// Of the rows of a file: those on which the recall of the whole is measured.
std::size_t measured_rows_of(std::size_t rows);

// Throws Error(out_of_memory) where the limit is too small.
GraphShape shape_of(const Context& context, const RowsView& rows, const GraphPlanOptions& options);

// Bytes on the budget.
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

  // At the most.
  std::size_t passes() const { return options.method == GraphPlanMethod::pairs ? 1 : 3; }

  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
  // Throws Error(invalid_argument) where the file has got another shape.
  VectorFile open() const;
  KnnGraphOptions graph_options() const {
    return {.degree = options.degree, .metric = options.metric, .recall = options.recall};
  }
};

// Its tasks. A shape other than shape_of() is for tests.
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

// What measure_graph() wrote.
GraphRound measured_round(const GraphWork& work, std::size_t pass);
bool reached(const GraphWork& work, std::size_t pass);

// Partitions are trained and searched by squared distances where a graph has distances.
inline Metric partition_metric(Metric metric) {
  return metric == Metric::euclidean ? Metric::sqeuclidean : metric;
}

// Numbers in files have 32 bits: those of rows, none, and of partitions, whose highest bit says that it is the row's nearest.
inline constexpr std::uint32_t no_row = 0xFFFFFFFF;
inline constexpr std::uint32_t nearest_partition = 0x80000000;

}  // namespace nearwise::plan
