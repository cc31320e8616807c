// Long loops of functions that take no context: Error(cancelled) ends them within milliseconds once the
// CancellationScope of the calling thread is cancelled.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/progress.h"

namespace nearwise {

// Calls check_cancelled() once in 4096 steps of a loop, each a few accesses to memory: 4096 page faults take
// about 4 ms.
class CancellableSteps {
 public:
  void add(std::size_t steps) {
    if (steps < left_) {
      left_ -= steps;
      return;
    }
    left_ = steps_per_check;
    check_cancelled();
  }

 private:
  static constexpr std::size_t steps_per_check = 4096;
  std::size_t left_ = steps_per_check;
};

// Vectors are filled and copied in pieces of at most 2^20 elements.
inline constexpr std::size_t cancellable_piece = std::size_t{1} << 20;

// `size` copies of a value.
template <typename T>
std::vector<T> filled_vector(std::size_t size, T value) {
  std::vector<T> filled;
  filled.reserve(size);
  while (filled.size() < size) {
    check_cancelled();
    filled.resize(std::min(size, filled.size() + cancellable_piece), value);
  }
  return filled;
}

template <typename T>
std::vector<T> copied_vector(std::span<const T> from) {
  std::vector<T> copied;
  copied.reserve(from.size());
  while (copied.size() < from.size()) {
    check_cancelled();
    const auto piece = from.subspan(copied.size());
    copied.insert(copied.end(), piece.begin(), piece.begin() + std::min(piece.size(), cancellable_piece));
  }
  return copied;
}

}  // namespace nearwise
