// The vector file of a plan, verified before a task uses it: no result is made from two versions of it.
//
// The first task of every plan records a checksum of each piece of the file. Later tasks read rows through
// PlanInput, which compares the pieces that hold them. Codes that a task has made of the vectors are read in
// the same way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "io/container/container_reader.h"
#include "nearwise/plan.h"
#include "nearwise/vector_file.h"
#include "plan/engine/task.h"

namespace nearwise::plan {

inline constexpr const char* input_name = "input";

// The first task: reads the file and writes its checksums.
Task input_task(const PlanFiles& files, const RowsView& rows);

// The section "codes" of a work file: rows of u8, of which the first `dim` are read.
struct CodeRows {
  std::filesystem::path file;
  std::size_t dim = 0;
  std::size_t rows = 0;  // all of the file
};

class PlanInput {
 public:
  // Throws Error(corrupt), or Error(invalid_argument) if the file has another shape than the plan's.
  PlanInput(const Context& context, const PlanFiles& files);
  // Throws Error(corrupt).
  PlanInput(const Context& context, const CodeRows& codes);

  // Each verifies what it returns first. Throws Error(invalid_argument) if the vector file has changed, and
  // Error(corrupt) if codes are damaged.
  RowsView all() const { return slice(0, rows_.rows()); }
  RowsView slice(std::size_t first, std::size_t count) const;
  // All rows, of which only row(0) ... row(count - 1) may be read.
  RowsView rows_at(std::size_t count, const std::function<std::size_t(std::size_t)>& row) const;

 private:
  void verify(std::size_t piece) const;

  const Context context_;
  const PlanFiles files_;
  const std::optional<VectorFile> file_;  // none: codes
  const ContainerReader reader_;          // of the checksums, or of the codes
  const RowsView rows_;
  std::unique_ptr<std::atomic<bool>[]> verified_;  // by piece
};

// Size, inode and times of a file, which change with its content unless someone sets them; empty if there is
// none.
std::string stamp_of(const std::filesystem::path& path);

// The length and 1,024 evenly spaced pieces of 4 KiB: tells the inputs of plans apart without reading a file.
std::string sampled_checksum(const std::filesystem::path& path);

}  // namespace nearwise::plan
