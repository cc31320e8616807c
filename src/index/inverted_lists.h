// Codes and ids in lists that grow. A list may begin as part of a mapped file; it is copied before it
// changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codes/list_codec.h"
#include "core/memory.h"
#include "nearwise/types.h"

namespace nearwise::index {

class InvertedLists {
 public:
  InvertedLists(std::shared_ptr<MemoryBudget> budget, std::size_t lists, std::size_t code_bytes);

  std::size_t lists() const { return lists_.size(); }
  std::size_t rows() const { return rows_; }
  std::size_t code_bytes() const { return code_bytes_; }
  std::span<const ListView> views() const { return views_; }
  const ListView& view(std::size_t list) const { return views_[list]; }

  // Takes over rows that lie elsewhere and outlive this; the list must be empty.
  void borrow(std::size_t list, const ListView& rows);
  // Reserves memory for this many more entries in every list, [lists]: afterwards append() cannot fail.
  void reserve(std::span<const std::size_t> more);
  void reserve(std::size_t list, std::size_t more);
  void append(std::size_t list, const ListView& rows) noexcept;
  // Leaves the first `rows` rows of a list: undoes what was appended.
  void truncate(std::size_t list, std::size_t rows) noexcept;
  // Copies a list that is borrowed: afterwards remove() cannot fail.
  void own(std::size_t list);
  // Drops the rows of a list for which `drop`, of as many entries, is not 0. Returns their number.
  std::size_t remove(std::size_t list, std::span<const std::uint8_t> drop) noexcept;

 private:
  // What a view shows; empty where the rows are borrowed.
  struct List {
    Buffer<std::byte> codes;
    Buffer<Id> ids;
    std::size_t capacity = 0;
  };

  void grow(std::size_t list, std::size_t capacity);

  std::shared_ptr<MemoryBudget> budget_;
  std::size_t code_bytes_;
  std::size_t rows_ = 0;
  std::vector<ListView> views_;
  std::vector<List> lists_;
};

}  // namespace nearwise::index
