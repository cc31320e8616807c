// The tasks of a threshold join or the removal of duplicates: their sizes, the files between them, and the
// work of each.
//
// By pairs:
//   input    all vectors                       -> checksums of the file
//   join     two blocks of rows, or one twice  -> pairs of a row of the first and a later one of the second
//   sides    a block: its pairs of all joins   -> the duplicates of each of its rows (of a deduplication)
//   finish   all joins, or all sides           -> the result
//
// By partitions (docs/algorithms/plans.md):
//   train    a sample                          -> centroids
//   assign   a block of rows, the centroids    -> its vectors by partition, with copies
//   compare  a group of partitions: its vectors of all blocks -> the pairs of each partition
//   sides    a block: its pairs of all groups  -> the duplicates of each of its rows; of a join later ones
//   finish   all sides                         -> the result
//
// A task depends on its input files and on JoinWork alone. It writes the same bytes at any number of
// threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/math/random.h"
#include "duplicates/duplicate_pairs.h"
#include "graph/row_sample.h"
#include "io/container/container_reader.h"
#include "nearwise/plan_join.h"
#include "ops/threshold_join.h"
#include "plan/engine/plan_input.h"

namespace nearwise::plan {

// Of method `partitions`. Sizes follow from the file, the options and the memory limit alone, so that they
// are the same on every machine.
struct JoinPartitions {
  std::size_t count = 0;         // that are trained; equal ones are one
  std::size_t sampled_rows = 0;  // trained on
  std::size_t groups = 1;
  std::size_t chunk_rows = 0;    // vectors of a partition in memory at a time
  std::size_t part_members = 0;  // of a block that are sorted at a time
  std::size_t run_pairs = 0;     // of a group that are sorted at a time
  std::size_t piece = 0;         // of MemberSearch
  // Predicted on a sample.
  double copies = 1;  // vectors stored per vector
  double comparisons = 0;
};

struct JoinWork {
  PlanFiles files;
  float threshold = 0;
  Metric metric = Metric::sqeuclidean;
  std::optional<DedupOptions> dedup = {};  // none: a join. scores are of `scores`
  std::vector<double> scores = {};
  std::map<std::string, std::string> provenance = {};
  JoinMethod method = JoinMethod::automatic;  // then partitions or pairs
  std::size_t rows = 0;
  std::size_t block_rows = 0;
  JoinPartitions partitions = {};

  bool is_by_partitions() const { return method == JoinMethod::partitions; }
  const char* operation() const { return dedup ? "plan_dedup" : "plan_threshold_join"; }
  std::size_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  RowRange block(std::size_t number) const {
    const std::size_t first = number * block_rows;
    return {first, std::min(block_rows, rows - first)};
  }
  PlanInput input(const Context& context) const { return {context, files}; }
  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
};

// As plan_threshold_join() and plan_dedup() make it, with everything checked and the method chosen.
JoinWork join_work(const Context& context, const PlanFiles& files, float threshold,
                   const JoinPlanOptions& options);
JoinWork dedup_work(const Context& context, const PlanFiles& files, float threshold,
                    const DedupPlanOptions& options);
// Tests pass other blocks.
Plan plan_of(const Context& context, JoinWork work);

std::string join_name(std::size_t left, std::size_t right);
std::string assign_join_name(std::size_t block);
std::string compare_name(std::size_t group);
std::string sides_name(std::size_t block);
inline constexpr const char* train_join_name = "train";
inline constexpr const char* finish_join_name = "finish";

void join_blocks(const Context& context, const JoinWork& work, std::size_t left, std::size_t right);
void train_join(const Context& context, const JoinWork& work);
void assign_join(const Context& context, const JoinWork& work, std::size_t block);
void compare_partitions(const Context& context, const JoinWork& work, std::size_t group);
void gather_sides(const Context& context, const JoinWork& work, std::size_t block);
void publish_pairs(const Context& context, const JoinWork& work);
void publish_dedup(const Context& context, const JoinWork& work);

// Tiles of an exact search, and small allocations.
inline constexpr std::uint64_t join_bytes = std::uint64_t{16} << 20;
// With fewer, a list that is too long for memory is a single row's.
inline constexpr std::size_t least_joined_rows = 64;
// A vector as a packed query, the same on every machine.
inline std::uint64_t packed_bytes(const RowsView& rows) { return rows.dim() * sizeof(float) + 256; }

// Sets the method, and sizes and predictions of partitions.
void choose_method(const Context& context, const RowsView& rows, JoinWork& work);
// At most `most`, within a quarter of the memory limit.
std::size_t sample_rows(const Context& context, const RowsView& rows, std::size_t most);
// A sample of the vectors, which it checks: one row of each of `count` equal parts.
graph::RowSample checked_sample(const Context& context, const JoinWork& work, const RowsView& rows,
                                std::size_t count, const Random& random);
// Distinct ones, of which no plan depends on anything else: any centroids give all pairs.
Matrix<float> join_centroids(const Context& context, const JoinWork& work, const RowsView& rows);

// The pairs of join_rows(), by `left`, in several calls if there are more than memory holds. `found` begins
// with the row `first`.
using TakePairs = std::function<void(std::size_t first, const RangeNeighbors& found)>;
void find_pairs(const Context& context, const JoinWork& work, const RowsView& rows, RowRange left,
                RowRange right, const TakePairs& take);

// Lists of duplicates of consecutive rows, in a work file: sections `pairs`, list after list, and `ends`.
class DuplicateLists {
 public:
  // Throws Error(corrupt) unless there are `rows` lists.
  DuplicateLists(const std::filesystem::path& file, std::size_t rows);

  std::size_t pairs() const { return pairs_; }
  std::size_t count(std::size_t row) const { return ends_(row, 0) - begin(row); }
  // Verified. Throws Error(corrupt) unless the numbers of the list ascend within `range`.
  std::span<const duplicates::Duplicate> of(std::size_t row, RowRange range) const;
  // The numbers within `part` of a list that of() has verified before.
  std::span<const duplicates::Duplicate> part_of(std::size_t row, RowRange part) const;

 private:
  std::span<const duplicates::Duplicate> list_of(std::size_t row) const;
  std::size_t begin(std::size_t row) const { return row == 0 ? 0 : ends_(row - 1, 0); }

  ContainerReader reader_;
  MatrixView<const std::uint64_t> ends_;
  std::size_t pairs_ = 0;
};

}  // namespace nearwise::plan
