#include "index/id_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace nearwise::index {
namespace {

constexpr std::size_t min_capacity = 64;

// An array of 4 bytes per possible id is smaller than a hash table of 24 to 48 bytes per id up to here.
bool are_dense(std::size_t count, Id next_id) {
  return static_cast<std::uint64_t>(next_id) <= 4 * static_cast<std::uint64_t>(count) + 1024;
}

// Capacity of a hash table at most half full.
std::size_t capacity_for(std::size_t count) { return std::bit_ceil(std::max(min_capacity, 2 * count)); }

}  // namespace

std::uint64_t IdTable::bytes(std::size_t count, Id next_id) {
  if (are_dense(count, next_id)) return static_cast<std::uint64_t>(next_id) * sizeof(std::uint32_t);
  return capacity_for(count) * std::uint64_t{sizeof(Id) + sizeof(std::uint32_t)};
}

std::size_t IdTable::home(Id id) const noexcept {
  // Multiplication spreads consecutive ids; the upper bits are the good ones.
  const std::uint64_t mixed = static_cast<std::uint64_t>(id) * 0x9E3779B97F4A7C15U;
  return static_cast<std::size_t>(mixed >> (64 - std::countr_zero(ids_.size())));
}

std::size_t IdTable::place_of(Id id) const noexcept {
  std::size_t place = home(id);
  while (lists_[place] != absent && ids_[place] != id) place = (place + 1) & (ids_.size() - 1);
  return place;
}

std::optional<std::uint32_t> IdTable::find(Id id) const noexcept {
  if (id < 0) return {};
  if (is_dense() && static_cast<std::uint64_t>(id) >= lists_.size()) return {};
  const std::uint32_t list = lists_[is_dense() ? static_cast<std::size_t>(id) : place_of(id)];
  return list == absent ? std::nullopt : std::optional(list);
}

void IdTable::grow_array(std::size_t size) {
  Buffer<std::uint32_t> lists(*budget_, std::max(size, lists_.size() + lists_.size() / 2));
  std::fill(std::copy_n(lists_.data(), lists_.size(), lists.data()), lists.data() + lists.size(), absent);
  lists_ = std::move(lists);
}

void IdTable::grow_hash(std::size_t capacity) {
  IdTable grown(budget_);
  grown.ids_ = Buffer<Id>(*budget_, capacity);
  grown.lists_ = Buffer<std::uint32_t>(*budget_, capacity);
  std::fill_n(grown.lists_.data(), capacity, absent);
  for (std::size_t place = 0; place < lists_.size(); ++place)
    if (lists_[place] != absent)
      grown.insert(is_dense() ? static_cast<Id>(place) : ids_[place], lists_[place]);
  std::swap(ids_, grown.ids_);
  std::swap(lists_, grown.lists_);
}

void IdTable::reserve(std::size_t more, Id next_id) {
  const std::size_t count = size_ + more;
  if (is_dense() && are_dense(count, next_id)) {
    if (static_cast<std::uint64_t>(next_id) > lists_.size()) grow_array(static_cast<std::size_t>(next_id));
    return;
  }
  if (is_dense() || 2 * count > ids_.size()) grow_hash(capacity_for(count));
}

std::uint64_t IdTable::reserved_bytes(std::size_t more, Id next_id) const {
  const std::size_t count = size_ + more;
  if (is_dense() && are_dense(count, next_id)) {
    const auto least = static_cast<std::size_t>(next_id);
    if (least <= lists_.size()) return 0;
    return buffer_bytes(std::max(least, lists_.size() + lists_.size() / 2), sizeof(std::uint32_t));
  }
  if (!is_dense() && 2 * count <= ids_.size()) return 0;
  const std::size_t capacity = capacity_for(count);
  return buffer_bytes(capacity, sizeof(Id)) + buffer_bytes(capacity, sizeof(std::uint32_t));
}

bool IdTable::insert(Id id, std::uint32_t list) noexcept {
  const std::size_t place = is_dense() ? static_cast<std::size_t>(id) : place_of(id);
  if (lists_[place] != absent) return false;
  if (!is_dense()) ids_[place] = id;
  lists_[place] = list;
  ++size_;
  return true;
}

bool IdTable::erase(Id id) noexcept {
  if (!find(id)) return false;
  --size_;
  if (is_dense()) {
    lists_[static_cast<std::size_t>(id)] = absent;
    return true;
  }
  // Entries that probing carried past this place move back, so that no probe ends at the gap.
  const std::size_t mask = ids_.size() - 1;
  std::size_t gap = place_of(id);
  for (std::size_t next = (gap + 1) & mask; lists_[next] != absent; next = (next + 1) & mask) {
    if (((next - home(ids_[next])) & mask) < ((next - gap) & mask)) continue;
    ids_[gap] = ids_[next];
    lists_[gap] = lists_[next];
    gap = next;
  }
  lists_[gap] = absent;
  return true;
}

}  // namespace nearwise::index
