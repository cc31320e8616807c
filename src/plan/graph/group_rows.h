// The rows of a group of partitions, collected from all blocks in batches that fit in memory.
//
// A batch consists of pieces: the members of a partition, cut at max_partition_rows. Places of a batch: first
// the rows whose nearest partition is in the batch, partition by partition, then the others. Compared rows
// are thus close in memory, and the first rows are those whose neighbours should be in the batch.
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

// Prefetches what GroupRows will read.
void prefetch_group(const GraphWork& work, std::size_t pass, std::size_t group, const std::stop_token& stop);

class GroupRows {
 public:
  // The work must outlive it. Throws Error(corrupt), as next() does.
  GroupRows(const Context& context, const GraphWork& work, std::size_t pass, std::size_t group);

  // Reads the next batch; false after the last.
  bool next();

  // [rows] row number in the file, by place
  std::span<const std::uint32_t> rows() const { return rows_.span().first(count_); }
  // The first rows, whose nearest partition is in the batch.
  std::size_t nearest_rows() const { return nearest_rows_; }
  // [rows, row_bytes] vectors by place. Throws Error(corrupt).
  Buffer<std::byte> gather() const;
  // Members of the group's partitions that no batch has read yet.
  std::size_t rest() const;
  // Places sorted by row number.
  std::span<const std::uint32_t> by_row() const { return by_row_.span().first(count_); }
  Groups pieces() const {
    return {members_.span().first(ends_.empty() ? 0 : ends_.back()), ends_, new_counts_};
  }

 private:
  // The part of the group in one block.
  struct Part {
    ContainerReader reader;
    std::span<const std::uint32_t> rows;
    std::span<const std::uint32_t> partitions;
    std::size_t next = 0;
  };

  static void check_order(const Part& part, std::size_t first_row, std::size_t rows);
  // Reads the next members of one partition, ascending, into piece_; leaves it empty after the last.
  void read_piece();
  bool take_piece();
  void number_rows();

  const Context context_;
  const GraphWork& work_;
  const std::size_t group_;
  const std::size_t max_rows_;
  std::vector<Part> parts_;
  Buffer<std::uint64_t> seen_;    // a bit per row of the file: in the batch
  Buffer<std::uint32_t> before_;  // [words of seen_] rows of the batch in earlier words
  Buffer<std::uint32_t> rows_;
  Buffer<std::uint32_t> by_row_;
  Buffer<std::uint32_t> members_;  // row numbers while pieces are read, then places
  std::vector<std::uint64_t> ends_;
  std::vector<std::uint32_t> new_counts_;
  std::vector<std::uint32_t> piece_;    // rows
  std::vector<bool> piece_is_nearest_;  // whether this is the row's nearest partition
  std::vector<bool> is_nearest_;        // of members_
  std::size_t count_ = 0;
  std::size_t nearest_rows_ = 0;
};

}  // namespace nearwise::plan
