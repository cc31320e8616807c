// Finds the list, or the number, of the entry with an id: a hash table, or an array where ids are dense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/memory.h"
#include "nearwise/types.h"

namespace nearwise::index {

// Ids are not negative. Not thread-safe, but any number of threads may call find().
class IdTable {
 public:
  explicit IdTable(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  // That reserve(count, next_id) takes.
  static std::uint64_t bytes(std::size_t count, Id next_id);

  std::size_t size() const { return size_; }
  std::optional<std::uint32_t> find(Id id) const noexcept;

  // Reserves space for more ids, all below next_id, so that insert() cannot fail.
  void reserve(std::size_t more, Id next_id);
  // What that takes of the budget, in addition to the table.
  std::uint64_t reserved_bytes(std::size_t more, Id next_id) const;
  // Returns false, and changes nothing, if the id is there already.
  bool insert(Id id, std::uint32_t list) noexcept;
  bool erase(Id id) noexcept;

 private:
  static constexpr std::uint32_t absent = UINT32_MAX;

  bool is_dense() const { return ids_.size() == 0; }
  std::size_t home(Id id) const noexcept;
  // The place of an id, or the free place where it would go.
  std::size_t place_of(Id id) const noexcept;
  void grow_array(std::size_t size);
  void grow_hash(std::size_t capacity);

  std::shared_ptr<MemoryBudget> budget_;
  std::size_t size_ = 0;
  Buffer<Id> ids_;               // [capacity] of a hash table with linear probing; empty: dense
  Buffer<std::uint32_t> lists_;  // [capacity], or by id; absent: none
};

}  // namespace nearwise::index
