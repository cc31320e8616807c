// The nearest rows that a search has found, in order, and which of them it has expanded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/memory.h"

namespace nearwise::cpu {

// Entries are sorted by distance, then row, as one integer: distance << 32 | row << 1 | expanded. Rows are
// below 2^31, and so are distances.
class Beam {
 public:
  void reset(MemoryBudget& budget, std::size_t capacity) {
    if (entries_.size() < capacity + 1) entries_ = Buffer<std::uint64_t>(budget, capacity + 1);
    capacity_ = capacity;
    size_ = next_ = 0;
  }

  std::size_t size() const { return size_; }
  std::uint32_t row(std::size_t place) const { return static_cast<std::uint32_t>(entries_[place]) >> 1; }
  // Only smaller distances can enter, and equal ones of lower rows.
  std::int32_t worst() const {
    return size_ < capacity_ ? INT32_MAX : static_cast<std::int32_t>(entries_[size_ - 1] >> 32);
  }

  void insert(std::int32_t distance, std::uint32_t row) {
    const std::uint64_t entry = std::uint64_t{static_cast<std::uint32_t>(distance)} << 32 | std::uint64_t{row}
                                                                                                << 1;
    std::uint64_t* const begin = entries_.data();
    if (size_ == capacity_) {
      if (entry >= begin[size_ - 1]) return;
      --size_;
    }
    const std::size_t index = first_not_below(entry);
    std::uint64_t* const place = begin + index;
    std::memmove(place + 1, place, (size_ - index) * sizeof(entry));
    *place = entry;
    ++size_;
    next_ = std::min(next_, index);
  }

  bool has_next() const { return next_ < size_; }
  // The nearest row that is not expanded, which has_next().
  std::uint32_t peek() const { return row(next_); }
  // The nearest ones; returns how many there are, at most rows.size().
  std::size_t peek(std::span<std::uint32_t> rows) const {
    std::size_t count = 0;
    for (std::size_t place = next_; place < size_ && count < rows.size(); ++place)
      if ((entries_[place] & 1U) == 0) rows[count++] = row(place);
    return count;
  }
  std::uint32_t expand() {
    const std::uint32_t expanded = row(next_);
    entries_[next_] |= 1U;
    while (next_ < size_ && (entries_[next_] & 1U) != 0) ++next_;
    return expanded;
  }

 private:
  // std::lower_bound without branches that depend on the entries, which nothing could predict.
  std::size_t first_not_below(std::uint64_t entry) const {
    const std::uint64_t* begin = entries_.data();
    std::size_t count = size_;
    while (count > 1) {
      const std::size_t half = count / 2;
      begin += begin[half - 1] < entry ? half : 0;
      count -= half;
    }
    return static_cast<std::size_t>(begin - entries_.data()) + (count == 1 && *begin < entry ? 1 : 0);
  }

  Buffer<std::uint64_t> entries_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::size_t next_ = 0;  // nearest entry that is not expanded
};

}  // namespace nearwise::cpu
