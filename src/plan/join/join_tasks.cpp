// join: the pairs of two blocks. sides: the duplicates of each row of a block, from joins or from partitions.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/distance.h"
#include "io/container/container_writer.h"
#include "ops/finite_rows.h"
#include "plan/join/join_work.h"
#include "plan/join/partition_files.h"

namespace nearwise::plan {
namespace {

using duplicates::Duplicate;

constexpr std::size_t written_pairs = 8192;   // per write
constexpr std::size_t rows_per_check = 4096;  // of cancellation

class ListWriter {
 public:
  ListWriter(const Context& context, const std::filesystem::path& file, const char* kind, std::size_t rows)
      : writer_(file, kind), ends_(*context.state().budget, rows) {
    writer_.write_metadata(nlohmann::json::object());
    writer_.begin_section("pairs", container::Element::u32, {.columns = 2});
  }

  // The lists of the next rows, one after the other.
  void append(std::span<const Duplicate> lists) { writer_.append(std::as_bytes(lists)); }
  void end_list(std::size_t count) {
    total_ += count;
    ends_[row_++] = total_;
  }
  std::uint64_t end_of(std::size_t row) const { return ends_[row]; }
  void commit() {
    writer_.write_section("ends", MatrixView<const std::uint64_t>(ends_.data(), ends_.size(), 1));
    writer_.commit();
  }

 private:
  ContainerWriter writer_;
  Buffer<std::uint64_t> ends_;
  std::size_t row_ = 0;
  std::uint64_t total_ = 0;
};

void append_found(Metric metric, const RangeNeighbors& found, ListWriter& writer) {
  std::vector<Duplicate> piece;
  for (std::size_t first = 0; first < found.ids.size(); first += written_pairs) {
    piece.clear();
    for (std::size_t i = first; i < std::min(found.ids.size(), first + written_pairs); ++i)
      piece.push_back({static_cast<std::uint32_t>(found.ids[i]), sort_key(metric, found.distances[i])});
    writer.append(piece);
  }
  for (std::size_t row = 0; row + 1 < found.offsets.size(); ++row)
    writer.end_list(found.offsets[row + 1] - found.offsets[row]);
}

// The pairs of a block with all rows, from the files of its joins.
class JoinedPairs {
 public:
  JoinedPairs(const Context& context, const JoinWork& work, std::size_t block)
      : cancel_(context.state().cancel), work_(work), block_(block) {
    for (std::size_t other = 0; other < work.blocks(); ++other) {
      const std::size_t left = std::min(block, other);
      files_.emplace_back(work.file_of(join_name(left, std::max(block, other))), work.block(left).count);
    }
  }

  // visit(row in the block, its duplicate), for every one of `rows` in ascending order of duplicates. The
  // first call must be for the whole block: it verifies the order of the lists.
  template <typename Visit>
  void for_each(RowRange rows, const Visit& visit) const {
    const RowRange own = work_.block(block_);
    const RowRange wanted = {own.first + rows.first, rows.count};
    const bool is_whole = rows.count == own.count;
    for (std::size_t other = 0; other < files_.size(); ++other) {
      const RowRange left = work_.block(std::min(block_, other));
      const RowRange right = work_.block(std::max(block_, other));
      const std::size_t end = other < block_ ? left.count : rows.end();
      for (std::size_t row = other > block_ ? rows.first : 0; row < end; ++row) {
        if (row % rows_per_check == 0) cancel_.check();
        const std::size_t number = left.first + row;
        const std::size_t least = std::max(right.first, number + 1);
        const bool is_wanted = other >= block_ && row >= rows.first;
        for (const Duplicate& pair : is_whole || is_wanted
                                         ? files_[other].of(row, {least, right.end() - least})
                                         : files_[other].part_of(row, wanted)) {
          if (is_wanted) visit(row, pair);
          if (other <= block_ && pair.row < wanted.end())
            visit(pair.row - own.first, Duplicate{static_cast<std::uint32_t>(number), pair.key});
        }
      }
    }
  }

 private:
  const CancelFlag& cancel_;
  const JoinWork& work_;
  const std::size_t block_;
  std::vector<DuplicateLists> files_;
};

// The same from the files of groups of partitions, in any order.
class PartitionedPairs {
 public:
  PartitionedPairs(const Context& context, const JoinWork& work, std::size_t block)
      : cancel_(context.state().cancel), work_(work), block_(block) {
    for (std::size_t group = 0; group < work.partitions.groups; ++group) files_.emplace_back(work, group);
  }

  template <typename Visit>
  void for_each(RowRange rows, const Visit& visit) const {
    const std::size_t first = work_.block(block_).first;
    for (const FoundPairs& file : files_) {
      cancel_.check();
      file.for_each(work_, block_, {first + rows.first, rows.count},
                    [&](std::size_t row, const Duplicate& other) { visit(row - first, other); });
    }
  }

 private:
  const CancelFlag& cancel_;
  const JoinWork& work_;
  const std::size_t block_;
  std::vector<FoundPairs> files_;
};

// Rows are taken together as far as memory holds their lists.
template <typename Pairs>
void write_sides(const Context& context, const JoinWork& work, std::size_t block) {
  MemoryBudget& budget = *context.state().budget;
  const std::size_t rows = work.block(block).count;
  const Pairs pairs(context, work, block);
  ListWriter writer(context, work.file_of(sides_name(block)), "join_sides", rows);
  Buffer<std::uint64_t> ends(budget, rows);  // of a list in those taken together, while they are filled
  std::ranges::fill(ends.span(), std::uint64_t{0});
  pairs.for_each({0, rows}, [&](std::size_t row, const Duplicate&) { ++ends[row]; });
  const auto refuse = [&] { fail(ErrorCode::corrupt, "{}: pairs have changed", work.files.work.native()); };
  for (std::size_t first = 0, end = 0; first < rows; first = end) {
    const std::uint64_t most = budget.available() / 2 / sizeof(Duplicate);
    std::uint64_t count = 0;
    for (; end < rows && (end == first || count + ends[end] <= most); ++end) {
      writer.end_list(ends[end]);
      count += std::exchange(ends[end], count);
    }
    Buffer<Duplicate> lists(budget, count);
    pairs.for_each({first, end - first}, [&](std::size_t row, const Duplicate& duplicate) {
      if (row < first || row >= end || ends[row] == count) refuse();
      lists[ends[row]++] = duplicate;
    });
    const std::uint64_t before = first == 0 ? 0 : writer.end_of(first - 1);
    std::uint64_t begin = 0;
    for (std::size_t row = first; row < end; ++row) {
      if ((row - first) % rows_per_check == 0) context.state().cancel.check();
      if (ends[row] != writer.end_of(row) - before) refuse();
      if (work.is_by_partitions())
        std::ranges::sort(lists.span().subspan(begin, ends[row] - begin), {}, &Duplicate::row);
      begin = ends[row];
    }
    writer.append(lists.span());
  }
  writer.commit();
}

}  // namespace

// In two halves if there are more pairs than memory holds.
void find_pairs(const Context& context, const JoinWork& work, const RowsView& rows, RowRange left,
                RowRange right, const TakePairs& take) {
  std::optional<RangeNeighbors> found;
  try {
    found = join_rows(work.operation(), context, rows, left, right, work.threshold, work.metric, 0);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory || left.count < 2 * least_joined_rows) throw;
  }
  if (found) {
    const std::uint64_t bytes = found->ids.size() * (sizeof(Id) + sizeof(float));
    const Reservation reservation(*context.state().budget, bytes);
    return take(left.first, *found);
  }
  const std::size_t half = left.count / 2;
  find_pairs(context, work, rows, {left.first, half}, right, take);
  find_pairs(context, work, rows, {left.first + half, left.count - half}, right, take);
}

void join_blocks(const Context& context, const JoinWork& work, std::size_t left, std::size_t right) {
  const PlanInput input = work.input(context);
  for (const std::size_t number : {left, right}) {
    const RowRange block = work.block(number);
    check_finite(work.operation(), context, input.slice(block.first, block.count), block.first);
  }
  const RowsView rows = input.rows_at(0, {});  // of which both blocks are verified
  ListWriter writer(context, work.file_of(join_name(left, right)), "join_pairs", work.block(left).count);
  find_pairs(context, work, rows, work.block(left), work.block(right),
             [&](std::size_t, const RangeNeighbors& found) { append_found(work.metric, found, writer); });
  writer.commit();
}

void gather_sides(const Context& context, const JoinWork& work, std::size_t block) {
  work.is_by_partitions() ? write_sides<PartitionedPairs>(context, work, block)
                          : write_sides<JoinedPairs>(context, work, block);
}

}  // namespace nearwise::plan
