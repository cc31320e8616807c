// read_mask: boolean arrays of NumPy.
#include <algorithm>
#include <vector>

#include "core/check.h"
#include "io/files/input_file.h"
#include "io/vectors/npy_header.h"
#include "nearwise/vector_file.h"

namespace nearwise {

std::vector<std::uint8_t> read_mask(const std::filesystem::path& path) {
  const std::string source = path.string();
  const InputFile file(path);
  std::vector<std::byte> head(
      static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), most_npy_header_bytes)));
  file.read(0, head);
  const NpyHeader header = parse_npy_header(head, source);
  require(header.descr == "|b1" || header.descr == "b1", "{}: expected a boolean array, found dtype {}",
          source, header.descr);
  require(header.shape.size() == 1, "{}: expected a 1-D array, found {} dimensions", source,
          header.shape.size());
  if (file.size() < header.data_offset || file.size() - header.data_offset != header.shape[0])
    fail(ErrorCode::corrupt, "{}: a mask of {} elements needs as many bytes after its header, found {}",
         source, header.shape[0], file.size() - std::min<std::uint64_t>(file.size(), header.data_offset));
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(header.shape[0]));
  file.read(header.data_offset, std::as_writable_bytes(std::span(mask)));
  return mask;
}

}  // namespace nearwise
