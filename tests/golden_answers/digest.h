// The digest of an answer: XXH3-64 over its shape and the bits of its numbers.
#pragma once

#include <xxhash.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nearwise/exact.h"
#include "nearwise/matrix.h"
#include "nearwise/neighbors.h"

namespace nearwise::golden {

class Digest {
 public:
  Digest();

  void add_bytes(std::span<const std::byte> bytes);

  // Integers count as 64 bits whatever their type, floating-point numbers by their own bits.
  template <std::integral T>
  void add(T value) {
    const auto wide = static_cast<std::int64_t>(value);
    add_bytes(std::as_bytes(std::span(&wide, 1)));
  }
  template <std::floating_point T>
  void add(T value) {
    add_bytes(std::as_bytes(std::span(&value, 1)));
  }
  void add(std::string_view text);
  template <typename T>
  void add(std::span<const T> values) {
    add(values.size());
    add_bytes(std::as_bytes(values));
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(std::span<const T>(values));
  }
  template <typename T>
  void add(MatrixView<const T> matrix) {
    add(matrix.rows());
    add(matrix.cols());
    for (std::size_t row = 0; row < matrix.rows(); ++row) add_bytes(std::as_bytes(matrix.row(row)));
  }
  template <typename T>
  void add(const Matrix<T>& matrix) {
    add(matrix.view());
  }
  void add(const Neighbors& neighbors);
  void add(const RangeNeighbors& neighbors);
  // The elements of the rows without the gaps between them.
  void add_rows(RowsView rows);

  // All bytes of a file.
  void add_file(const std::filesystem::path& path);
  // The shapes and bytes of a container's sections in their order, but for its metadata: renamed metadata
  // keys and a new version of the library leave this digest as it is.
  void add_sections(const std::filesystem::path& path);

  std::uint64_t value() const;

 private:
  struct FreeState {
    void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

}  // namespace nearwise::golden
