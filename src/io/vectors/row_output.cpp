#include "io/vectors/row_output.h"

#include <array>
#include <limits>

#include "core/checked.h"
#include "io/files/little_endian.h"
#include "io/vectors/npy_header.h"

namespace nearwise {
namespace {

// Refuses before the file is begun.
VectorFormat format_for(const std::filesystem::path& path, StoredType type, std::size_t dim) {
  const Suffix& suffix = suffix_of(path, "write");
  const bool rows_only =
      suffix.format != VectorFormat::ground_truth && suffix.format != VectorFormat::container;
  require(rows_only, "write {}: rows of {} expected to go to .npy, .*bin or .*vecs, got {}", path.native(),
          name(type), suffix.text);
  require(!suffix.type || *suffix.type == type, "write {}: {} holds {}, got {}", path.native(), suffix.text,
          suffix.type ? name(*suffix.type) : "", name(type));
  constexpr std::size_t most_dim = std::numeric_limits<std::int32_t>::max();
  require(dim >= 1 && dim <= most_dim, "write {}: a dimension of 1 to {} expected, got {}", path.native(),
          most_dim, dim);
  return suffix.format;
}

}  // namespace

RowOutput::RowOutput(const std::filesystem::path& path, StoredType type, std::size_t dim)
    : format_(format_for(path, type, dim)),
      type_(type),
      dim_(dim),
      row_bytes_(dim * stored_size(type)),
      file_(path) {
  if (format_ == VectorFormat::npy) file_.write_zeros(written_npy_header_bytes);
  if (format_ == VectorFormat::bin) file_.write_zeros(8);
}

void RowOutput::count_rows(std::size_t count) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t rows = checked_add<std::uint64_t>(rows_, count, "write");
  require(format_ != VectorFormat::bin || rows <= most,
          "write {}: at most {} rows expected, which its header can hold", path().native(), most);
  rows_ = rows;
}

void RowOutput::append(std::span<const std::byte> row) {
  NEARWISE_ASSERT(row.size() == row_bytes_);
  count_rows(1);
  if (format_ == VectorFormat::vecs) {
    const auto dim = static_cast<std::int32_t>(dim_);
    file_.write(std::as_bytes(std::span(&dim, 1)));
  }
  file_.write(row);
}

void RowOutput::append_packed(std::span<const std::byte> rows, std::size_t count) {
  NEARWISE_ASSERT(rows.size() == count * row_bytes_);
  if (format_ == VectorFormat::vecs) {
    for (std::size_t row = 0; row < count; ++row) append(rows.subspan(row * row_bytes_, row_bytes_));
  } else {
    count_rows(count);
    file_.write(rows);
  }
}

void RowOutput::commit() {
  if (format_ == VectorFormat::npy) {
    const std::string header = make_npy_header(npy_descr(type_), rows_, dim_);
    file_.overwrite(0, std::as_bytes(std::span(header)));
  } else if (format_ == VectorFormat::bin) {
    const std::array header = {static_cast<std::uint32_t>(rows_), static_cast<std::uint32_t>(dim_)};
    file_.overwrite(0, std::as_bytes(std::span(header)));
  }
  file_.commit();
}

}  // namespace nearwise
