// Writes a container (docs/format.md) front to back in constant memory.
//
// Sections are appended piece by piece and hashed on the way. The file takes its name only in commit(),
// complete and synced (io/files/atomic_file.h). One thread at a time.
#pragma once

#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/container/container_header.h"
#include "io/files/atomic_file.h"
#include "nearwise/matrix.h"

namespace nearwise {

enum class Presence {
  required,  // a reader that does not know the section must refuse the file
  optional,
};

struct SectionOptions {
  std::uint64_t columns = 1;
  Presence presence = Presence::required;
};

class ContainerWriter {
 public:
  // Throws Error(cannot_create).
  ContainerWriter(const std::filesystem::path& path, std::string kind);
  ~ContainerWriter();

  // The first format version that has everything in the file; 0 unless it is set.
  void set_minor_version(std::uint16_t minor) { header_.version_minor = minor; }

  // Ends the section before. The number of rows follows from what is appended.
  void begin_section(std::string_view name, container::Element element, const SectionOptions& options = {});
  // Any number of bytes; a section as a whole must end at the end of a row.
  void append(std::span<const std::byte> bytes);
  // A whole section from a matrix.
  template <typename T>
  void write_section(std::string_view name, MatrixView<T> matrix, Presence presence = Presence::required);
  // The section every container has. An object.
  void write_metadata(const nlohmann::json& metadata);

  void commit();

 private:
  void end_section();

  AtomicFile file_;
  container::Header header_;
  std::vector<container::Section> sections_;
  std::vector<std::uint64_t> checksums_;  // 8 bytes for each 1 MiB written
  struct FreeState {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, FreeState> hash_;  // of the block being filled
  std::uint64_t block_filled_ = 0;
  bool in_section_ = false;
};

template <typename T>
void ContainerWriter::write_section(std::string_view name, MatrixView<T> matrix, Presence presence) {
  begin_section(name, container::ElementOf<std::remove_const_t<T>>::value,
                {.columns = matrix.cols(), .presence = presence});
  if (matrix.stride() == matrix.cols()) {
    append(std::as_bytes(std::span(matrix.data(), matrix.rows() * matrix.cols())));
  } else {
    for (std::size_t row = 0; row < matrix.rows(); ++row) append(std::as_bytes(matrix.row(row)));
  }
}

}  // namespace nearwise
