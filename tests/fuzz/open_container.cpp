// Fuzz target: the input is a container file.
//
// Opened as it is, which ends at a checksum, and once more with all checksums made right, so that the
// structural checks are reached. Either an Error or a sound object; anything else is a bug.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "../io/reseal.h"
#include "io/container/container_reader.h"
#include "io/container/neighbors_container.h"
#include "nearwise/error.h"

namespace {

void open(std::span<const std::byte> bytes) {
  try {
    const nearwise::ContainerReader reader(bytes, "input");
    nearwise::describe(reader);
    // Every section as bytes, whatever kind of file this is.
    std::size_t total = 0;
    for (const nearwise::container::Section& section : reader.sections())
      total += nearwise::SectionView(reader, section).bytes().size();
    if (total > bytes.size()) std::abort();
    const nearwise::SavedNeighbors result = nearwise::decode_neighbors(reader);
    const std::size_t size = result.neighbors.ids.rows() * result.neighbors.ids.cols();
    if (size * 12 > bytes.size()) std::abort();
    for (std::size_t i = 0; i < size; ++i)
      if (result.neighbors.ids.data()[i] < nearwise::no_id) std::abort();
  } catch (const nearwise::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* first = reinterpret_cast<const std::byte*>(data);
  std::vector<std::byte> bytes(first, first + size);  // aligned, and exactly as long as the input
  open(bytes);
  nearwise::testing_io::reseal(bytes);
  open(bytes);
  return 0;
}
