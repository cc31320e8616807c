#include "io/container/container_writer.h"

#include <algorithm>
#include <new>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/lost_pages.h"
#include "io/container/metadata.h"

namespace nearwise {

using container::Element;
using container::Section;

ContainerWriter::ContainerWriter(const std::filesystem::path& path, std::string kind)
    : file_(path), hash_(XXH3_createState()) {
  NEARWISE_ASSERT(container::well_formed_name(kind));
  if (hash_ == nullptr) throw std::bad_alloc();
  header_.kind = std::move(kind);
  file_.write_zeros(container::alignment);  // the header comes last, when all is known
}

ContainerWriter::~ContainerWriter() = default;

void ContainerWriter::begin_section(std::string_view name, Element element, const SectionOptions& options) {
  NEARWISE_ASSERT(container::well_formed_name(name));
  NEARWISE_ASSERT(
      std::none_of(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; }));
  require(options.columns >= 1 && options.columns <= container::most_columns,
          "save {}: section '{}' can have 1 to {} columns, got {}", file_.path().native(), name,
          container::most_columns, options.columns);
  end_section();
  require(sections_.size() < container::most_sections, "save {}: at most {} sections", file_.path().native(),
          container::most_sections);
  Section section;
  section.name = name;
  section.offset = file_.size();
  section.columns = options.columns;
  section.element = element;
  section.element_bytes = container::element_bytes(element);
  section.required = options.presence == Presence::required;
  sections_.push_back(std::move(section));
  XXH3_64bits_reset(hash_.get());
  block_filled_ = 0;
  in_section_ = true;
}

void ContainerWriter::append(std::span<const std::byte> bytes) {
  NEARWISE_ASSERT(in_section_);
  const LostPagesScope lost_pages;
  sections_.back().bytes += bytes.size();
  while (!bytes.empty()) {
    const std::size_t piece = std::min<std::uint64_t>(bytes.size(), container::block_bytes - block_filled_);
    file_.write(bytes.first(piece));
    XXH3_64bits_update(hash_.get(), bytes.data(), piece);
    block_filled_ += piece;
    bytes = bytes.subspan(piece);
    if (block_filled_ == container::block_bytes) {
      checksums_.push_back(XXH3_64bits_digest(hash_.get()));
      XXH3_64bits_reset(hash_.get());
      block_filled_ = 0;
    }
  }
  check_lost_pages();
}

void ContainerWriter::end_section() {
  if (!in_section_) return;
  in_section_ = false;
  if (block_filled_ != 0) checksums_.push_back(XXH3_64bits_digest(hash_.get()));
  Section& section = sections_.back();
  const std::uint64_t row_bytes = section.columns * section.element_bytes;
  NEARWISE_ASSERT(section.bytes % row_bytes == 0);
  section.rows = section.bytes / row_bytes;
  file_.write_zeros(round_up(file_.size(), container::alignment) - file_.size());
}

void ContainerWriter::write_metadata(const nlohmann::json& metadata) {
  const std::string text = metadata_text(metadata);
  begin_section("metadata", Element::json);
  append(std::as_bytes(std::span(text)));
}

void ContainerWriter::commit() {
  end_section();
  header_.section_count = static_cast<std::uint32_t>(sections_.size());
  header_.table_offset = file_.size();

  std::vector<std::byte> table;
  for (const Section& section : sections_) {
    const auto entry = container::encode(section);
    table.insert(table.end(), entry.begin(), entry.end());
  }
  const auto checksums = std::as_bytes(std::span(checksums_));
  table.insert(table.end(), checksums.begin(), checksums.end());
  header_.table_bytes = table.size();
  header_.table_checksum = container::checksum(table);
  file_.write(table);

  header_.file_bytes = file_.size();
  file_.overwrite(0, container::encode(header_));
  file_.commit();
}

}  // namespace nearwise
