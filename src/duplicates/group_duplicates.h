// Which rows are kept, and which row removed each of the others, with duplicates in memory or in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/memory.h"
#include "duplicates/duplicate_pairs.h"
#include "nearwise/context.h"
#include "nearwise/dedup.h"

namespace nearwise::duplicates {

// The duplicates of a row, ascending; valid until the next call.
using DuplicatesOf = std::function<std::span<const Duplicate>(std::size_t row)>;

inline constexpr std::uint32_t no_row = 0xFFFFFFFF;

// A Deduplication in 12 bytes per row.
struct Groups {
  Groups(MemoryBudget& budget, std::size_t rows);

  std::size_t rows() const { return kept_by.size(); }
  bool is_kept(std::size_t row) const { return removed_by[row] == no_row; }
  Id remover(std::size_t row) const { return is_kept(row) ? no_id : Id{removed_by[row]}; }

  Buffer<std::uint32_t> kept_by;     // the kept row of each row's group
  Buffer<std::uint32_t> removed_by;  // no_row: it is kept
  Buffer<float> keys;                // sort_key of the distance to removed_by; +inf: it is kept
};

// Throws Error(invalid_argument) if the scores do not fit the rows.
void check_options(const DedupOptions& options, std::size_t rows);

Groups group_duplicates(const Context& context, std::size_t rows, const DuplicatesOf& duplicates_of,
                        const DedupOptions& options);
// Bytes that group_duplicates() takes, with its result.
std::uint64_t grouping_bytes(std::size_t rows, const DedupOptions& options);

}  // namespace nearwise::duplicates
