// Fuzz target: the first byte of the input chooses a suffix, the rest is the file.
//
// Read as vectors, as vectors in chunks of its head only, and as ids. Either an Error or rows that all lie in
// the file.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "io/vectors/neighbors_file.h"
#include "io/vectors/vector_layout.h"
#include "nearwise/error.h"

namespace {

constexpr std::array suffixes = {".npy",  ".fbin",  ".f16bin", ".bf16bin", ".u8bin", ".i8bin",
                                 ".ibin", ".fvecs", ".bvecs",  ".ivecs",   ".bin"};

template <typename Call>
void allow_errors(const Call& call) {
  try {
    call();
  } catch (const nearwise::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const nearwise::Suffix& suffix =
      nearwise::suffix_of(std::string("input") + suffixes[data[0] % suffixes.size()], "open");
  // A copy of exactly the file's length: a byte read past its end is seen.
  const auto* first = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(first + 1, first + size);

  allow_errors([&] {
    const nearwise::VectorLayout layout = nearwise::check_vectors(suffix, bytes, "input");
    const nearwise::RowsView rows = nearwise::vectors_in(layout, bytes, "input");
    const std::size_t row_bytes = rows.dim() * nearwise::element_size(rows.type());
    if (rows.rows() != 0 && row_bytes == 0) std::abort();
    std::vector<std::byte> row(std::min(row_bytes, bytes.size()));
    for (std::size_t i = 0; i < rows.rows(); ++i) std::memcpy(row.data(), rows.row(i), row_bytes);
  });
  allow_errors([&] {
    const nearwise::Neighbors neighbors = nearwise::parse_neighbors(suffix, bytes, "input");
    const std::size_t ids = neighbors.ids.rows() * neighbors.ids.cols();
    if (ids * 4 > bytes.size()) std::abort();
    if (neighbors.distances.rows() * neighbors.distances.cols() > ids) std::abort();
  });
  return 0;
}
