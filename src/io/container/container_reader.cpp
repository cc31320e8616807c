#include "io/container/container_reader.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "io/container/metadata.h"
#include "io/files/little_endian.h"

namespace nearwise {

using container::Element;
using container::Section;

std::span<const std::byte> SectionView::bytes(std::uint64_t first, std::uint64_t count) const {
  reader_->verify(*section_, first, count);
  return reader_->unverified_bytes(*section_).subspan(first, count);
}

const std::byte* SectionView::elements(Element element, std::uint64_t first_row, std::uint64_t count) const {
  if (section_->element != element)
    fail(ErrorCode::corrupt, "{}: section '{}': elements {} expected, {} found", reader_->source(),
         section_->name, container::name(element), container::name(section_->element));
  NEARWISE_ASSERT(first_row <= section_->rows && count <= section_->rows - first_row);
  const std::uint64_t row_bytes = section_->columns * section_->element_bytes;
  return bytes(first_row * row_bytes, count * row_bytes).data();
}

ContainerReader ContainerReader::open(const std::filesystem::path& path) {
  MappedFile file(path);
  ContainerReader reader =
      read_mapped([&] { return ContainerReader(file.bytes(), "open " + path.native()); });
  reader.file_ = std::move(file);
  return reader;
}

ContainerReader::ContainerReader(std::span<const std::byte> bytes, std::string source)
    : bytes_(bytes), source_(std::move(source)) {
  NEARWISE_ASSERT(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(std::uint64_t) == 0);
  header_ = container::decode_header(bytes_, source_);
  sections_ = container::decode_table(bytes_, header_, source_);
  checksums_ = bytes_.data() + header_.table_offset + sections_.size() * container::entry_bytes;
  for (const Section& section : sections_) blocks_ += section.blocks;
  verified_ = std::make_unique<std::atomic<std::uint64_t>[]>(divide_up<std::uint64_t>(blocks_, 64));
}

const Section* ContainerReader::find(std::string_view name) const {
  const auto found =
      std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
  return found == sections_.end() ? nullptr : &*found;
}

SectionView ContainerReader::section(std::string_view name) const {
  const Section* found = find(name);
  if (found == nullptr) fail(ErrorCode::corrupt, "{}: section '{}' is missing", source_, name);
  return {*this, *found};
}

nlohmann::json ContainerReader::metadata() const {
  const LostPagesScope lost_pages;
  const SectionView view = section("metadata");
  const Section& info = view.info();
  if (info.element != Element::json || info.columns != 1)
    fail(ErrorCode::corrupt, "{}: section 'metadata': elements json in one column expected, {} in {} found",
         source_, container::name(info.element), info.columns);
  if (info.bytes > most_metadata_bytes)
    fail(ErrorCode::corrupt, "{}: section 'metadata': at most {} bytes expected, {} found", source_,
         most_metadata_bytes, info.bytes);
  nlohmann::json metadata = parse_metadata(view.bytes(), source_);
  check_lost_pages();
  return metadata;
}

void ContainerReader::expect(std::string_view kind, std::initializer_list<std::string_view> known) const {
  require(header_.kind == kind, "{}: a file of kind '{}' expected, '{}' found", source_, kind, header_.kind);
  for (const Section& section : sections_)
    if (section.required && std::find(known.begin(), known.end(), section.name) == known.end())
      fail(ErrorCode::unsupported, "{}: section '{}' is required and unknown to this build; needs {}",
           source_, section.name, container::needed_release(header_));
}

void ContainerReader::verify() const {
  for (const Section& section : sections_) verify(section, 0, section.bytes);
}

void ContainerReader::verify(const Section& section, std::uint64_t first, std::uint64_t count) const {
  NEARWISE_ASSERT(first <= section.bytes && count <= section.bytes - first);
  check_mapped(bytes_.data(), bytes_.size());
  if (count == 0) return;
  const std::uint64_t last_block = (first + count - 1) / container::block_bytes;
  for (std::uint64_t block = first / container::block_bytes; block <= last_block; ++block) {
    const std::uint64_t bit = section.first_block + block;
    // The bytes are never written after they were mapped: relaxed order is enough.
    if ((verified_[bit / 64].load(std::memory_order_relaxed) >> (bit % 64) & 1) == 0)
      verify_block(section, block);
  }
}

void ContainerReader::verify_block(const Section& section, std::uint64_t block) const {
  check_cancelled();
  const LostPagesScope lost_pages;
  const std::uint64_t first = block * container::block_bytes;
  const std::uint64_t count = std::min(container::block_bytes, section.bytes - first);
  const std::uint64_t bit = section.first_block + block;
  const auto stored = load<std::uint64_t>(checksums_ + bit * sizeof(std::uint64_t));
  const std::uint64_t found = container::checksum(bytes_.subspan(section.offset + first, count));
  check_lost_pages();
  if (stored != found)
    fail(ErrorCode::corrupt,
         "{}: section '{}', block {} at file offset {}: checksum {:016x} expected, {:016x} found", source_,
         section.name, block, section.offset + first, stored, found);
  if (block + 1 == section.blocks) {
    const std::uint64_t end = section.offset + section.bytes;
    const std::span padding = bytes_.subspan(end, section.padded_end - end);
    const auto wrong =
        std::find_if(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; });
    if (wrong != padding.end())
      fail(ErrorCode::corrupt, "{}: behind section '{}': zero expected at file offset {}, {:#04x} found",
           source_, section.name, end + static_cast<std::uint64_t>(wrong - padding.begin()),
           std::to_integer<unsigned>(*wrong));
  }
  verified_[bit / 64].fetch_or(std::uint64_t{1} << (bit % 64), std::memory_order_relaxed);
}

std::uint64_t ContainerReader::verified_blocks() const {
  std::uint64_t count = 0;
  for (std::uint64_t word = 0; word < divide_up<std::uint64_t>(blocks_, 64); ++word)
    count += static_cast<std::uint64_t>(std::popcount(verified_[word].load(std::memory_order_relaxed)));
  return count;
}

}  // namespace nearwise
