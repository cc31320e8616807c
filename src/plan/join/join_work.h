// The tasks of a threshold join or the removal of duplicates: their sizes, the files between them, and the
// work of each.
//
//   input   all vectors                       -> checksums of the file
//   join    two blocks of rows, or one twice  -> pairs of a row of the first and a later one of the second
//   sides   a block: its pairs of all joins   -> the duplicates of each of its rows (of a deduplication)
//   finish  all joins, or all sides           -> the result
//
// A task depends on its input files and on JoinWork alone. It writes the same bytes at any number of
// threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "duplicates/duplicate_pairs.h"
#include "io/container/container_reader.h"
#include "nearwise/plan_join.h"
#include "ops/threshold_join.h"
#include "plan/engine/plan_input.h"

namespace nearwise::plan {

struct JoinWork {
  PlanFiles files;
  float threshold = 0;
  Metric metric = Metric::sqeuclidean;
  std::optional<DedupOptions> dedup = {};  // none: a join. scores are of `scores`
  std::vector<double> scores = {};
  std::map<std::string, std::string> provenance = {};
  std::size_t rows = 0;
  std::size_t block_rows = 0;

  const char* operation() const { return dedup ? "plan_dedup" : "plan_threshold_join"; }
  std::size_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  RowRange block(std::size_t number) const {
    const std::size_t first = number * block_rows;
    return {first, std::min(block_rows, rows - first)};
  }
  PlanInput input(const Context& context) const { return {context, files}; }
  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
};

// As plan_threshold_join() and plan_dedup() make it, with everything checked.
JoinWork join_work(const Context& context, const PlanFiles& files, float threshold,
                   const JoinPlanOptions& options);
JoinWork dedup_work(const Context& context, const PlanFiles& files, float threshold,
                    const DedupPlanOptions& options);
// Tests pass other blocks.
Plan plan_of(const Context& context, JoinWork work);

std::string join_name(std::size_t left, std::size_t right);
std::string sides_name(std::size_t block);
inline constexpr const char* finish_join_name = "finish";

void join_blocks(const Context& context, const JoinWork& work, std::size_t left, std::size_t right);
void gather_sides(const Context& context, const JoinWork& work, std::size_t block);
void publish_pairs(const Context& context, const JoinWork& work);
void publish_dedup(const Context& context, const JoinWork& work);

// Lists of duplicates of consecutive rows, in a work file: sections `pairs`, list after list, and `ends`.
class DuplicateLists {
 public:
  // Throws Error(corrupt) unless there are `rows` lists.
  DuplicateLists(const std::filesystem::path& file, std::size_t rows);

  std::size_t pairs() const { return pairs_; }
  std::size_t count(std::size_t row) const { return ends_(row, 0) - begin(row); }
  // Verified. Throws Error(corrupt) unless the numbers of the list ascend within `range`.
  std::span<const duplicates::Duplicate> of(std::size_t row, RowRange range) const;

 private:
  std::size_t begin(std::size_t row) const { return row == 0 ? 0 : ends_(row - 1, 0); }

  ContainerReader reader_;
  MatrixView<const std::uint64_t> ends_;
  std::size_t pairs_ = 0;
};

}  // namespace nearwise::plan
