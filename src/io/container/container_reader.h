// Reads a container (docs/format.md) in place.
//
// Opening checks header and section table. The sections are checked block by block, each before its first
// use, or all at once by verify(). Damage is Error(corrupt) naming section and offset. Const methods may run
// at once; spans and views are valid while the reader lives.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lost_pages.h"
#include "core/progress.h"
#include "io/container/container_header.h"
#include "io/files/mapped_file.h"
#include "nearwise/matrix.h"

namespace nearwise {

class ContainerReader;

// One section of a reader. Cheap to copy.
class SectionView {
 public:
  SectionView(const ContainerReader& reader, const container::Section& section)
      : reader_(&reader), section_(&section) {}

  const container::Section& info() const { return *section_; }
  // Verified: what is returned has the checksum it was written with. The range must lie in the section:
  // callers check offsets that come from a file.
  std::span<const std::byte> bytes() const { return bytes(0, section_->bytes); }
  std::span<const std::byte> bytes(std::uint64_t first, std::uint64_t count) const;

  // Verified rows [first, first + count). Error(corrupt) if the section holds other elements than T.
  template <typename T>
  MatrixView<const T> rows(std::uint64_t first, std::uint64_t count) const;
  template <typename T>
  MatrixView<const T> rows() const {
    return rows<T>(0, section_->rows);
  }

 private:
  const std::byte* elements(container::Element element, std::uint64_t first_row, std::uint64_t count) const;

  const ContainerReader* reader_;
  const container::Section* section_;
};

class ContainerReader {
 public:
  static ContainerReader open(const std::filesystem::path& path);
  // Over a file's bytes in memory, 8-byte aligned, that must outlive the reader. `source` begins every
  // message.
  ContainerReader(std::span<const std::byte> bytes, std::string source);
  ContainerReader(ContainerReader&&) noexcept = default;
  ContainerReader& operator=(ContainerReader&&) noexcept = default;

  const container::Header& header() const { return header_; }
  std::span<const container::Section> sections() const { return sections_; }
  const std::string& source() const { return source_; }

  // nullptr: there is none.
  const container::Section* find(std::string_view name) const;
  // Throws Error(corrupt) if there is none.
  SectionView section(std::string_view name) const;
  nlohmann::json metadata() const;

  // Error(invalid_argument) if this is a file of another kind; Error(unsupported) if it has a required
  // section that is not among `known`.
  void expect(std::string_view kind, std::initializer_list<std::string_view> known) const;

  // Every block of every section, unless verified before.
  void verify() const;
  // The blocks that hold bytes [first, first + count) of a section, unless verified before.
  void verify(const container::Section& section, std::uint64_t first, std::uint64_t count) const;
  std::span<const std::byte> unverified_bytes(const container::Section& section) const {
    return bytes_.subspan(section.offset, section.bytes);
  }
  std::uint64_t verified_blocks() const;

 private:
  void verify_block(const container::Section& section, std::uint64_t block) const;

  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::string source_;
  container::Header header_;
  std::vector<container::Section> sections_;
  const std::byte* checksums_ = nullptr;  // in the table
  // One bit per block. Two threads may verify one block at the same time: that costs time and harms nothing.
  std::unique_ptr<std::atomic<std::uint64_t>[]> verified_;
  std::uint64_t blocks_ = 0;
};

template <typename T>
MatrixView<const T> SectionView::rows(std::uint64_t first, std::uint64_t count) const {
  const std::byte* data = elements(container::ElementOf<T>::value, first, count);
  return {reinterpret_cast<const T*>(data), count, section_->columns};
}

// A copy of rows of a section.
template <typename T>
Matrix<T> copy_of(MatrixView<const T> rows) {
  constexpr std::size_t piece = std::size_t{1} << 18;
  Matrix<T> copy(rows.rows(), rows.cols());
  const std::size_t size = rows.rows() * rows.cols();
  for (std::size_t first = 0; first < size; first += piece) {
    check_cancelled();
    std::copy_n(rows.data() + first, std::min(piece, size - first), copy.data() + first);
  }
  check_lost_pages();
  return copy;
}

}  // namespace nearwise
