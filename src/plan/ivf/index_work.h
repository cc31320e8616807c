// The tasks of an index: the files between them, and the work of each.
//
//   input   the rows                          -> checksums of the file
//   train   a sample of the rows              -> an index without rows
//   add     a block of rows, the trained one  -> an index of the block
//   gather  all blocks                        -> one index, list by list
//   finish  the same, and the rows            -> calibrated, under the output's name
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "nearwise/plan.h"
#include "plan/engine/plan_input.h"

namespace nearwise::plan {

struct IndexWork {
  PlanFiles files;
  IndexPlanOptions options;  // with every default filled in
  std::size_t rows = 0;
  std::size_t block_rows = 0;

  std::size_t blocks() const { return (rows + block_rows - 1) / block_rows; }
  std::size_t rows_of(std::size_t block) const { return std::min(block_rows, rows - block * block_rows); }
  PlanInput input(const Context& context) const { return {context, files}; }
  std::filesystem::path file_of(const std::string& task) const { return files.work / (task + ".nw"); }
};

inline constexpr const char* train_index_name = "train";
std::string add_name(std::size_t block);
inline constexpr const char* gather_name = "gather";
inline constexpr const char* finish_index_name = "finish";

void train_index(const Context& context, const IndexWork& work);
void add_block(const Context& context, const IndexWork& work, std::size_t block);
void gather_blocks(const Context& context, const IndexWork& work);
void finish_index(const Context& context, const IndexWork& work);

}  // namespace nearwise::plan
