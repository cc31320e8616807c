// Work files of a join by partitions: centroids, the vectors of each partition by block, and the pairs of
// each group of partitions by block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "core/memory.h"
#include "duplicates/duplicate_pairs.h"
#include "io/container/container_reader.h"
#include "io/container/container_writer.h"
#include "ops/threshold_join.h"
#include "plan/join/join_work.h"
#include "plan/join/partition_members.h"

namespace nearwise::plan {

struct JoinCentroids {
  // Throws Error(corrupt).
  explicit JoinCentroids(const JoinWork& work);

  ContainerReader reader;
  MatrixView<const float> centroids;
  MatrixView<const float> between;  // of MemberSearch

  // Partitions of a group: [first, end).
  struct Range {
    std::size_t first = 0;
    std::size_t end = 0;
  };
  Range group(const JoinWork& work, std::size_t number) const;
};

// Writes the vectors of a block by partition: in parts, each of which is sorted.
class AssignmentWriter {
 public:
  // block: the rows from first_row on.
  AssignmentWriter(const Context& context, const JoinWork& work, const RowsView& block, std::size_t first_row,
                   std::size_t partitions, const std::filesystem::path& file);

  void add(std::span<const PartitionMember> members);
  void commit();

 private:
  void write_part();

  const Context context_;
  const RowsView block_;
  const std::size_t first_row_;
  const std::size_t partitions_;
  ContainerWriter writer_;
  Buffer<PartitionMember> members_;
  std::size_t filled_ = 0;
  std::size_t parts_ = 0;
};

// Consecutive vectors of one partition in one file.
struct PartitionPiece {
  std::span<const std::uint32_t> rows;
  const std::byte* vectors = nullptr;  // [rows, row_bytes]
};

// The vectors of a group of partitions in all blocks.
class AssignedGroup {
 public:
  // Throws Error(corrupt).
  AssignedGroup(const Context& context, const JoinWork& work, JoinCentroids::Range partitions,
                std::size_t all_partitions);

  // Those at home, then the copies.
  std::vector<PartitionPiece> of(std::size_t partition) const;
  std::size_t homes(std::size_t partition) const;
  // In all partitions of the group.
  std::size_t stored() const { return stored_; }

 private:
  struct Part {
    MatrixView<const std::uint64_t> ends;  // [2 * partitions] of the places of PartitionMember
    std::uint64_t first = 0;               // the end before those of the group
    std::span<const std::uint32_t> rows;   // of the group
    const std::byte* vectors = nullptr;
  };
  PartitionPiece piece(const Part& part, std::size_t place) const;

  const std::size_t row_bytes_;
  std::vector<ContainerReader> readers_;
  std::vector<Part> parts_;
  std::size_t stored_ = 0;
};

// A pair, from its row `row`.
struct FoundPair {
  std::uint32_t row;
  duplicates::Duplicate other;
};

// Writes the pairs of a group: runs, each sorted by row and then by the other row.
class PairRuns {
 public:
  PairRuns(const Context& context, const JoinWork& work, const std::filesystem::path& file);

  // In any order of the two.
  void add(std::uint32_t left, std::uint32_t right, float key);
  // stored: vectors of the group, compared: pairs of them; for the report.
  void commit(std::uint64_t stored, std::uint64_t compared);

 private:
  void put(const FoundPair& pair);
  void write_run();

  const JoinWork& work_;
  ContainerWriter writer_;
  Buffer<FoundPair> pairs_;
  std::size_t filled_ = 0;
  std::uint64_t written_ = 0;
  std::vector<std::uint64_t> ends_;  // [runs * blocks] of the pairs whose row is in a block
};

// Reads them, of one block.
class FoundPairs {
 public:
  // Throws Error(corrupt).
  FoundPairs(const JoinWork& work, std::size_t group);

  // visit(row of the file, other)
  using Visit = std::function<void(std::size_t, const duplicates::Duplicate&)>;
  // The pairs of `rows`, which lie in the block. The first call must be for the whole block: it verifies the
  // order of its pairs, by which calls for a part find theirs. Throws Error(corrupt).
  void for_each(const JoinWork& work, std::size_t block, RowRange rows, const Visit& visit) const;

  // Of commit().
  std::uint64_t stored() const { return stored_; }
  std::uint64_t compared() const { return compared_; }

 private:
  ContainerReader reader_;
  MatrixView<const std::uint64_t> ends_;
  std::uint64_t stored_ = 0;
  std::uint64_t compared_ = 0;
};

}  // namespace nearwise::plan
