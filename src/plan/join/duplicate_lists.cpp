#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "plan/join/join_work.h"

namespace nearwise::plan {

using duplicates::Duplicate;

DuplicateLists::DuplicateLists(const std::filesystem::path& file, std::size_t rows)
    : reader_(ContainerReader::open(file)), ends_(reader_.section("ends").rows<std::uint64_t>()) {
  const container::Section& pairs = reader_.section("pairs").info();
  pairs_ = pairs.rows;
  if (ends_.rows() != rows || ends_.cols() != 1 || pairs.element != container::Element::u32 ||
      pairs.columns != 2)
    fail(ErrorCode::corrupt, "{}: {} lists of pairs expected", reader_.source(), rows);
  std::uint64_t previous = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (ends_(row, 0) < previous)
      fail(ErrorCode::corrupt, "{}: ends, row {}: at least {} expected, {} found", reader_.source(), row,
           previous, ends_(row, 0));
    previous = ends_(row, 0);
  }
  if (previous != pairs_)
    fail(ErrorCode::corrupt, "{}: {} pairs expected, {} found", reader_.source(), previous, pairs_);
}

std::span<const Duplicate> DuplicateLists::list_of(std::size_t row) const {
  static_assert(sizeof(Duplicate) == 2 * sizeof(std::uint32_t));
  const std::uint64_t first = begin(row);
  const std::uint64_t end = ends_(row, 0);
  if (first > end || end > pairs_) fail(ErrorCode::corrupt, "{}: ends have changed", reader_.source());
  const auto bytes =
      reader_.section("pairs").bytes(first * sizeof(Duplicate), (end - first) * sizeof(Duplicate));
  return {reinterpret_cast<const Duplicate*>(bytes.data()), end - first};
}

std::span<const Duplicate> DuplicateLists::of(std::size_t row, RowRange range) const {
  const std::span<const Duplicate> list = list_of(row);
  std::uint64_t least = range.first;
  for (const Duplicate& duplicate : list) {
    if (duplicate.row < least || duplicate.row >= range.end() || std::isnan(duplicate.key))
      fail(ErrorCode::corrupt, "{}: pairs, row {}: ascending rows from {} to {} expected, {} found",
           reader_.source(), row, range.first, range.end() - 1, duplicate.row);
    least = std::uint64_t{duplicate.row} + 1;
  }
  return list;
}

std::span<const Duplicate> DuplicateLists::part_of(std::size_t row, RowRange part) const {
  const auto row_of = [](const Duplicate& duplicate) { return std::size_t{duplicate.row}; };
  const std::span<const Duplicate> list = list_of(row);
  const auto first = std::ranges::lower_bound(list, part.first, {}, row_of);
  return {first, std::ranges::lower_bound(first, list.end(), part.end(), {}, row_of)};
}

}  // namespace nearwise::plan
