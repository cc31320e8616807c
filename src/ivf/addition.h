// Vectors on their way into the lists of an inverted file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/memory.h"
#include "ivf/ivf_state.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"

namespace nearwise::ivf {

// assign(), then encode() and reserve(), then append(): only the last changes the index, and it fails only if
// a mapped file has been truncated.
class Addition {
 public:
  // Keeps references to the first three. `rows` can be kept and encoded. file_rows: their numbers in the
  // linked file, if there is one.
  Addition(IvfInternals::State& state, const Context& context, const RowsView& rows,
           Buffer<std::uint32_t> file_rows = {});

  // Expected durations, as cluster::training_cost().
  double assign_cost() const;
  double encode_cost() const;

  // Finds the list of every row. context: for progress.
  void assign(const Context& context);
  // Codes of the rows [first, first + count); none for flat lists.
  void encode(const Context& context, std::size_t first, std::size_t count, std::uint8_t* codes);
  // Space in the lists and in the table of ids, which will all be below next_id.
  void reserve(Id next_id);
  // One above the largest row of the linked file; at least `least`.
  std::uint64_t next_file_row(std::uint64_t least) const;
  // Appends the rows [first, first + count) with these ids and codes, or none of them: returns false. Under
  // NoFork.
  bool append(std::size_t first, std::size_t count, std::span<const Id> ids, const std::uint8_t* codes);

 private:
  IvfInternals::State& state_;
  const Context& context_;
  const RowsView& rows_;
  Buffer<std::uint32_t> nearest_;    // [rows] lists
  std::vector<std::size_t> more_;    // [lists] rows to append
  std::vector<std::byte> scratch_;   // of a vector as it is kept
  Buffer<std::uint32_t> file_rows_;  // [rows] or empty
};

}  // namespace nearwise::ivf
