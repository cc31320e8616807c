#include "ivf/storage/inverted_lists.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "core/checked.h"
#include "core/filter.h"
#include "core/fork.h"
#include "core/lost_pages.h"

namespace nearwise::ivf {
namespace {

std::size_t sum_of_largest(std::vector<std::size_t> numbers, std::size_t count) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(std::min(count, numbers.size()));
  std::nth_element(numbers.begin(), middle, numbers.end(), std::greater<>());
  return std::accumulate(numbers.begin(), middle, std::size_t{0});
}

}  // namespace

InvertedLists::InvertedLists(std::shared_ptr<MemoryBudget> budget, std::size_t lists, std::size_t code_bytes,
                             std::size_t vector_bytes)
    : budget_(std::move(budget)),
      code_bytes_(code_bytes),
      vector_bytes_(vector_bytes),
      version_(FilterInternals::new_key()),
      views_(lists),
      lists_(lists) {}

std::span<const ListView> InvertedLists::views() const {
  if (any_mapping_is_damaged())
    for (std::size_t list = 0; list < lists_.size(); ++list) view(list);
  return views_;
}

const ListView& InvertedLists::view(std::size_t list) const {
  const ListView& view = views_[list];
  check_mapped(view.codes, view.rows * code_bytes_);
  check_mapped(view.ids, view.rows * sizeof(Id));
  check_mapped(view.vectors, view.rows * vector_bytes_);
  return view;
}

void InvertedLists::borrow(std::size_t list, const ListView& rows) {
  NEARWISE_ASSERT(views_[list].rows == 0);
  views_[list] = rows;
  rows_ += rows.rows;
  version_ = FilterInternals::new_key();
}

void InvertedLists::grow(std::size_t list, std::size_t capacity) {
  ListView& view = views_[list];
  static_cast<void>(this->view(list));  // its file is whole
  Buffer<std::byte> codes(*budget_, checked_multiply(capacity, code_bytes_, "bytes of a list"));
  Buffer<Id> ids(*budget_, capacity);
  Buffer<std::byte> vectors(*budget_, checked_multiply(capacity, vector_bytes_, "bytes of a list"));
  if (view.rows != 0) {
    std::memcpy(codes.data(), view.codes, view.rows * code_bytes_);
    std::copy_n(view.ids, view.rows, ids.data());
    if (vector_bytes_ != 0) std::memcpy(vectors.data(), view.vectors, view.rows * vector_bytes_);
    check_lost_pages();
  }
  const NoFork whole;
  List& grown = lists_[list];
  grown = {std::move(codes), std::move(ids), std::move(vectors), capacity};
  view = {grown.codes.data(), grown.ids.data(), view.rows, grown.vectors.data()};
}

void InvertedLists::reserve(std::span<const std::size_t> more) {
  for (std::size_t list = 0; list < lists_.size(); ++list) reserve(list, more[list]);
}

void InvertedLists::reserve(std::size_t list, std::size_t more) {
  if (more == 0) return;
  const std::size_t rows = views_[list].rows;
  const std::size_t needed = checked_add(rows, more, "rows of a list");
  // Growth by half bounds the copying of many small batches.
  if (needed > lists_[list].capacity) grow(list, std::max(needed, rows + rows / 2));
}

std::uint64_t InvertedLists::grown_bytes(std::size_t capacity) const {
  return buffer_bytes(capacity, code_bytes_) + buffer_bytes(capacity, sizeof(Id)) +
         buffer_bytes(capacity, vector_bytes_);
}

std::uint64_t InvertedLists::reserved_bytes(std::span<const std::size_t> more) const {
  std::uint64_t bytes = 0;
  std::uint64_t replaced = 0;  // a list that is being copied
  for (std::size_t list = 0; list < lists_.size(); ++list) {
    const std::size_t rows = views_[list].rows;
    const std::size_t capacity = lists_[list].capacity;
    if (more[list] == 0 || rows + more[list] <= capacity) continue;
    const std::uint64_t before = capacity == 0 ? 0 : grown_bytes(capacity);
    bytes += grown_bytes(std::max(rows + more[list], rows + rows / 2)) - before;
    replaced = std::max(replaced, before);
  }
  return bytes + replaced;
}

std::uint64_t InvertedLists::most_reserved_bytes(std::size_t more) const {
  if (more == 0) return 0;
  const std::size_t count = std::min(more, lists_.size());
  const std::uint64_t entry_bytes = code_bytes_ + sizeof(Id) + vector_bytes_;
  std::vector<std::size_t> grown;  // entries that each list grows by, without new ones
  std::size_t replaced = 0;
  for (std::size_t list = 0; list < lists_.size(); ++list) {
    const std::size_t rows = views_[list].rows;
    grown.push_back(rows + rows / 2 - std::min(rows + rows / 2, lists_[list].capacity));
    replaced = std::max(replaced, lists_[list].capacity);
  }
  return (more + sum_of_largest(std::move(grown), count)) * entry_bytes + count * grown_bytes(0) +
         grown_bytes(replaced);
}

std::uint64_t InvertedLists::most_owned_bytes(std::size_t count) const {
  std::vector<std::size_t> borrowed;
  for (std::size_t list = 0; list < lists_.size(); ++list)
    borrowed.push_back(lists_[list].capacity == 0 ? views_[list].rows : 0);
  const std::uint64_t entry_bytes = code_bytes_ + sizeof(Id) + vector_bytes_;
  return sum_of_largest(std::move(borrowed), count) * entry_bytes +
         std::min(count, lists_.size()) * grown_bytes(0);
}

std::size_t InvertedLists::most_rows(std::size_t count) const {
  std::vector<std::size_t> rows;
  for (const ListView& view : views_) rows.push_back(view.rows);
  return sum_of_largest(std::move(rows), count);
}

void InvertedLists::append(std::size_t list, const ListView& rows) noexcept {
  if (rows.rows == 0) return;
  List& to = lists_[list];
  ListView& view = views_[list];
  std::memcpy(to.codes.data() + view.rows * code_bytes_, rows.codes, rows.rows * code_bytes_);
  std::copy_n(rows.ids, rows.rows, to.ids.data() + view.rows);
  if (vector_bytes_ != 0)
    std::memcpy(to.vectors.data() + view.rows * vector_bytes_, rows.vectors, rows.rows * vector_bytes_);
  view.rows += rows.rows;
  rows_ += rows.rows;
  version_ = FilterInternals::new_key();
}

void InvertedLists::shrink(std::size_t list, std::size_t less) noexcept {
  views_[list].rows -= less;
  rows_ -= less;
  version_ = FilterInternals::new_key();
}

void InvertedLists::own(std::size_t list) {
  if (lists_[list].capacity == 0) grow(list, views_[list].rows);
}

void InvertedLists::compact(std::size_t list) noexcept {
  if (lists_[list].capacity <= views_[list].rows) return;
  try {
    grow(list, views_[list].rows);
  } catch (const std::exception&) {
    return;
  }
}

std::size_t InvertedLists::remove(std::size_t list, std::span<const std::uint8_t> drop) noexcept {
  List& from = lists_[list];
  ListView& view = views_[list];
  std::size_t kept = 0;
  for (std::size_t row = 0; row < view.rows; ++row) {
    if (row < drop.size() && drop[row] != 0) continue;
    if (kept != row) {
      std::memcpy(from.codes.data() + kept * code_bytes_, from.codes.data() + row * code_bytes_, code_bytes_);
      from.ids[kept] = from.ids[row];
      if (vector_bytes_ != 0)
        std::memcpy(from.vectors.data() + kept * vector_bytes_, from.vectors.data() + row * vector_bytes_,
                    vector_bytes_);
    }
    ++kept;
  }
  const std::size_t dropped = view.rows - kept;
  view.rows = kept;
  rows_ -= dropped;
  version_ = FilterInternals::new_key();
  return dropped;
}

}  // namespace nearwise::ivf
