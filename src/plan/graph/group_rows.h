// The rows of a group of partitions, as all blocks have them, in batches that fit in memory.
//
// A batch is made of whole pieces: the members of a partition, or parts of them where it is large. Rows of a batch are numbered
// by place: first those whose nearest partition is in the batch, partition by partition, then the others. So rows that meet lie together, and
// the first are those whose neighbours the batch should know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "backend/groups.h"
#include "core/memory.h"
#include "io/container/container_reader.h"
#include "plan/tasks/graph_work.h"

namespace nearwise::plan {

// Asks the system for what GroupRows will read.
void ask_for_group(const GraphWork& work, std::size_t pass, std::size_t group, const std::stop_token& stop);

class GroupRows {
 public:
  // The work must outlive it. Throws Error(corrupt), as next does.
  GroupRows(const Context& context, const GraphWork& work, std::size_t pass, std::size_t group);

  // Makes the next batch; false where there is none.
  bool next();

  // [rows] the number in the file of the row at each place
  std::span<const std::uint32_t> rows() const { return rows_.span().first(count_); }
  // Those at the first places, whose nearest partition is here.
  std::size_t nearest_rows() const { return nearest_rows_; }
  // [rows, row_bytes] the vectors at the places of the batch. Throws Error(corrupt).
  Buffer<std::byte> gather() const;
  // Places in the order of their rows' numbers.
  std::span<const std::uint32_t> by_row() const { return by_row_.span().first(count_); }
  Groups pieces() const {
    return {members_.span().first(ends_.empty() ? 0 : ends_.back()), ends_, new_counts_};
  }

 private:
  // The group's part of one block.
  struct Part {
    ContainerReader reader;
    std::span<const std::uint32_t> rows;
    std::span<const std::uint32_t> partitions;
    std::size_t next = 0;
  };

  static void check_order(const Part& part, std::size_t first_row, std::size_t rows);
  // The next members of one partition, in the order of rows, the highest bit of `nearest_partition` in `nearest`. Empty: no more.
  void read_piece();
  bool take_piece();
  void number_rows();

  const Context context_;
  const GraphWork& work_;
  const std::size_t group_;
  const std::size_t max_rows_;
  std::vector<Part> parts_;
  Buffer<std::uint64_t> seen_;    // a bit for every row of the file
  Buffer<std::uint32_t> before_;  // [words of seen_] rows of the batch before those of a word
  Buffer<std::uint32_t> rows_;
  Buffer<std::uint32_t> by_row_;
  Buffer<std::uint32_t> members_;  // rows of the file first, then places
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> new_counts_;
  std::vector<std::uint32_t> piece_;    // rows
  std::vector<bool> piece_is_nearest_;  // whether this is the row's nearest partition
  std::vector<bool> is_nearest_;        // of members_
  std::size_t count_ = 0;
  std::size_t nearest_rows_ = 0;
};

}  // namespace nearwise::plan
