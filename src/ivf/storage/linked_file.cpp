#include "ivf/storage/linked_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <vector>

#include "core/check.h"
#include "core/lost_pages.h"
#include "core/progress.h"
#include "io/container/container_header.h"
#include "ops/knn_plan.h"

namespace nearwise::ivf {
namespace {

namespace fs = std::filesystem;

// Between two checks for cancellation.
constexpr std::size_t checked_numbers = 4096;
constexpr std::size_t piece = std::size_t{1} << 20;  // bytes

fs::path folder_of(const fs::path& file) { return fs::absolute(file).parent_path(); }

// Also if it cannot be asked about.
bool is_absent(const fs::path& path) {
  std::error_code error;
  return !fs::exists(path, error);
}

}  // namespace

LinkedFile link_file(const fs::path& path) {
  LinkedFile file = {.path = fs::absolute(path)};
  file.mapped = std::make_shared<const VectorFile>(VectorFile::open(path));
  std::error_code error;
  file.bytes = fs::file_size(path, error);
  if (error) fail(ErrorCode::not_found, "'{}': {}", path.string(), error.message());
  const RowsView rows = file.mapped->rows();
  const std::size_t row_bytes = rows.dim() * element_size(rows.type());
  const std::size_t bytes = rows.rows() == 0 ? 0 : (rows.rows() - 1) * rows.stride_bytes() + row_bytes;
  file.checksum = read_mapped([&] {
    std::vector<std::uint64_t> checksums;
    for (std::size_t first = 0; first < bytes; first += piece) {
      check_cancelled();
      checksums.push_back(container::checksum({rows.data() + first, std::min(piece, bytes - first)}));
    }
    return container::checksum(std::as_bytes(std::span(checksums)));
  });
  return file;
}

std::string recorded_path(const fs::path& path, const fs::path& index_path) {
  return (path.parent_path() == folder_of(index_path) ? path.filename() : path).string();
}

fs::path linked_path(const std::string& recorded, const fs::path& index_path) {
  return folder_of(index_path) / recorded;
}

LinkedFile open_linked_file(const LinkedFile& recorded, ElementType type, std::size_t dim,
                            const fs::path& index_path, const std::string& source) {
  std::string found;
  for (const fs::path& path : {recorded.path, folder_of(index_path) / recorded.path.filename()}) {
    if (is_absent(path)) continue;
    LinkedFile file;
    try {
      file = link_file(path);
    } catch (const Error& error) {
      // What cannot be read at the one place may be whole at the other.
      if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::out_of_memory) throw;
      if (found.empty()) found = fmt::format("'{}' cannot be read: {}", path.string(), error.what());
      continue;
    }
    const RowsView rows = file.mapped->rows();
    if (file == recorded && rows.type() == type && rows.dim() == dim && rows.rows() <= max_shard_rows)
      return file;
    if (found.empty())
      found = fmt::format("'{}' has {} bytes and checksum {:016x}", path.string(), file.bytes, file.checksum);
  }
  if (found.empty())
    fail(ErrorCode::not_found,
         "{}: its vectors are in '{}', which does not exist: put the file there, or into the folder of the "
         "index",
         source, recorded.path.string());
  fail(ErrorCode::corrupt, "{}: its vectors are in a file of {} bytes with checksum {:016x}, {}", source,
       recorded.bytes, recorded.checksum, found);
}

std::uint64_t check_file_rows(const std::byte* numbers, std::size_t count, std::size_t rows,
                              const std::string& source) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % checked_numbers == 0) check_cancelled();
    std::uint32_t row = 0;
    std::memcpy(&row, numbers + i * sizeof(row), sizeof(row));
    if (row >= rows)
      fail(ErrorCode::corrupt, "{}: vectors, row {}: row numbers below {} expected, {} found", source, i,
           rows, row);
    end = std::max(end, row + std::uint64_t{1});
  }
  return end;
}

}  // namespace nearwise::ivf
