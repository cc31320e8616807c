#include "golden_answers/digest.h"

#include "io/temporary_folder.h"
#include "nearwise/storage.h"

namespace nearwise::golden {

Digest::Digest() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }

void Digest::add_bytes(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

void Digest::add(std::string_view text) { add(std::span<const char>(text.data(), text.size())); }

void Digest::add(const Neighbors& neighbors) {
  add(neighbors.ids);
  add(neighbors.distances);
}

void Digest::add(const RangeNeighbors& neighbors) {
  add(neighbors.offsets);
  add(neighbors.ids);
  add(neighbors.distances);
}

void Digest::add_rows(RowsView rows) {
  add(static_cast<int>(rows.type()));
  add(rows.rows());
  add(rows.dim());
  for (std::size_t row = 0; row < rows.rows(); ++row)
    add_bytes({rows.row(row), rows.dim() * element_size(rows.type())});
}

void Digest::add_file(const std::filesystem::path& path) { add_bytes(testing_io::read_all(path)); }

void Digest::add_sections(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = testing_io::read_all(path);
  const ContainerInfo info = verify(path);
  for (const SectionInfo& section : info.sections) {
    if (section.element == "json") continue;
    add(section.element);
    add(section.rows);
    add(section.columns);
    add_bytes(std::span(bytes).subspan(section.offset, section.bytes));
  }
}

std::uint64_t Digest::value() const { return XXH3_64bits_digest(state_.get()); }

}  // namespace nearwise::golden
