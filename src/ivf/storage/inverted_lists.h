// Growable lists of codes, ids and, where they are kept, vectors. A list may refer to a mapped file; it is
// copied before it changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codes/list_codec.h"
#include "core/memory.h"
#include "nearwise/types.h"

namespace nearwise::ivf {

class InvertedLists {
 public:
  // vector_bytes 0: no vectors.
  InvertedLists(std::shared_ptr<MemoryBudget> budget, std::size_t lists, std::size_t code_bytes,
                std::size_t vector_bytes);

  std::size_t lists() const { return lists_.size(); }
  std::size_t rows() const { return rows_; }
  std::size_t code_bytes() const { return code_bytes_; }
  std::size_t vector_bytes() const { return vector_bytes_; }
  // Differs from that of every other lists, and changes with the entries.
  std::uint64_t version() const { return version_; }
  // Both throw Error(corrupt) if a mapped file of theirs has lost pages.
  std::span<const ListView> views() const;
  const ListView& view(std::size_t list) const;

  // Refers to entries that outlive this object; the list must be empty.
  void borrow(std::size_t list, const ListView& rows);
  // Reserves space for more[list] further entries in each list, so that append() cannot fail.
  void reserve(std::span<const std::size_t> more);
  void reserve(std::size_t list, std::size_t more);
  // What reserve() takes of the budget, in addition to the lists: for these entries, or, at most, for `more`
  // of any lists.
  std::uint64_t reserved_bytes(std::span<const std::size_t> more) const;
  std::uint64_t most_reserved_bytes(std::size_t more) const;
  void append(std::size_t list, const ListView& rows) noexcept;
  // Takes the last entries back.
  void shrink(std::size_t list, std::size_t less) noexcept;
  // Copies a borrowed list, so that remove() cannot fail.
  void own(std::size_t list);
  // What that takes for any `count` of them, at most.
  std::uint64_t most_owned_bytes(std::size_t count) const;
  // Entries of any `count` lists, at most.
  std::size_t most_rows(std::size_t count) const;
  // Removes the entries whose `drop` is not 0; entries past its end stay. Returns how many were removed.
  std::size_t remove(std::size_t list, std::span<const std::uint8_t> drop) noexcept;
  // Gives unused space back. If there is no memory for a copy, the list stays as it is.
  void compact(std::size_t list) noexcept;

 private:
  // Storage behind a view; empty for a borrowed list.
  struct List {
    Buffer<std::byte> codes;
    Buffer<Id> ids;
    Buffer<std::byte> vectors;
    std::size_t capacity = 0;
  };

  void grow(std::size_t list, std::size_t capacity);
  std::uint64_t grown_bytes(std::size_t capacity) const;  // of a list

  std::shared_ptr<MemoryBudget> budget_;
  std::size_t code_bytes_;
  std::size_t vector_bytes_;
  std::size_t rows_ = 0;
  std::uint64_t version_;
  std::vector<ListView> views_;
  std::vector<List> lists_;
};

}  // namespace nearwise::ivf
