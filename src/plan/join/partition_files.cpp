#include "plan/join/partition_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "backend/context_state.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/progress.h"
#include "io/container/metadata.h"
#include "nearwise/vector_file.h"
#include "plan/tasks/partial_neighbors.h"
#include "plan/tasks/write_rows.h"

namespace nearwise::plan {
namespace {

using duplicates::Duplicate;

std::string part_section(const char* name, std::uint64_t part) { return fmt::format("{}_{}", name, part); }

// Ends of consecutive lists: ascending, the last one at `all`.
void check_ends(const ContainerReader& reader, const MatrixView<const std::uint64_t>& ends, std::size_t lists,
                std::uint64_t all) {
  const std::span<const std::uint64_t> values(ends.data(), ends.rows());
  if (ends.cols() != 1 || ends.rows() != lists || !std::ranges::is_sorted(values) ||
      (lists == 0 ? 0 : values.back()) != all)
    fail(ErrorCode::corrupt, "{}: ends of {} lists of {} expected", reader.source(), lists, all);
}

std::size_t row_of_pair(const FoundPair& pair) { return pair.row; }

// Of a sorted run. The second search begins where the first one ended, because a file that has changed may be
// out of order.
std::span<const FoundPair> pairs_of(RowRange rows, std::span<const FoundPair> run) {
  const auto first = std::ranges::lower_bound(run, rows.first, {}, row_of_pair);
  const auto end = std::ranges::lower_bound(first, run.end(), rows.end(), {}, row_of_pair);
  return {first, end};
}

}  // namespace

JoinCentroids::JoinCentroids(const JoinWork& work)
    : reader(ContainerReader::open(work.file_of(train_join_name))),
      centroids(reader.section("centroids").rows<float>()),
      between(reader.section("between").rows<float>()) {
  const std::size_t dim = VectorFile::open(work.files.vectors).rows().dim();
  if (centroids.rows() < 1 || centroids.rows() > work.partitions.count || centroids.cols() != dim)
    fail(ErrorCode::corrupt, "{}: 1 to {} centroids of {} elements expected, {} of {} found", reader.source(),
         work.partitions.count, dim, centroids.rows(), centroids.cols());
  if (between.rows() != centroids.rows() || between.cols() != centroids.rows())
    fail(ErrorCode::corrupt, "{}: distances between {} centroids expected, [{}, {}] found", reader.source(),
         centroids.rows(), between.rows(), between.cols());
}

JoinCentroids::Range JoinCentroids::group(const JoinWork& work, std::size_t number) const {
  const std::size_t each = divide_up(centroids.rows(), work.partitions.groups);
  const std::size_t first = std::min(number * each, centroids.rows());
  return {first, std::min(first + each, centroids.rows())};
}

AssignmentWriter::AssignmentWriter(const Context& context, const JoinWork& work, const RowsView& block,
                                   std::size_t first_row, std::size_t partitions,
                                   const std::filesystem::path& file)
    : context_(context),
      block_(block),
      first_row_(first_row),
      partitions_(partitions),
      writer_(file, "join_assignment"),
      members_(*context.state().budget, std::max<std::size_t>(1, work.partitions.part_members)) {}

void AssignmentWriter::add(std::span<const PartitionMember> members) {
  while (!members.empty()) {
    if (filled_ == members_.size()) write_part();
    const std::size_t count = std::min(members.size(), members_.size() - filled_);
    std::ranges::copy(members.first(count), members_.data() + filled_);
    filled_ += count;
    members = members.subspan(count);
  }
}

void AssignmentWriter::write_part() {
  const std::span<PartitionMember> members = members_.span().first(filled_);
  std::ranges::sort(members);
  std::vector<std::uint64_t> ends(2 * partitions_, 0);
  for (const PartitionMember& member : members) ++ends[member.place()];
  for (std::size_t place = 1; place < ends.size(); ++place) ends[place] += ends[place - 1];
  writer_.write_section(part_section("ends", parts_),
                        MatrixView<const std::uint64_t>(ends.data(), ends.size(), 1));
  writer_.begin_section(part_section("rows", parts_), container::Element::u32);
  write_rows(context_, writer_, members.size(), sizeof(std::uint32_t), [&](std::size_t i, std::byte* out) {
    const std::uint32_t row = members[i].row();
    std::memcpy(out, &row, sizeof(row));
  });
  const std::size_t row_bytes = row_bytes_of(block_);
  writer_.begin_section(part_section("vectors", parts_), container::Element::u8, {.columns = row_bytes});
  write_rows(context_, writer_, members.size(), row_bytes, [&](std::size_t i, std::byte* out) {
    std::memcpy(out, block_.row(members[i].row() - first_row_), row_bytes);
  });
  ++parts_;
  filled_ = 0;
}

void AssignmentWriter::commit() {
  if (filled_ != 0) write_part();
  writer_.write_metadata({{"parts", parts_}});
  writer_.commit();
}

AssignedGroup::AssignedGroup(const Context& context, const JoinWork& work, JoinCentroids::Range partitions,
                             std::size_t all_partitions)
    : row_bytes_(row_bytes_of(VectorFile::open(work.files.vectors).rows())) {
  for (std::size_t block = 0; block < work.blocks(); ++block) {
    context.state().cancel.check();
    readers_.push_back(ContainerReader::open(work.file_of(assign_join_name(block))));
    const ContainerReader& reader = readers_.back();
    const std::uint64_t parts = count_in(reader, "parts", reader.sections().size());
    for (std::uint64_t number = 0; number < parts; ++number) {
      Part part;
      const SectionView rows = reader.section(part_section("rows", number));
      const SectionView vectors = reader.section(part_section("vectors", number));
      part.ends = reader.section(part_section("ends", number)).rows<std::uint64_t>();
      check_ends(reader, part.ends, 2 * all_partitions, rows.info().rows);
      if (rows.info().columns != 1 || vectors.info().rows != rows.info().rows ||
          vectors.info().columns != row_bytes_)
        fail(ErrorCode::corrupt, "{}: {} vectors of {} bytes expected, {} of {} found", reader.source(),
             rows.info().rows, row_bytes_, vectors.info().rows, vectors.info().columns);
      const auto end_before = [&](std::size_t partition) {
        return partition == 0 ? 0 : part.ends(2 * partition - 1, 0);
      };
      part.first = end_before(partitions.first);
      const std::uint64_t count = end_before(partitions.end) - part.first;
      const auto numbers = rows.rows<std::uint32_t>(part.first, count);
      part.rows = {numbers.data(), numbers.rows()};
      const RowRange range = work.block(block);
      if (std::ranges::any_of(part.rows,
                              [&](std::uint32_t row) { return row < range.first || row >= range.end(); }))
        fail(ErrorCode::corrupt, "{}: rows {} to {} expected", reader.source(), range.first, range.end() - 1);
      part.vectors = reinterpret_cast<const std::byte*>(vectors.rows<std::uint8_t>(part.first, count).data());
      parts_.push_back(part);
      stored_ += count;
    }
  }
}

PartitionPiece AssignedGroup::piece(const Part& part, std::size_t place) const {
  const std::uint64_t first = (place == 0 ? 0 : part.ends(place - 1, 0)) - part.first;
  const std::uint64_t count = part.ends(place, 0) - part.first - first;
  if (first > part.rows.size() || count > part.rows.size() - first)
    fail(ErrorCode::corrupt, "{}: ends have changed", readers_.front().source());
  return {part.rows.subspan(first, count), part.vectors + first * row_bytes_};
}

std::vector<PartitionPiece> AssignedGroup::of(std::size_t partition) const {
  std::vector<PartitionPiece> pieces;
  for (const std::size_t place : {2 * partition, 2 * partition + 1})
    for (const Part& part : parts_)
      if (const PartitionPiece found = piece(part, place); !found.rows.empty()) pieces.push_back(found);
  return pieces;
}

std::size_t AssignedGroup::homes(std::size_t partition) const {
  std::size_t count = 0;
  for (const Part& part : parts_) count += piece(part, 2 * partition).rows.size();
  return count;
}

PairRuns::PairRuns(const Context& context, const JoinWork& work, const std::filesystem::path& file)
    : work_(work),
      writer_(file, "join_found"),
      pairs_(*context.state().budget, std::max<std::size_t>(2, work.partitions.run_pairs)) {
  static_assert(sizeof(FoundPair) == 3 * sizeof(std::uint32_t));
  writer_.begin_section("pairs", container::Element::u32, {.columns = 3});
}

void PairRuns::add(std::uint32_t left, std::uint32_t right, float key) {
  const auto [row, later] = std::minmax(left, right);
  put({row, {later, key}});
  if (work_.dedup) put({later, {row, key}});
}

void PairRuns::put(const FoundPair& pair) {
  if (filled_ == pairs_.size()) write_run();
  pairs_[filled_++] = pair;
}

void PairRuns::write_run() {
  const std::span<FoundPair> run = pairs_.span().first(filled_);
  std::ranges::sort(run, [](const FoundPair& left, const FoundPair& right) {
    return left.row < right.row || (left.row == right.row && left.other.row < right.other.row);
  });
  for (std::size_t block = 0; block < work_.blocks(); ++block) {
    const auto end = std::ranges::lower_bound(run, work_.block(block).end(), {}, row_of_pair);
    ends_.push_back(written_ + static_cast<std::uint64_t>(end - run.begin()));
  }
  writer_.append(std::as_bytes(run));
  written_ += filled_;
  filled_ = 0;
}

void PairRuns::commit(std::uint64_t stored, std::uint64_t compared) {
  if (filled_ != 0) write_run();
  writer_.write_section("ends", MatrixView<const std::uint64_t>(ends_.data(), ends_.size(), 1));
  writer_.write_metadata({{"stored", stored}, {"compared", compared}});
  writer_.commit();
}

FoundPairs::FoundPairs(const JoinWork& work, std::size_t group)
    : reader_(ContainerReader::open(work.file_of(compare_name(group)))),
      ends_(reader_.section("ends").rows<std::uint64_t>()) {
  const container::Section& pairs = reader_.section("pairs").info();
  if (pairs.element != container::Element::u32 || pairs.columns != 3 || ends_.rows() % work.blocks() != 0)
    fail(ErrorCode::corrupt, "{}: runs of pairs of {} blocks expected", reader_.source(), work.blocks());
  check_ends(reader_, ends_, ends_.rows(), pairs.rows);
  // Every vector is in every partition at most, and compared there with all.
  const std::uint64_t most_stored =
      bounded_product<std::uint64_t>(work.rows, work.partitions.count, most_metadata_number);
  stored_ = count_in(reader_, "stored", most_stored);
  compared_ = count_in(reader_, "compared",
                       bounded_product<std::uint64_t>(most_stored, work.rows, most_metadata_number));
}

void FoundPairs::for_each(const JoinWork& work, std::size_t block, RowRange rows, const Visit& visit) const {
  const bool is_whole = rows.count == work.block(block).count;
  const SectionView section = reader_.section("pairs");
  for (std::size_t list = block; list < ends_.rows(); list += work.blocks()) {
    check_cancelled();
    const std::uint64_t first = list == 0 ? 0 : ends_(list - 1, 0);
    const std::uint64_t end = ends_(list, 0);
    if (first > end || end > section.info().rows)
      fail(ErrorCode::corrupt, "{}: ends have changed", reader_.source());
    const auto bytes = section.bytes(first * sizeof(FoundPair), (end - first) * sizeof(FoundPair));
    const std::span<const FoundPair> run(reinterpret_cast<const FoundPair*>(bytes.data()), end - first);
    std::size_t least_row = rows.first;
    for (const FoundPair& pair : is_whole ? run : pairs_of(rows, run)) {
      const std::size_t least_other = work.dedup ? 0 : std::size_t{pair.row} + 1;
      if (pair.row < least_row || pair.row >= rows.end() || pair.other.row < least_other ||
          pair.other.row >= work.rows || std::isnan(pair.other.key))
        fail(ErrorCode::corrupt, "{}: pairs of rows {} to {} in their order expected, {} and {} found",
             reader_.source(), rows.first, rows.end() - 1, pair.row, pair.other.row);
      least_row = pair.row;
      visit(pair.row, pair.other);
    }
  }
}

}  // namespace nearwise::plan
