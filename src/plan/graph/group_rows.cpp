#include "plan/graph/group_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "io/files/read_ahead.h"
#include "ops/gather_rows.h"
#include "plan/graph/group_vectors.h"

namespace nearwise::plan {
namespace {

constexpr std::size_t task_members = 1 << 16;

bool test(std::span<const std::uint64_t> bits, std::uint32_t row) {
  return (bits[row / 64] >> row % 64 & 1) != 0;
}
void set(std::span<std::uint64_t> bits, std::uint32_t row) { bits[row / 64] |= std::uint64_t{1} << row % 64; }
void clear(std::span<std::uint64_t> bits, std::uint32_t row) {
  bits[row / 64] &= ~(std::uint64_t{1} << row % 64);
}

}  // namespace

void prefetch_group(const GraphWork& work, std::size_t pass, std::size_t group, const std::stop_token& stop) {
  for (std::size_t block = 0; block < work.shape.blocks && !stop.stop_requested(); ++block) {
    const auto file = work.file_of(assign_name(pass, block));
    if (!std::filesystem::exists(file)) continue;  // another process may still be writing it
    const ContainerReader reader = ContainerReader::open(file);
    const auto ask = [&](const char* name, const char* ends_name) {
      const auto ends = reader.section(ends_name).rows<std::uint64_t>();
      const container::Section& section = reader.section(name).info();
      if (group >= ends.rows() || section.rows == 0) return;  // the reader reports it
      const std::uint64_t row_bytes = section.bytes / section.rows;
      const std::uint64_t begin = std::min(section.rows, group == 0 ? 0 : ends(group - 1, 0));
      const std::uint64_t end = std::clamp(ends(group, 0), begin, section.rows);
      ask_for(reader.unverified_bytes(section).data() + begin * row_bytes, (end - begin) * row_bytes, stop);
    };
    ask("rows", "group_ends");
    ask("partitions", "group_ends");
    if (work.shape.groups == 1) continue;
    ask("vector_rows", "vector_ends");
    ask("vectors", "vector_ends");
  }
}

GroupRows::GroupRows(const Context& context, const GraphWork& work, std::size_t pass, std::size_t group)
    : context_(context),
      work_(work),
      group_(group),
      max_rows_(std::min(work.shape.batch_rows, work.shape.rows)) {
  std::uint64_t members = 0;
  for (std::size_t block = 0; block < work.shape.blocks; ++block) {
    ContainerReader reader = ContainerReader::open(work.file_of(assign_name(pass, block)));
    const auto ends = reader.section("group_ends").rows<std::uint64_t>();
    if (group >= ends.rows()) fail(ErrorCode::corrupt, "{}: group {} is missing", reader.source(), group);
    const std::uint64_t begin = group == 0 ? 0 : ends(group - 1, 0);
    const std::uint64_t end = ends(group, 0);
    // Reads and verifies the group's part only, because every group reads every block.
    const std::uint64_t all = reader.section("rows").info().rows;
    if (begin > end || end > all || all > work.shape.rows_of(block) * work.shape.overlap ||
        reader.section("partitions").info().rows != all)
      fail(ErrorCode::corrupt, "{}: rows {} to {} of {} expected in group {}", reader.source(), begin, end,
           all, group);
    const std::uint64_t count = end - begin;
    const auto rows = reader.section("rows").rows<std::uint32_t>(begin, count);
    const auto partitions = reader.section("partitions").rows<std::uint32_t>(begin, count);
    parts_.push_back({std::move(reader), {rows.data(), count}, {partitions.data(), count}});
    check_order(parts_.back(), work.shape.first_row(block), work.shape.rows_of(block));
    members += count;
  }
  MemoryBudget& budget = *context.state().budget;
  const std::size_t max_members = std::min<std::uint64_t>(members, max_rows_ * work.shape.overlap);
  const std::size_t rows = std::min<std::uint64_t>(members, max_rows_);
  seen_ = Buffer<std::uint64_t>(budget, work.shape.rows / 64 + 1);
  rows_ = Buffer<std::uint32_t>(budget, rows);
  by_row_ = Buffer<std::uint32_t>(budget, rows);
  members_ = Buffer<std::uint32_t>(budget, max_members);
  before_ = Buffer<std::uint32_t>(budget, seen_.size());
  std::ranges::fill(seen_.span(), std::uint64_t{0});
  read_piece();
}

// Sorted by partition, then by row: no row is in a partition twice.
void GroupRows::check_order(const Part& part, std::size_t first_row, std::size_t rows) {
  for (std::size_t i = 0; i < part.rows.size(); ++i) {
    if (part.rows[i] < first_row || part.rows[i] - first_row >= rows)
      fail(ErrorCode::corrupt, "{}: {} is not a row of the block", part.reader.source(), part.rows[i]);
    const auto at = [&](std::size_t place) {
      return std::pair(part.partitions[place] & ~nearest_partition, part.rows[place]);
    };
    if (i != 0 && at(i - 1) >= at(i))
      fail(ErrorCode::corrupt, "{}: row {} is not in the order of partitions and rows", part.reader.source(),
           part.rows[i]);
  }
}

void GroupRows::read_piece() {
  piece_.clear();
  piece_is_nearest_.clear();
  std::uint32_t partition = no_row;
  for (const Part& part : parts_)
    if (part.next < part.partitions.size())
      partition = std::min(partition, part.partitions[part.next] & ~nearest_partition);
  for (Part& part : parts_)
    for (;
         part.next < part.partitions.size() && (part.partitions[part.next] & ~nearest_partition) == partition;
         ++part.next) {
      if (piece_.size() == graph::max_partition_rows) return;
      piece_.push_back(part.rows[part.next]);
      piece_is_nearest_.push_back((part.partitions[part.next] & nearest_partition) != 0);
    }
}

bool GroupRows::take_piece() {
  const auto new_rows = static_cast<std::size_t>(
      std::ranges::count_if(piece_, [&](std::uint32_t row) { return !test(seen_.span(), row); }));
  if (piece_.empty() || count_ + new_rows > max_rows_) return false;
  const std::uint64_t begin = ends_.empty() ? 0 : ends_.back();
  if (piece_.size() > members_.size() - begin)
    fail(ErrorCode::corrupt, "{}: rows of group {} in more than {} partitions",
         parts_.front().reader.source(), group_, work_.shape.overlap);
  for (std::size_t i = 0; i < piece_.size(); ++i) {
    set(seen_.span(), piece_[i]);
    members_[begin + i] = piece_[i];
    is_nearest_.push_back(piece_is_nearest_[i]);
  }
  count_ += new_rows;
  ends_.push_back(begin + piece_.size());
  new_counts_.push_back(static_cast<std::uint32_t>(piece_.size()));
  return true;
}

std::size_t GroupRows::rest() const {
  std::size_t members = piece_.size();
  for (const Part& part : parts_) members += part.partitions.size() - part.next;
  return members;
}

bool GroupRows::next() {
  count_ = 0;
  ends_.clear();
  new_counts_.clear();
  is_nearest_.clear();
  while (take_piece()) read_piece();
  if (count_ == 0) return false;
  number_rows();
  return true;
}

Buffer<std::byte> GroupRows::gather() const {
  const auto by_row = this->by_row();
  const std::size_t row_bytes = work_.shape.row_bytes();
  Buffer<std::byte> gathered(*context_.state().budget, by_row.size() * row_bytes);
  if (work_.shape.groups == 1) {
    const PlanInput input = work_.input(context_);
    const auto placed = [&](std::size_t i) { return PlacedRow{rows()[by_row[i]], by_row[i]}; };
    const RowsView vectors = input.rows_at(by_row.size(), [&](std::size_t i) { return placed(i).row; });
    gather_rows(context_, vectors, by_row.size(), placed, gathered.data());
    return gathered;
  }
  // Merges the sorted rows of each block with the sorted rows of the batch, which may hold part of the group
  // only.
  context_.state().threads->for_each(parts_.size(), [&](std::size_t block) {
    context_.state().cancel.check();
    const GroupVectors own(work_, parts_[block].reader, group_);
    const auto row_at = [&](std::uint32_t place) { return std::size_t{rows_[place]}; };
    const std::size_t first = work_.shape.first_row(block);
    auto place = std::ranges::lower_bound(by_row, first, {}, row_at);
    const auto end = std::ranges::lower_bound(by_row, first + work_.shape.rows_of(block), {}, row_at);
    for (std::size_t i = 0; i < own.rows.size() && place != end; ++i) {
      if (own.rows[i] != rows_[*place]) continue;
      std::memcpy(gathered.data() + *place * row_bytes, own.vectors + i * row_bytes, row_bytes);
      ++place;
    }
    if (place != end)
      fail(ErrorCode::corrupt, "{}: row {} of group {} has no vector", parts_[block].reader.source(),
           rows_[*place], group_);
  });
  return gathered;
}

// Assigns places to rows and converts members_ to places.
void GroupRows::number_rows() {
  const std::span<std::uint32_t> members = members_.span().first(ends_.back());
  std::size_t place = 0;
  const auto take = [&](std::uint32_t row) {
    if (!test(seen_.span(), row)) return;
    clear(seen_.span(), row);
    rows_[place++] = row;
  };
  for (std::size_t i = 0; i < members.size(); ++i)
    if (is_nearest_[i]) take(members[i]);
  nearest_rows_ = place;
  for (const std::uint32_t row : members) take(row);
  NEARWISE_ASSERT(place == count_);

  // The rank of a row among those of the batch, by counting bits.
  for (const std::uint32_t row : rows()) set(seen_.span(), row);
  std::uint32_t before = 0;
  for (std::size_t word = 0; word < seen_.size(); ++word) {
    before_[word] = before;
    before += static_cast<std::uint32_t>(std::popcount(seen_[word]));
  }
  const auto rank = [&](std::uint32_t row) {
    const std::uint64_t lower = (std::uint64_t{1} << row % 64) - 1;
    return before_[row / 64] + static_cast<std::uint32_t>(std::popcount(seen_[row / 64] & lower));
  };
  for (std::uint32_t at = 0; at < count_; ++at) by_row_[rank(rows_[at])] = at;
  context_.state().threads->for_each(divide_up(members.size(), task_members), [&](std::size_t task) {
    context_.state().cancel.check();
    for (std::size_t i = task * task_members; i < std::min(members.size(), (task + 1) * task_members); ++i)
      members[i] = by_row_[rank(members[i])];
  });
  for (const std::uint32_t row : rows()) clear(seen_.span(), row);
}

}  // namespace nearwise::plan
