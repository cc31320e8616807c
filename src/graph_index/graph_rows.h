// The data of the rows of a graph index: in memory of its own with room for more rows, or in a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "codes/scalar_codec.h"
#include "core/memory.h"
#include "io/container/container_reader.h"
#include "nearwise/context.h"
#include "nearwise/matrix.h"
#include "nearwise/types.h"

namespace nearwise::graph_index {

struct GraphRowViews {
  MatrixView<const std::uint8_t> codes = {};
  MatrixView<const std::uint8_t> nibbles = {};
  MatrixView<const std::int32_t> edges = {};
  RowsView vectors = {};         // the codes themselves, if vectors are u8 and Euclidean
  std::span<const Id> ids = {};  // empty: row numbers

  std::size_t count() const { return codes.rows(); }
  bool are_codes_vectors() const {
    return vectors.type() == ElementType::u8 &&
           vectors.data() == reinterpret_cast<const std::byte*>(codes.data());
  }
  Id id_of(std::size_t row) const { return ids.empty() ? static_cast<Id>(row) : ids[row]; }
};

struct GraphRows : GraphRowViews {
  std::shared_ptr<const ScalarCodec> codec = {};
  std::shared_ptr<const ContainerReader> file = {};  // mapped file that the views refer to

  // What the views refer to, unless it is the file.
  Buffer<std::uint8_t> own_codes = {};
  Buffer<std::uint8_t> own_nibbles = {};
  Buffer<std::int32_t> own_edges = {};
  Buffer<std::byte> own_vectors = {};
  Buffer<Id> own_ids = {};
  // Rows that all of these have room for; 0: rows cannot be appended.
  std::size_t capacity = 0;

  // Without rows.
  static GraphRows with_capacity(MemoryBudget& budget, std::shared_ptr<const ScalarCodec> codec,
                                 ElementType type, std::size_t degree, std::size_t room);
  // A copy of all rows with room for more, and ids.
  GraphRows copy(const Context& context, MemoryBudget& budget, std::size_t room) const;

  bool has_room(std::size_t more) const { return count() + more <= capacity; }
  // Writes codes and vectors of `source` behind the rows there are, where readers do not see them. Edges and
  // ids are left to the caller. own_views() has them as rows.
  void write_behind(const Context& context, const RowsView& source);
  // The same with rows of other memory, encoded by the same codec, and with their ids.
  void copy_behind(const Context& context, const GraphRows& source, std::span<const std::uint32_t> rows);
  // The first rows of the own memory.
  GraphRowViews own_views(std::size_t count) const;
  void set_count(std::size_t count) noexcept;

  MatrixView<std::int32_t> writable_edges() { return {own_edges.data(), edges.rows(), edges.cols()}; }

 private:
  std::size_t degree_ = 0;
  ElementType type_ = ElementType::f32;
};

// Whether u8 vectors need no memory in addition to their codes.
inline bool are_vectors_codes(const ScalarCodec& codec, ElementType type) {
  return type == ElementType::u8 && codec.is_exact();
}

// Codes of rows: row i of `codes` is that of row source_row(i).
void encode_rows(const Context& context, const ScalarCodec& codec, const RowsView& source, std::size_t count,
                 const std::function<std::size_t(std::size_t)>& source_row, std::uint8_t* codes);
// 4-bit codes of 8-bit ones.
void encode_nibbles(const Context& context, const ScalarCodec& codec, const std::uint8_t* codes,
                    std::size_t count, std::uint8_t* nibbles);

}  // namespace nearwise::graph_index
