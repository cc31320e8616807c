#include "index/inverted_lists.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "core/checked.h"

namespace nearwise::index {

InvertedLists::InvertedLists(std::shared_ptr<MemoryBudget> budget, std::size_t lists, std::size_t code_bytes)
    : budget_(std::move(budget)), code_bytes_(code_bytes), lists_(lists) {}

std::vector<ListView> InvertedLists::views() const {
  std::vector<ListView> views(lists_.size());
  for (std::size_t list = 0; list < views.size(); ++list) views[list] = view(list);
  return views;
}

void InvertedLists::borrow(std::size_t list, const ListView& rows) {
  NEARWISE_ASSERT(lists_[list].view.rows == 0);
  lists_[list].view = rows;
  rows_ += rows.rows;
}

void InvertedLists::grow(List& list, std::size_t capacity) {
  Buffer<std::byte> codes(*budget_, checked_multiply(capacity, code_bytes_, "bytes of a list"));
  Buffer<Id> ids(*budget_, capacity);
  if (list.view.rows != 0) {
    std::memcpy(codes.data(), list.view.codes, list.view.rows * code_bytes_);
    std::copy_n(list.view.ids, list.view.rows, ids.data());
  }
  list.codes = std::move(codes);
  list.ids = std::move(ids);
  list.view = {list.codes.data(), list.ids.data(), list.view.rows};
  list.capacity = capacity;
}

void InvertedLists::reserve(std::span<const std::size_t> more) {
  for (std::size_t list = 0; list < lists_.size(); ++list) reserve(list, more[list]);
}

void InvertedLists::reserve(std::size_t list, std::size_t more) {
  List& to = lists_[list];
  if (more == 0) return;
  const std::size_t needed = checked_add(to.view.rows, more, "rows of a list");
  // Half as much again, so that many small batches do not copy a list again and again.
  if (needed > to.capacity) grow(to, std::max(needed, to.view.rows + to.view.rows / 2));
}

void InvertedLists::append(std::size_t list, const ListView& rows) noexcept {
  if (rows.rows == 0) return;
  List& to = lists_[list];
  std::memcpy(to.codes.data() + to.view.rows * code_bytes_, rows.codes, rows.rows * code_bytes_);
  std::copy_n(rows.ids, rows.rows, to.ids.data() + to.view.rows);
  to.view.rows += rows.rows;
  rows_ += rows.rows;
}

void InvertedLists::truncate(std::size_t list, std::size_t rows) noexcept {
  rows_ -= lists_[list].view.rows - rows;
  lists_[list].view.rows = rows;
}

void InvertedLists::own(std::size_t list) {
  if (lists_[list].capacity == 0) grow(lists_[list], lists_[list].view.rows);
}

std::size_t InvertedLists::remove(std::size_t list, std::span<const std::uint8_t> drop) noexcept {
  List& from = lists_[list];
  std::size_t kept = 0;
  for (std::size_t row = 0; row < from.view.rows; ++row) {
    if (drop[row] != 0) continue;
    if (kept != row) {
      std::memcpy(from.codes.data() + kept * code_bytes_, from.codes.data() + row * code_bytes_, code_bytes_);
      from.ids[kept] = from.ids[row];
    }
    ++kept;
  }
  const std::size_t dropped = from.view.rows - kept;
  from.view.rows = kept;
  rows_ -= dropped;
  return dropped;
}

}  // namespace nearwise::index
